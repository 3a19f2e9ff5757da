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
	h2 $SMCT client "$@" --port $port --expect SMC-R --broken-ok! >/tmp/client.$port 2>&1 &
	client=$!
	# Until it is connected and, for a stream, in the middle of it.
	sleep 3
	kill -0 $client || fail "client ended: $(cat /tmp/client.$port)"
	if [[ $end == client ]]; then
		kill -9 $client
		wait $client || true
		server_end $port
	else
		pkill -9 -f "smct server --port $port"
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
server_up 5399 h1 --expect SMC-R
h2 $SMCT client data --port 5399 --expect SMC-R --bytes 1m
server_end 5399
no_fallback h1 h2
