# insmod, rmmod, insmod again; no coexistence with upstream's smc.ko.
# limit: 150
# uml: no, KASAN there keeps its marks of an unloaded smc.ko
# module: none

load() { insmod /lab/smc_rs.ko "$@"; }
echo nothing >/sys/module/kunit/parameters/filter_glob

note "load and unload"
for i in 1 2 3 4 5; do
	load
	[[ -e /sys/module/smc_rs ]]
	[[ -e /proc/net/smc && -e /proc/net/smc_stat ]] || fail "no /proc/net/smc"
	$SMCT socket smc
	rmmod smc_rs
	[[ ! -e /proc/net/smc ]] || fail "/proc/net/smc is left"
done
must_fail $SMCT socket ipproto

note "refused with upstream's module loaded"
modprobe smc
must_fail load
[[ ! -e /sys/module/smc_rs ]]
dmesg | tail -n 5 | grep -i smc_rs || fail "no message says why"
[[ ! -e /proc/net/smc_stat ]] || fail "something is left registered"
modprobe -r smc

note "works again after that; then upstream's is refused"
load
must_fail modprobe smc
[[ ! -e /sys/module/smc ]]
$SMCT socket smc
rmmod smc_rs
