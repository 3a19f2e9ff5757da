# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Fuzzing of the protocol core (tests/fuzz), and what the malformed messages cover.

# What cargo-fuzz adds to a build; this way the build root's compiler does without it.
FUZZ_FLAGS=(
	--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1
	-Cllvm-args=-sanitizer-coverage-level=4
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters
	-Cllvm-args=-sanitizer-coverage-pc-table
	-Cllvm-args=-sanitizer-coverage-trace-compares
	-Cllvm-args=-simplifycfg-branch-fold-threshold=0
)

# Percent of the lines of proto/wire and of the stream parser.
COVERAGE_LEAST=95

# fuzz_root CMD...: run in the build root, with what fuzzing keeps at /out.
fuzz_root() {
	LAB_OUT=$(out_dir fuzz) in_root "$(build_root)" "$@"
}

# fuzz_cargo ARG...: cargo of the build root on the crate, without what only a fuzzer needs.
fuzz_cargo() {
	fuzz_root env CARGO_TARGET_DIR=/out/plain RUSTFLAGS='--cfg fuzzing' \
		cargo "$1" --manifest-path /src/tests/fuzz/Cargo.toml "${@:2}"
}

fuzz_target() {
	[[ -e "$LAB_TREE/tests/fuzz/fuzz_targets/$1.rs" ]] ||
		die "no such target: $1 (there are: $(cd "$LAB_TREE/tests/fuzz/fuzz_targets" && echo ./*.rs |
			sed 's,\./,,g; s,\.rs,,g'))"
}

# fuzz_build TARGET: build it.
fuzz_build() {
	fuzz_root env CARGO_TARGET_DIR=/out CXX=clang++ RUSTFLAGS="${FUZZ_FLAGS[*]}" \
		cargo build --release --locked --target x86_64-unknown-linux-gnu \
		--manifest-path /src/tests/fuzz/Cargo.toml --bin "$1"
}

# fuzz_run TARGET SECONDS: fuzz; inputs that fail are left in the output directory.
fuzz_run() {
	local target=$1 seconds=$2 dir
	dir="$(out_dir fuzz)"
	mkdir -p "$dir/corpus/$target" "$dir/artifacts"
	# The tree is read-only there: new inputs go into the first directory.
	fuzz_root nice -n 19 "/out/x86_64-unknown-linux-gnu/release/$target" \
		-max_total_time="$seconds" -max_len=4096 -timeout=20 -print_final_stats=1 \
		-artifact_prefix="/out/artifacts/$target-" \
		"/out/corpus/$target" "/src/tests/fuzz/corpus/$target"
}

# fuzz_minimize TARGET: the fewest inputs that cover what all inputs found so far cover
# become the corpus in the tree.
fuzz_minimize() {
	local target=$1 dir
	dir="$(out_dir fuzz)"
	rm -rf "$dir/minimal"
	mkdir -p "$dir/minimal" "$dir/corpus/$target"
	fuzz_root "/out/x86_64-unknown-linux-gnu/release/$target" -set_cover_merge=1 \
		/out/minimal "/out/corpus/$target" "/src/tests/fuzz/corpus/$target"
	rm -rf "$LAB_TREE/tests/fuzz/corpus/$target"
	cp -r "$dir/minimal" "$LAB_TREE/tests/fuzz/corpus/$target"
	say "$(find "$LAB_TREE/tests/fuzz/corpus/$target" -type f | wc -l) inputs are left"
}

# lab_fuzz TARGET [SECONDS|minimize]
lab_fuzz() {
	fuzz_target "$1"
	lab_build_root
	fuzz_build "$1"
	case ${2:-60} in
	minimize) fuzz_minimize "$1" ;;
	*) fuzz_run "$1" "${2:-60}" ;;
	esac
}

# coverage_of PROFILE...: of each file of proto, how many lines were run and how many there
# are. Derived code stands in the line of its attribute and does not count.
coverage_of() {
	fuzz_root sh -euc '
		llvm-profdata merge -sparse -o /out/coverage.profdata "$@"
		llvm-cov export -format=lcov -instr-profile=/out/coverage.profdata \
			/out/coverage/debug/replay >/out/coverage.lcov' sh "$@"
	awk -v tree="$LAB_TREE" -F '[:,]' '
		$1 == "SF" {
			name = $2
			proto = sub(".*/proto/", "proto/", name)
			lines = 0
			while (proto && (getline text <(tree "/" name)) > 0)
				code[++lines] = text
		}
		$1 == "DA" && proto && code[$2] !~ /^ *#\[derive/ { all++; run += ($3 > 0) }
		$1 == "end_of_record" {
			if (proto) print name, run + 0, all + 0
			run = all = 0
		}' "$(out_dir fuzz)/coverage.lcov"
}

# coverage_replay PROFILE ARG...: replay something with counters.
coverage_replay() {
	fuzz_root env LLVM_PROFILE_FILE="/out/$1.profraw" /out/coverage/debug/replay "${@:2}"
}

coverage_build() {
	fuzz_root env CARGO_TARGET_DIR=/out/coverage LLVM_PROFILE_FILE=/out/coverage/build.profraw \
		RUSTFLAGS='--cfg fuzzing -Cinstrument-coverage' \
		cargo build --locked --no-default-features --bin replay \
		--manifest-path /src/tests/fuzz/Cargo.toml
}

# check_coverage: the malformed messages must reach nearly all lines of the parsers.
check_coverage() {
	coverage_build
	coverage_replay malformed malformed
	coverage_of /out/malformed.profraw | awk -v least="$COVERAGE_LEAST" '
		$1 !~ "^proto/(wire/|clc/stream)" { next }
		{ printf "%-28s %4d of %4d lines\n", $1, $2, $3; got += $2; all += $3 }
		END {
			if (!all) { print "nothing was measured"; exit 1 }
			printf "parsers: %.1f %% of %d lines (at least %d %%)\n", 100 * got / all, all, least
			exit 100 * got < least * all
		}'
}

# lab_coverage: what the corpus covers of the whole protocol core, and what the malformed
# messages alone cover of the parsers.
lab_coverage() {
	local target targets
	lab_build_root
	coverage_build
	mapfile -t targets < <(cd "$LAB_TREE/tests/fuzz/corpus" && ls)
	for target in "${targets[@]}"; do
		coverage_replay "corpus-$target" "$target" "/src/tests/fuzz/corpus/$target" >&2
	done
	coverage_of $(printf "/out/corpus-%s.profraw " "${targets[@]}") |
		awk '{ printf "%-28s %4d of %4d lines\n", $1, $2, $3; got += $2; all += $3 }
			END { printf "corpus: %.1f %% of %d lines\n", 100 * got / all, all }'
	check_coverage
}

# The prover's solver, from PyPI.
Z3_VERSION=5.4.1.0

# z3_python: a python3 that has the solver; made once.
z3_python() {
	local dir="$LAB_CACHE/z3-$Z3_VERSION"
	if [[ ! -e "$dir/bin/z3" ]]; then
		rm -rf "$dir"
		python3 -m venv "$dir" >&2 && "$dir/bin/pip" install -q "z3-solver==$Z3_VERSION" >&2 ||
			die "no z3: python3 with venv and PyPI are needed"
	fi
	echo "$dir/bin/python3"
}

# lab_prove: proves the arithmetic of rings, cursors and size codes (tests/proof).
lab_prove() {
	local python
	lab_build_root
	python=$(z3_python)
	# Optimized twice, since the first time leaves an iterator in memory.
	LAB_OUT=$(out_dir prove) in_root "$(build_root)" sh -euc '
		rustc --edition 2021 --crate-type lib --crate-name proofs --emit=llvm-ir -Copt-level=3 \
			-Cpanic=abort -Coverflow-checks=on -Cdebug-assertions=on -Ccodegen-units=1 \
			-Cno-vectorize-loops -Cno-vectorize-slp -o /out/first.ll /src/tests/proof/proofs.rs
		opt -S -passes="default<O3>" -o /out/proofs.ll /out/first.ll'
	"$python" "$LAB_TREE/tests/proof/prove.py" "$(out_dir prove)/proofs.ll" \
		"$LAB_TREE/tests/proof/proofs.rs"
}

# lab_miri: the host tests under Miri, with few cases of each property. Miri comes only with
# nightly compilers, which Debian does not have: this one runs on the host's rustup.
lab_miri() {
	cargo +nightly miri --version >&2 ||
		die "no Miri: rustup toolchain install nightly -c miri -c rust-src"
	CARGO_TARGET_DIR=$(out_dir miri) MIRIFLAGS=-Zmiri-disable-isolation \
		PROPTEST_CASES=${PROPTEST_CASES:-4} \
		cargo +nightly miri test --locked --manifest-path "$LAB_TREE/tests/host/Cargo.toml" "$@"
}
