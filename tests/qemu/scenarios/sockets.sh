# Calls of a stream socket, over SMC-R and over TCP (the reference: it must pass too).
# limit: 400

net_up
$SMCT sockets
for family in tcp smc ipproto; do
	expect=SMC-R
	[[ $family != tcp ]] || expect=TCP
	note "$family"
	$SMCT check all --family $family --server-ns h1 --client-ns h2 --expect $expect ${SKIP:+--skip $SKIP}
done
no_fallback h1 h2
sockets_gone h1 h2
