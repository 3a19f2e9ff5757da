# Random chunks of 1 B to 10 MiB both ways at once, SHA-256 at both ends, every way to
# make a socket, unequal buffers, many wraps of every ring.
# limit: 400

net_up
run() {
	note "$*"
	pair data --expect SMC-R "$@"
}

run --family smc --bytes 12m --seed 11
run --family ipproto --bytes 3m --seed 12
note "unequal and smallest buffers: more than ten wraps each way"
run --bytes 2m --seed 13 --server-sndbuf 16k --server-rcvbuf 16k --sndbuf 500k --rcvbuf 500k
run --bytes 2m --seed 14 --server-sndbuf 500k --server-rcvbuf 8k --sndbuf 8k --rcvbuf 500k
run --family ipproto --bytes 1m --seed 15 --server-sndbuf 4k --server-rcvbuf 4k --sndbuf 4k --rcvbuf 4k
note "only one direction"
run --bytes 3m --back 1
run --bytes 1 --back 3m
note "small chunks"
run --bytes 100k --chunk 100

note "rings of 8 MiB, too large to be contiguous"
for ns in h1 h2; do
	[[ ! -e /proc/sys/net/smc/wmem ]] || ip netns exec $ns sysctl -q net.smc.wmem=8388608 net.smc.rmem=8388608
done
run --bytes 12m --seed 16
no_fallback h1 h2
sockets_gone h1 h2
