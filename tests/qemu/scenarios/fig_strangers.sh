# Peers that offer SMC and stall at each step; how long connect() takes for others meanwhile.
# limit: 3000

clients=20 rounds=15 stalled=16
net_star c $clients 2
net_star s 3 3

# What a namespace sends is lost from some step on. CLC types stand 4 bytes behind a TCP header
# of 32 bytes.
stall() {
	ip netns exec "$1" nft -f - <<-END
		table inet stall {
			chain out {
				type filter hook output priority 0
				$2 drop
			}
		}
	END
}
stall s1 'meta l4proto tcp @th,288,8 1 @th,256,32 0xe2d4c3d9' # no PROPOSAL
stall s2 'meta l4proto tcp @th,288,8 3 @th,256,32 0xe2d4c3d9' # no CONFIRM
stall s3 'udp dport 4791'                                     # no CONFIRM LINK

crowd() {
	$SMCT crowd --server-ns h1 --clients $clients --rounds $rounds --expect SMC-R >/tmp/crowd
	cat /tmp/crowd
	sed -n "s/^crowd .* p99_ns=\([0-9]*\).*/raw: $1 \1/p" /tmp/crowd
}

crowd warm >/dev/null
crowd alone
# They connect to the same machine, on a port of their own.
server_up 7000 h1 --count 1000 --broken-ok!
for n in 1 2 3; do
	$SMCT client hold --ms 20000 --parallel $stalled --ns s$n --addr 10.1.1.1 --port 7000 \
		--expect any --broken-ok! >"/tmp/stalled.$n" 2>&1 &
done
pause 1
h1 cat /proc/net/smc >/tmp/now
n=$(grep -c HANDSHAKE /tmp/now)
note "$n handshakes are under way at the server"
((n >= 3 * stalled - 5)) || fail "the strangers do not stall: $(cat /tmp/now)"
crowd strangers
kill -9 "$SERVER"
