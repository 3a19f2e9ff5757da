# The suites of the module, read from their own results; the expected list comes from
# the source, so that a suite that went missing fails.
# limit: 300
# module: none

[[ -s /lab/suites ]] || fail "no suite in the source"
echo '*' >/sys/module/kunit/parameters/filter_glob
insmod /lab/smc_rs.ko
passed=0
while read -r suite; do
	results=/sys/kernel/debug/kunit/$suite/results
	[[ -e $results ]] || fail "suite $suite did not run"
	cat "$results"
	if grep -qE '^ *not ok' "$results"; then
		fail "suite $suite failed"
	fi
	n=$(grep -cE '^ +ok ' "$results" || true)
	((n > 0)) || fail "suite $suite has no result"
	grep -qE "^ok [0-9]+ $suite" "$results" || fail "suite $suite did not end"
	passed=$((passed + n))
done </lab/suites
note "$passed KUnit tests in $(wc -l </lab/suites) suites"
rmmod smc_rs
