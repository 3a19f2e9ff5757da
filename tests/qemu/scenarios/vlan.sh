# SMC-R over a VLAN: the GID of the VLAN's device, the tag in the packets.
# limit: 150

net_up
for n in 1 2; do
	ip -n h$n -batch - <<-END
		link add link e$n name v$n type vlan id 77
		addr add 10.7.7.$n/24 dev v$n
		link set v$n up
	END
done
ip netns exec h1 tcpdump -i e1 -w /tmp/cap -U vlan 77 and udp port 4791 >/tmp/dump 2>&1 &
dump=$!
await 60 /tmp/dump 'tcpdump: listening'
pair data --addr 10.7.7.1 --expect SMC-R --bytes 200k
pause 1
kill $dump
wait $dump || true
n=$(tcpdump -r /tmp/cap 2>/dev/null | wc -l)
note "$n RoCE packets with the tag"
((n > 20)) || fail "RoCE does not go over the VLAN"
no_fallback h1 h2
sockets_gone h1 h2
