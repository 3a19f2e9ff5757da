# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Test kernels, one output directory for each content key.

# kernel_fragments FLAVOUR: configuration fragments, later ones on top.
kernel_fragments() {
	local dir=$LAB_TREE/scripts/kernel
	case $1 in
	lean | previous) echo "$dir/lean.config" ;;
	debug) echo "$dir/lean.config" "$dir/debug.config" ;;
	uml) echo "$dir/uml.config" "$dir/uml-debug.config" ;;
	*) die "no such kernel: $1 (lean, debug, uml or previous)" ;;
	esac
}

# series_of FLAVOUR: "previous" is the lean kernel of the series before, for interop runs.
series_of() {
	[[ $1 != previous ]] || echo previous
}

# toolchain: versions of what compiles the kernel, from the build root's package list.
toolchain() {
	awk '/^Package: (rustc|clang-[0-9]+|lld-[0-9]+|bindgen|gcc-[0-9]+)$/ { p = $2 }
	     /^Version: / { if (p) print p, $2; p = "" }' "$(build_root)/var/lib/dpkg/status"
}

kernel_key() {
	local fragments
	read -ra fragments < <(kernel_fragments "$1")
	{
		echo "kernel 1 $1"
		source_pin "$(series_of "$1")"
		toolchain
		sort -u "${fragments[@]}"
	} | key_of
}

kernel_dir() {
	echo "$LAB_CACHE/kernel-$1-$(kernel_key "$1")"
}

kernel_image() {
	case $1 in
	uml) echo "$(kernel_dir uml)/linux" ;;
	*) echo "$(kernel_dir "$1")/arch/x86/boot/bzImage" ;;
	esac
}

# kernel_make FLAVOUR ARG...: make in the kernel's output directory.
kernel_make() {
	local flavour=$1 arch=() dir src
	shift
	[[ $flavour == uml ]] && arch=(ARCH=um)
	dir=/cache/$(basename "$(kernel_dir "$flavour")")
	src=/cache/$(basename "$(readlink -f "$(source_dir "$(series_of "$flavour")")")")
	in_root "$(build_root)" make -C "$src" LLVM=1 O="$dir" "${arch[@]}" -j"$LAB_JOBS" "$@"
}

# config_missing CONFIG FRAGMENT...: wanted lines that the result lacks. merge_config and
# olddefconfig drop a line without an error when a dependency of it is off.
config_missing() {
	local config=$1
	shift
	# A later fragment may change what an earlier one says: only its last word counts.
	awk -F= '/^CONFIG_/ { last[$1] = $0 } END { for (k in last) print last[k] }' "$@" | sort |
		while IFS= read -r line; do
			case $line in
			*=n) ! grep -q "^${line%=n}=" "$config" || echo "$line" ;;
			*) grep -qxF "$line" "$config" || echo "$line" ;;
			esac
		done
}

kernel_configure() {
	local flavour=$1 dir=$2 fragments missing inside
	read -ra fragments < <(kernel_fragments "$flavour")
	inside=()
	for f in "${fragments[@]}"; do
		inside+=("/src/scripts/kernel/$(basename "$f")")
	done
	kernel_make "$flavour" tinyconfig
	in_root "$(build_root)" sh -c "cd '/cache/$(basename "$(readlink -f "$(source_dir "$(series_of "$flavour")")")")' &&
		./scripts/kconfig/merge_config.sh -m -O '/cache/$(basename "$dir")' \
		'/cache/$(basename "$dir")/.config' ${inside[*]}"
	kernel_make "$flavour" olddefconfig
	missing=$(config_missing "$dir/.config" "${fragments[@]}")
	if [[ -n $missing ]]; then
		echo "lines of ${fragments[*]} that are not in the result (a dependency is off):"
		echo "$missing"
		return 1
	fi
	touch "$dir/.smc_rs-configured"
}

kernel_install_modules() {
	local flavour=$1 dir=$2
	kernel_make "$flavour" INSTALL_MOD_PATH="/cache/$(basename "$dir")/modroot" modules_install
	# Nothing in the guest follows these, and they point out of the share.
	rm -f "$dir"/modroot/lib/modules/*/{build,source}
}

# kernel_once FLAVOUR: build unless built. The stamp comes last; make itself resumes
# after a kill.
kernel_once() {
	local flavour=$1 dir target=bzImage
	dir=$(kernel_dir "$flavour")
	[[ -e $dir/.smc_rs-built ]] && return
	[[ $flavour == uml ]] && target=linux
	mkdir -p "$dir"
	[[ -e $dir/.smc_rs-configured ]] ||
		timed "kernel $flavour: configuration" kernel_configure "$flavour" "$dir"
	timed "kernel $flavour: build" kernel_make "$flavour" "$target" modules
	timed "kernel $flavour: modules" kernel_install_modules "$flavour" "$dir"
	touch "$dir/.smc_rs-built"
}

# lab_kernel FLAVOUR: build it if need be; print its image's path.
lab_kernel() {
	kernel_fragments "$1" >/dev/null
	lab_source "$(series_of "$1")"
	locked "kernel-$1" kernel_once "$1"
	kernel_image "$1"
}

# lab_clean [all]: remove what no current key refers to.
lab_clean() {
	local keep f d
	need_root
	if [[ ${1:-} == all ]]; then
		rm -rf --one-file-system "${LAB_CACHE:?}"
		return
	fi
	keep=" $(build_root) $(guest_root) "
	if [[ -d $(build_root) ]]; then
		keep+="$(source_dir) $(readlink -f "$(source_dir)") "
		[[ -z $(source_pin previous) ]] ||
			keep+="$(source_dir previous) $(readlink -f "$(source_dir previous)") "
		for f in lean debug uml previous; do
			keep+="$(kernel_dir "$f") "
		done
	fi
	for d in "$LAB_CACHE"/{build,guest,kernel,linux}-* "$LAB_CACHE"/*.tmp; do
		[[ -e $d && $keep != *" $d "* ]] || continue
		say "removing $d"
		rm -rf --one-file-system "$d"
	done
}
