# The listener's side of a connection with each allocation of socket(), bind(), listen() and
# accept() failing in turn, whoever makes it: TCP instead, or a clean error at both ends; the next
# connection works.
# limit: 90
# uml: no fault injection there

net_up
# Each client address gets a link group of its own.
ip -n h1 addr add 10.7.255.1/16 dev e1
ip -n h2 addr add 10.7.0.2/16 dev e2
ip -n h2 route add local 10.7.0.0/17 dev lo

for op in listen accept; do
	note "$op"
	$SMCT failnth $op --min 3 --verbose!
done
sockets_gone h1 h2
