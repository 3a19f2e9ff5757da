# The suites of the module, read from their own results; the expected list comes from
# the source, so that a suite that went missing fails.
# limit: 300
# module: none

# The lean kernel's module is built without them; that of user-mode Linux has them.
[[ -e /proc/lockdep_stats || -n ${lab_hostfs:-} ]] || exit 77
[[ -s /lab/suites ]] || fail "no suite in the source"
printf '*' >/sys/module/kunit/parameters/filter_glob
insmod /lab/smc_rs.ko
passed=0
while read -r suite; do
	results=/sys/kernel/debug/kunit/$suite/results
	[[ -e $results ]] || fail "suite $suite did not run"
	n=0 ended=
	while IFS= read -r line; do
		case $line in
		*'not ok '*) fail "suite $suite: $line" ;;
		' '*'ok '*) n=$((n + 1)) ;;
		'ok '*" $suite") ended=1 ;;
		esac
	done <"$results"
	((n > 0)) || fail "suite $suite has no result"
	[[ -n $ended ]] || fail "suite $suite did not end"
	echo "$suite: $n"
	passed=$((passed + n))
done </lab/suites
note "$passed KUnit tests"
rmmod smc_rs
