# kill -9 of either end, idle and in the middle of data: the other end hears of it.
# limit: 200

net_up
port=5300

# kill_one END JOB...: END is client or server.
kill_one() {
	local end=$1 client rc=0
	shift
	port=$((port + 1))
	note "kill the $end: $*"
	server_up $port h1 --expect SMC-R --broken-ok!
	$SMCT client "$@" --port $port --expect SMC-R --broken-ok! --ns h2 >/tmp/client.$port 2>&1 &
	client=$!
	# Until it is connected and, for a stream, in the middle of it.
	pause 4
	[[ -e /proc/$client && -e /proc/$SERVER ]] || fail "one ended: $(cat /tmp/client.$port /tmp/server.$port)"
	expect_stat h2 smcr_active 1
	if [[ $end == client ]]; then
		kill -9 $client
		wait $client || true
		server_end $port
	else
		kill -9 $SERVER
		wait $SERVER || true
		wait $client || rc=$?
		((rc == 0)) || fail "client: status $rc"
	fi
	cat /tmp/client.$port
	sockets_gone h1 h2
}

kill_one client hold --ms 60000
kill_one client stream --size 64k --bytes 100000m
kill_one client data --bytes 100000m
kill_one server stream --size 64k --bytes 100000m
kill_one server data --bytes 100000m

note "works as before"
pair data --expect SMC-R --bytes 300k
no_fallback h1 h2
