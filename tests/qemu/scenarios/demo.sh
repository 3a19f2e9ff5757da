# The main job, shown: SMC-R between two sockets, an unmodified redis, and a fallback.
# Each part asks the kernel for the transport of its sockets.
# limit: 170

net_up
expect_stat h1 fallback_total 0
expect_stat h2 fallback_total 0

note "64 MiB from an AF_SMC client to an AF_SMC server"
pair data --expect SMC-R --bytes 64m --back 1 --chunk 1m >/tmp/data
cat /tmp/data
file_has /tmp/data 'served job=Data received=67108864 '
no_fallback h1 h2
echo "demo: smc-r OK bytes=67108864 sha256=match transport=SMC-R"

note "redis-server and redis-benchmark, as Debian ships them"
for ns in h1 h2; do
	ip netns exec $ns sysctl -q net.smc.tcp2smc=1
done
ip netns exec h1 redis-server --port 6379 --bind 10.1.1.1 --save '' --appendonly no --protected-mode no \
	--logfile '' >/tmp/redis 2>&1 &
redis=$!
for ((i = 0; i < 300; i++)); do
	! grep -q 'Ready to accept' /tmp/redis || break
	sleep 0.1
done
requests=2000
clients=8
server_before=$(stat_of h1 smcr_total_server)
client_before=$(stat_of h2 smcr_total_client)
ip netns exec h2 redis-benchmark -h 10.1.1.1 -t set,get -n $requests -c $clients -d 256 --csv >/tmp/bench 2>/tmp/bench.err &
bench=$!
# Every socket of redis must be listed as SMC-R while it runs.
seen=0
while [[ -e /proc/$bench/exe ]]; do
	h2 cat /proc/net/smc >/tmp/sockets || true
	n=$(grep -c 'SMC-R' /tmp/sockets || true)
	((n <= seen)) || seen=$n
	pause 0.2
done
wait $bench || fail "redis-benchmark: $(cat /tmp/bench.err)"
cat /tmp/bench
grep -q '^"SET",' /tmp/bench
grep -q '^"GET",' /tmp/bench
((seen >= clients)) || fail "only $seen sockets were seen on SMC-R"
# At least the clients of each of the two tests, and nobody fell back.
$SMCT stat smcr_total_server --ns h1 --min $((server_before + 2 * clients))
$SMCT stat smcr_total_client --ns h2 --min $((client_before + 2 * clients))
no_fallback h1 h2
kill $redis
wait $redis || true
echo "demo: redis OK transport=SMC-R requests=$((2 * requests))"

note "an AF_SMC client against a plain TCP server"
h1 sysctl -q net.smc.tcp2smc=0
pair data --family smc --server-family tcp --expect TCP --reason 0x03010000 --bytes 1m
expect_stat h2 fallback_0x03010000 1
echo "demo: fallback OK reason=0x03010000"
sockets_gone h1 h2
