# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The module and the guest test program, built in the build root.

# out_dir WHAT: output directory of this source tree for WHAT.
out_dir() {
	local dir
	dir="$LAB_CACHE/out-$(echo "$LAB_TREE" | key_of)/$1"
	mkdir -p "$dir"
	echo "$dir"
}

# module_make FLAVOUR ARG...: the module's own build, against a test kernel. The debug
# kernel gets the KUnit suites; warnings are errors.
module_make() {
	local flavour=$1 kunit='' arch=()
	shift
	[[ $flavour == lean ]] || kunit=y
	if [[ $flavour == uml ]]; then
		# The loader of user-mode Linux does not know GOT relocations.
		arch=(ARCH=um 'RUSTFLAGS_MODULE=-Crelocation-model=static -Ccode-model=large')
	fi
	LAB_OUT=${MODULE_OUT:-$(out_dir "module-$flavour")} in_root "$(build_root)" \
		make -C "/cache/$(basename "$(kernel_dir "$flavour")")" LLVM=1 M=/src MO=/out \
		SMC_RS_KUNIT="$kunit" W=e "${arch[@]}" -j"$LAB_JOBS" "$@"
}

# module_clippy: the same build under clippy, in a directory of its own.
module_clippy() {
	MODULE_OUT=$(out_dir "clippy-$1") module_make "$1" CLIPPY=1
}

# lab_module FLAVOUR: build smc_rs.ko (or take SMC_RS_MODULE), print its path.
lab_module() {
	if [[ -n ${SMC_RS_MODULE:-} ]]; then
		[[ -e $SMC_RS_MODULE ]] || die "SMC_RS_MODULE=$SMC_RS_MODULE: no such file"
		echo "$SMC_RS_MODULE"
		return
	fi
	lab_kernel "$1" >/dev/null
	locked "module-$(basename "$(dirname "$(out_dir x)")")-$1" \
		timed "module for the $1 kernel" module_make "$1"
	echo "$(out_dir "module-$1")/smc_rs.ko"
}

# guest_cargo ARG...: cargo of the build root for tests/guest, so that the program's
# libc is the guest's.
guest_cargo() {
	LAB_OUT=$(out_dir guest) in_root "$(build_root)" \
		env CARGO_TARGET_DIR=/out cargo "$@" --manifest-path /src/tests/guest/Cargo.toml
}

# lab_smct: build the guest test program, print its path.
lab_smct() {
	lab_build_root
	locked "smct-$(basename "$(dirname "$(out_dir x)")")" \
		timed "guest test program" guest_cargo build --release --locked
	echo "$(out_dir guest)/release/smct"
}
