# Every reason to fall back that exists so far: data passes over TCP, the reason is right.
# limit: 300

net_up
port=5400

# fall REASON SERVER_FAMILY CLIENT_FAMILY [CLIENT ARG...]: the client's reason.
fall() {
	local reason=$1 sf=$2 cf=$3 before
	shift 3
	port=$((port + 1))
	note "server $sf, client $cf: reason $reason"
	before=$(stat_of h2 "fallback_$reason")
	server_up $port h1 --family "$sf" --expect TCP
	h2 $SMCT client data --family "$cf" --port $port --expect TCP --reason "$reason" \
		--bytes 300k "$@"
	server_end $port
	[[ $UNDER_TEST != smc_rs ]] || expect_stat h2 "fallback_$reason" $((before + 1))
}

note "first: SMC-R works here"
server_up 5400 h1 --expect SMC-R
h2 $SMCT client data --port 5400 --expect SMC-R --bytes 100k
server_end 5400
no_fallback h1 h2

note "the other end is plain TCP"
fall 0x03010000 tcp smc
fall 0x03010000 tcp ipproto

note "a plain TCP client at an SMC listener"
server_up 5450 h1 --family smc --expect TCP
h2 $SMCT client data --family tcp --port 5450 --expect TCP --bytes 300k
server_end 5450

note "IPv6 has no RoCE path"
port=5460
server_up $port h1 --family smc6 --expect TCP
h2 $SMCT client data --family smc6 --addr fd00:1::1 --port $port --expect TCP --bytes 300k
server_end $port

note "IPv4 on an IPv6 socket does SMC-R"
server_up 5461 h1 --family smc6 --expect SMC-R
h2 $SMCT client data --family smc6 --addr 10.1.1.1 --port 5461 --expect SMC-R --bytes 300k
server_end 5461

note "no RDMA device at the client"
h2 rdma link del rxe2
fall 0x03030000 smc smc
rxe_add h2 2 e2

note "no RDMA device at the server: it declines"
h1 rdma link del rxe1
port=5470
server_up $port h1 --expect TCP
h2 $SMCT client data --port $port --expect TCP --bytes 300k
server_end $port
rxe_add h1 1 e1

note "SMC-R again"
server_up 5480 h1 --expect SMC-R
h2 $SMCT client data --port 5480 --expect SMC-R --bytes 100k
server_end 5480
sockets_gone h1 h2
