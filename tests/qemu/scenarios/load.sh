# insmod, rmmod, insmod again; no coexistence with upstream's smc.ko.
# limit: 120
# module: none

load() { insmod /lab/smc_rs.ko "$@"; }
echo nothing >/sys/module/kunit/parameters/filter_glob

note "load and unload, ten times"
for i in 1 2 3 4 5 6 7 8 9 10; do
	load
	grep -q '^smc_rs ' /proc/modules
	[[ -e /proc/net/smc && -e /proc/net/smc_stat ]] || fail "no /proc/net/smc"
	rmmod smc_rs
	[[ ! -e /proc/net/smc ]] || fail "/proc/net/smc is left"
	must_fail $SMCT socket smc 2>/dev/null
done

note "refused with upstream's module loaded"
modprobe smc
must_fail load
! grep -q '^smc_rs ' /proc/modules
dmesg | tail -n 5 | grep -i smc_rs || fail "no message says why"
[[ ! -e /proc/net/smc_stat ]] || fail "something is left registered"
modprobe -r smc

note "works again after that"
load

note "upstream's module is refused with ours loaded"
must_fail modprobe smc
! grep -q '^smc ' /proc/modules
$SMCT socket smc
rmmod smc_rs
