# One thread connects before it accepts, as a client and server in one event loop do.
# limit: 120

net_up
for family in smc ipproto; do
	for check in connect_before_accept many_before_accept; do
		$SMCT check $check --family $family --server-ns h1 --client-ns h2 --expect SMC-R
	done
done
no_fallback h1 h2
sockets_gone h1 h2
