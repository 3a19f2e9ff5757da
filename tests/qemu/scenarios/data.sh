# Random chunks of 1 B to 10 MiB both ways at once, SHA-256 at both ends, every way to
# make a socket, unequal buffers, many wraps of every ring.
# limit: 400

net_up
port=5000

run() {
	local family=$1 bytes=$2 server=$3 client=$4
	port=$((port + 1))
	note "$family $bytes server [$server] client [$client]"
	# shellcheck disable=SC2086 # options
	server_up $port h1 --family "$family" --expect SMC-R $server
	# shellcheck disable=SC2086
	h2 $SMCT client data --family "$family" --port $port --expect SMC-R --bytes "$bytes" \
		--seed $port $client
	server_end $port
}

run smc 24m '' ''
run ipproto 8m '' ''
note "unequal and smallest buffers: more than ten wraps each way"
run smc 8m '--sndbuf 16k --rcvbuf 16k' '--sndbuf 500k --rcvbuf 500k'
run smc 8m '--sndbuf 1m --rcvbuf 8k' '--sndbuf 8k --rcvbuf 1m'
run ipproto 2m '--sndbuf 4k --rcvbuf 4k' '--sndbuf 4k --rcvbuf 4k'
note "only one direction"
run smc 8m '' '--back 1'
run smc 1 '' '--back 8m'
note "small chunks"
run smc 300k '' '--chunk 100'

no_fallback h1 h2
sockets_gone h1 h2
