# Unmodified programs over SMC-R where a namespace's switch is on, and only there.
# limit: 300

net_up
tcp2smc() { ip netns exec "$1" sysctl -q "net.smc.tcp2smc=$2"; }

# pair PORT EXPECT [ARG...]: a TCP client and a TCP server.
pair() {
	local port=$1 expect=$2
	shift 2
	server_up "$port" h1 --family tcp --expect "$expect"
	h2 $SMCT client data --family tcp --port "$port" --expect "$expect" --bytes 500k "$@"
	server_end "$port"
}

note "off by default"
for ns in h1 h2; do
	[[ $(ip netns exec $ns sysctl -n net.smc.tcp2smc) == 0 ]] || fail "tcp2smc is on in $ns"
done
pair 5500 TCP

note "on in both"
tcp2smc h1 1
tcp2smc h2 1
pair 5501 SMC-R
[[ $(sysctl -n net.smc.tcp2smc) == 0 ]] || fail "the switch is not per namespace"
no_fallback h1 h2

note "an unmodified program: redis"
h1 redis-server --port 6379 --bind 10.1.1.1 --save '' --appendonly no --protected-mode no >/tmp/redis 2>&1 &
for ((i = 0; i < 300; i++)); do
	! grep -q 'Ready to accept' /tmp/redis || break
	sleep 0.1
done
before=$(stat_of h1 smcr_total_server)
h2 redis-cli -h 10.1.1.1 set key value | grep -q OK
[[ $(h2 redis-cli -h 10.1.1.1 get key) == value ]] || fail "redis: wrong value"
h2 redis-benchmark -h 10.1.1.1 -t set,get -n 400 -c 5 -d 1000 -q
(($(stat_of h1 smcr_total_server) >= before + 7)) || fail "redis did not use SMC-R"
no_fallback h1 h2
h1 redis-cli -h 10.1.1.1 shutdown nosave || true
wait

note "on at one end only: falls back"
tcp2smc h1 0
pair 5502 TCP --reason 0x03010000
tcp2smc h1 1
tcp2smc h2 0
pair 5503 TCP

note "bad values are refused"
must_fail tcp2smc h1 2 2>/dev/null
must_fail tcp2smc h1 -1 2>/dev/null

note "off again: new sockets are TCP"
tcp2smc h1 0
before=$(stat_of h2 fallback_total)
pair 5504 TCP
expect_stat h2 fallback_total "$before"
sockets_gone h1 h2
