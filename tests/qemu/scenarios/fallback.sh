# Every reason to fall back that exists so far: data passes over TCP, the reason is right.
# limit: 300

net_up

# fall REASON ARG...: the client falls back for this reason.
fall() {
	local reason=$1 before
	shift
	note "reason $reason: $*"
	before=$(stat_of h2 "fallback_$reason")
	pair data --bytes 300k --expect TCP --reason "$reason" "$@"
	expect_stat h2 "fallback_$reason" $((before + 1))
}

note "first: SMC-R works here"
pair data --expect SMC-R --bytes 100k
no_fallback h1 h2

note "the other end is plain TCP"
fall 0x03010000 --family smc --server-family tcp
fall 0x03010000 --family ipproto --server-family tcp

note "a plain TCP client at an SMC listener"
pair data --family tcp --server-family smc --expect TCP --bytes 300k

note "IPv6 has no RoCE path"
pair data --family smc6 --addr fd00:1::1 --expect TCP --bytes 300k
pair data --family ipproto6 --addr fd00:1::1 --expect TCP --bytes 300k

note "IPv4 on an IPv6 socket does SMC-R"
pair data --family smc6 --addr 10.1.1.1 --expect SMC-R --bytes 300k

note "no RDMA device at the client"
h2 rdma link del rxe2
fall 0x03030000
rxe_add h2 2 e2

note "no RDMA device at the server: it declines"
h1 rdma link del rxe1
fall 0x05000000
rxe_add h1 1 e1

note "SMC-R again"
pair data --expect SMC-R --bytes 100k
sockets_gone h1 h2
