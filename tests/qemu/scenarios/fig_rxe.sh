# Measures over the veth of two namespaces; the host makes figures of the lines "raw:".
# limit: 3000

net_up
# The same for both modules, where a module has the setting at all.
for ns in h1 h2; do
	for set in wmem=65536 rmem=65536 autocorking_size=65536 smcr_max_links_per_lgr=1; do
		[[ ! -e /proc/sys/net/smc/${set%=*} ]] || ip netns exec $ns sysctl -q "net.smc.$set" || true
	done
done
if [[ $FAMILY == tcp ]]; then
	expect=TCP
else
	expect=SMC-R
	# The first connection after a device appeared may be slow or fall back.
	for ((i = 0; i < 20; i++)); do
		! pair data --expect any --bytes 10k >/tmp/warm || ! grep -q 'served.*transport=SMC-R' /tmp/warm || break
		sleep 0.5
	done
	pair data --expect SMC-R --bytes 1m
fi

# measure NAME JOB ARG...
measure() {
	local name=$1
	shift
	pair "$@" --family "$FAMILY" --expect $expect >/tmp/measure
	cat /tmp/measure
	sed -n "s/^time .* ns_each=\([0-9.]*\).*/raw: $name \1/p" /tmp/measure
}

measure rxe_rr_64 pingpong --size 64 --rounds 2000
measure rxe_rr_4k pingpong --size 4k --rounds 1000
measure rxe_stream_1k stream --size 1k --bytes 4m
measure rxe_stream_64k stream --size 64k --bytes 16m
measure rxe_conn short --rounds 200 --warm 5 --count 206 --inline!
