# A host without an enterprise id offers nothing: reason 0x03030008. Wrong ids are refused at load.
# limit: 150
# module: none

UNDER_TEST=smc_rs
# Closing connections keep the module for a moment.
unload() {
	local i
	sockets_gone h1 h2
	net_down || true # its steps may find nothing
	for ((i = 0; i < 50; i++)); do
		! rmmod smc_rs 2>/dev/null || return 0
		pause 0.2
	done
	fail "the module does not unload"
}

echo nothing >/sys/module/kunit/parameters/filter_glob
note "ids that are none"
must_fail insmod /lab/smc_rs.ko eids=lower-case
must_fail insmod /lab/smc_rs.ko eids=TWICE,TWICE
must_fail insmod /lab/smc_rs.ko eids=A,B,C,D,E,F,G,H,I
[[ ! -e /proc/net/smc_stat ]] || fail "something is left registered"

note "none"
insmod /lab/smc_rs.ko eids=
net_up
pair data --expect TCP --bytes 100k
expect_stat h2 fallback_0x03030008 1
unload

note "one of its own"
insmod /lab/smc_rs.ko eids=SOME.OTHER-ID
net_up
pair data --expect SMC-R --bytes 100k
no_fallback h1 h2
unload
