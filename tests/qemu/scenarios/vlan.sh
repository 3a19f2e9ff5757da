# SMC-R over a VLAN: the GID of the VLAN's device, the tag in the packets.
# limit: 150

net_up
for n in 1 2; do
	ip -n h$n link add link e$n name v$n type vlan id 77
	ip -n h$n addr add 10.7.7.$n/24 dev v$n
	ip -n h$n link set v$n up
done
h2 ping -q -c 1 -W 5 10.7.7.1 >/dev/null
h1 tcpdump -i e1 -w /tmp/cap -U vlan 77 and udp port 4791 2>/dev/null &
dump=$!
sleep 1
server_up 5700 h1 --expect SMC-R
h2 $SMCT client data --addr 10.7.7.1 --port 5700 --expect SMC-R --bytes 500k
server_end 5700
sleep 1
kill $dump
wait $dump || true
n=$(tcpdump -r /tmp/cap 2>/dev/null | wc -l)
note "$n RoCE packets with the tag"
((n > 20)) || fail "RoCE does not go over the VLAN"
no_fallback h1 h2
sockets_gone h1 h2
