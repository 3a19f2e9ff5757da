# rmmod is refused while a socket is open, in every state, and clean afterwards.
# limit: 200
# uml: no kretprobes there, which tcp2smc needs

refused() {
	must_fail rmmod smc_rs 2>/dev/null
	note "refused: $1"
}

net_up
note "a listener"
server_up 5600 h1 --expect SMC-R --broken-ok!
refused listener
note "an SMC-R connection"
$SMCT client hold --ms 60000 --port 5600 --expect SMC-R --ns h2 >/tmp/client 2>&1 &
client=$!
await 60 /tmp/client holding
refused connection
kill -9 $client
server_end 5600
sockets_gone h1 h2

note "a transparent socket"
h2 sysctl -q net.smc.tcp2smc=1
server_up 5601 h2 --family tcp --broken-ok!
refused "transparent listener"
kill -9 $SERVER
wait $SERVER || true
h2 sysctl -q net.smc.tcp2smc=0

note "link groups alone do not hold it"
sockets_gone h1 h2
pause 1
rmmod smc_rs
[[ ! -e /sys/module/smc_rs ]]
[[ ! -e /proc/sys/net/smc/tcp2smc ]] || fail "sysctl is left"
h1 rdma res show qp >/tmp/qp
! grep 'type RC' /tmp/qp || fail "a queue pair is left"

note "and again, with traffic; a link group is alive at the end"
insmod /lab/smc_rs.ko
pair data --expect SMC-R --bytes 300k
sockets_gone h1 h2
