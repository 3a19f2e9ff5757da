# rmmod is refused while a socket is open, in every state, and clean afterwards.
# limit: 200

refused() {
	must_fail rmmod smc_rs 2>/dev/null
	note "refused: $1"
}

net_up
note "a listener"
server_up 5600 h1 --expect SMC-R --broken-ok!
refused listener
note "an SMC-R connection"
h2 $SMCT client hold --ms 60000 --port 5600 --expect SMC-R >/tmp/client 2>&1 &
client=$!
for ((i = 0; i < 300; i++)); do
	! grep -q '^holding' /tmp/client || break
	sleep 0.1
done
grep '^holding' /tmp/client || fail "client is not connected: $(cat /tmp/client)"
refused "connection"
kill -9 $client
server_end 5600
sockets_gone h1 h2

note "a transparent socket"
h2 sysctl -q net.smc.tcp2smc=1
server_up 5601 h2 --family tcp --broken-ok!
refused "transparent listener"
kill -9 $SERVER
pkill -9 -f 'smct server --port 5601' || true
wait $SERVER || true
h2 sysctl -q net.smc.tcp2smc=0

note "link groups alone do not hold it"
for ((i = 0; i < 100; i++)); do
	[[ $(awk '$1 == "smc_rs" { print $3 }' /proc/modules) != 0 ]] || break
	sleep 0.1
done
rmmod smc_rs
! grep -q '^smc_rs ' /proc/modules
[[ ! -e /proc/sys/net/smc/tcp2smc ]] || fail "sysctl is left"
h1 rdma res show qp | grep -v GSI || true
must_fail h1 rdma res show qp | grep -q 'type RC'

note "and again, with traffic"
insmod /lab/smc_rs.ko
server_up 5602 h1 --expect SMC-R
h2 $SMCT client data --port 5602 --expect SMC-R --bytes 1m
server_end 5602
sockets_gone h1 h2
note "with the namespaces still there and a link group alive"
rmmod smc_rs
insmod /lab/smc_rs.ko
