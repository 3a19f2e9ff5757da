# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The demo and the whole test run.

# lab_demo: the three parts on the lean kernel; success only with all three lines.
lab_demo() {
	local logs module smct start n rc=0
	lab_guest_root
	lab_kernel lean >/dev/null
	module=$(lab_module lean)
	smct=$(lab_smct)
	logs=${SMC_RS_LOGS:-$(mktemp -d "${TMPDIR:-/tmp}/smc_rs-demo.XXXXXX")}
	start=$SECONDS
	SMC_RS_LOGS=$logs vm_run lean "$module" "$smct" demo >&2 || rc=1
	grep -h '^demo: ' "$logs"/boot*/out/demo.log || true
	n=$(cat "$logs"/boot*/out/demo.log | grep -cE '^demo: (smc-r|redis|fallback) OK ' || true)
	say "the demo took $((SECONDS - start)) s"
	((rc == 0 && n == 3)) || die "the demo failed ($n of 3 parts; logs: $logs)"
}

# test_step NAME CMD...: one step of the run; a line with its verdict.
test_step() {
	local name=$1 start=$SECONDS rc=0
	shift
	say "$name ..."
	set +e
	(
		set -euo pipefail
		"$@"
	) >"$TEST_LOGS/$name.log" 2>&1
	rc=$?
	set -e
	if ((rc == 0)); then
		test_verdict "ok $name $((SECONDS - start))"
	else
		tail -n 60 "$TEST_LOGS/$name.log" >&2
		test_verdict "not ok $name $((SECONDS - start)) # exit status $rc"
	fi
}

# test_verdict LINE: counts and prints a result line.
test_verdict() {
	case $1 in
	'ok '*) PASSED=$((PASSED + 1)) ;;
	'not ok '*) FAILED=$((FAILED + 1)) ;;
	*) return ;;
	esac
	echo "$1"
}

check_format() {
	in_root "$(build_root)" sh -c '
		cd /src
		rustfmt --check --edition 2021 smc_rs.rs
		rustfmt --check --edition 2021 tests/guest/src/main.rs
		find tests/host tests/fuzz tests/proof -name "*.rs" -not -path "*/target/*" -exec rustfmt --check --edition 2021 {} +'
}

# host_cargo ARG...: cargo of the build root on the host crate.
host_cargo() {
	LAB_OUT=$(out_dir host) in_root "$(build_root)" \
		env CARGO_TARGET_DIR=/out cargo "$1" --manifest-path /src/tests/host/Cargo.toml "${@:2}"
}

check_lints() {
	guest_cargo clippy --release --locked -- -D warnings
	host_cargo clippy --all-targets --locked -- -D warnings
	fuzz_cargo clippy --locked --no-default-features -- -D warnings
}

# host_tests: cargo test; each of its tests counts.
host_tests() {
	local log=$TEST_LOGS/host_tests.log rc=0 ok bad
	say "host_tests ..."
	# Every file in tests/ includes the protocol core and with it the core's own tests: once is
	# enough.
	host_cargo test --locked --lib >"$log" 2>&1 || rc=$?
	host_cargo test --locked --tests -- --skip proto:: >>"$log" 2>&1 || rc=$?
	ok=$(awk '/^test result:/ { n += $4 } END { print n + 0 }' "$log")
	bad=$(awk '/^test result:/ { n += $6 } END { print n + 0 }' "$log")
	PASSED=$((PASSED + ok))
	FAILED=$((FAILED + bad))
	if ((rc != 0)); then
		tail -n 60 "$log" >&2
		((bad > 0)) || FAILED=$((FAILED + 1))
	fi
	if ((ok == 0)); then
		test_verdict "not ok host_tests 0 # no test ran"
	else
		echo "host tests: $ok passed, $bad failed"
	fi
}

# lab_test: everything; the last line is the count.
lab_test() {
	local start=$SECONDS line module smct names
	PASSED=0 FAILED=0
	TEST_LOGS=${SMC_RS_LOGS:-$(mktemp -d "${TMPDIR:-/tmp}/smc_rs-test.XXXXXX")}
	mkdir -p "$TEST_LOGS"
	lab_setup
	lab_kernel debug >/dev/null
	start=$SECONDS
	test_step format check_format
	test_step layers "$LAB_TREE/scripts/check-layers"
	test_step lints check_lints
	test_step clippy module_clippy debug
	host_tests
	test_step coverage check_coverage
	test_step module module_make debug
	test_step smct lab_smct
	module="$(out_dir module-debug)/smc_rs.ko"
	smct="$(out_dir guest)/release/smct"
	if [[ -e $module && -e $smct ]]; then
		mapfile -t names < <(scenario_names)
		SMC_RS_LOGS=$TEST_LOGS/vm vm_run debug "$module" "$smct" "${names[@]}" >"$TEST_LOGS/vm.results" || true
		while IFS= read -r line; do
			test_verdict "$line"
		done <"$TEST_LOGS/vm.results"
		# Every scenario must have a verdict.
		for line in "${names[@]}"; do
			grep -qE "^(skip|ok|not ok) $line " "$TEST_LOGS/vm.results" ||
				test_verdict "not ok $line 0 # no result"
		done
	else
		test_verdict "not ok vm 0 # nothing to run"
	fi
	say "tests took $((SECONDS - start)) s; logs: $TEST_LOGS"
	echo "$PASSED passed, $FAILED failed"
	((FAILED == 0))
}
