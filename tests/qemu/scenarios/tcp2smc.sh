# Unmodified programs over SMC-R where a namespace's switch is on, and only there.
# limit: 300
# uml: no kretprobes there, which tcp2smc needs

net_up
tcp2smc() { ip netns exec "$1" sysctl -q "net.smc.tcp2smc=$2"; }
tcp_pair() { pair data --family tcp --bytes 300k "$@"; }

note "off by default"
for ns in h1 h2; do
	[[ $(ip netns exec $ns sysctl -n net.smc.tcp2smc) == 0 ]] || fail "tcp2smc is on in $ns"
done
tcp_pair --expect TCP

note "on in both"
tcp2smc h1 1
tcp2smc h2 1
tcp_pair --expect SMC-R
[[ $(sysctl -n net.smc.tcp2smc) == 0 ]] || fail "the switch is not per namespace"
no_fallback h1 h2

note "sockets that ask for SMC themselves, in a namespace with the switch on"
pair data --family smc --expect SMC-R --bytes 100k
pair data --family ipproto --expect SMC-R --bytes 100k
no_fallback h1 h2

note "an unmodified program: redis"
ip netns exec h1 redis-server --port 6379 --bind 10.1.1.1 --save '' --appendonly no --protected-mode no \
	--daemonize no --logfile '' >/tmp/redis 2>&1 &
redis=$!
for ((i = 0; i < 300; i++)); do
	! grep -q 'Ready to accept' /tmp/redis || break
	sleep 0.2
done
before=$(stat_of h1 smcr_total_server)
h2 redis-benchmark -h 10.1.1.1 -t set,get -n 300 -c 5 -d 1000 -q
$SMCT stat smcr_total_server --ns h1 --min $((before + 10))
no_fallback h1 h2
kill $redis
wait $redis || true

note "on at one end only: falls back"
tcp2smc h1 0
tcp_pair --expect TCP --reason 0x03010000
tcp2smc h1 1
tcp2smc h2 0
tcp_pair --expect TCP

note "bad values are refused"
must_fail tcp2smc h1 2 2>/dev/null
must_fail tcp2smc h1 -1 2>/dev/null

note "off again: new sockets are TCP"
tcp2smc h1 0
before=$(stat_of h2 fallback_total)
tcp_pair --expect TCP
expect_stat h2 fallback_total "$before"
sockets_gone h1 h2
