# The same calls on sockets that fall back to TCP: no RDMA device, and IPv6.
# limit: 400

net_pair
for family in smc ipproto; do
	note "$family without RDMA"
	$SMCT check all --family $family --server-ns h1 --client-ns h2 --expect TCP ${SKIP:+--skip $SKIP}
done
for family in tcp6 smc6 ipproto6; do
	note "$family"
	$SMCT check all --family $family --addr fd00:1::1 --server-ns h1 --client-ns h2 \
		--expect TCP ${SKIP:+--skip $SKIP}
done
sockets_gone h1 h2
