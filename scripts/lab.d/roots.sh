# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Build root, guest root and kernel source, all of one Debian release.

# One toolchain for kernel, module and guest program, whatever the host runs.
BUILD_PACKAGES=(
	bc bindgen bison ca-certificates cargo clang cpio flex gcc kmod libc6-dev libelf-dev
	libibverbs-dev libssl-dev lld llvm make perl pkg-config python3 rsync rust-clippy
	rust-src rustc rustfmt xz-utils zstd
)

# What scenarios use; small, because every boot reads it through 9p.
GUEST_PACKAGES=(
	ethtool ibverbs-providers iproute2 iputils-ping kmod libibverbs1 mount nftables procps
	redis-server redis-tools strace tcpdump
)

build_key() {
	printf '%s\n' 'build 1' "$LAB_RELEASE" "${BUILD_PACKAGES[@]}" | key_of
}

guest_key() {
	{
		printf '%s\n' 'guest 1' "$LAB_RELEASE" "${GUEST_PACKAGES[@]}"
		cat "$LAB_TREE/tests/qemu/stub-init"
	} | key_of
}

build_root() {
	echo "$LAB_CACHE/build-$(build_key)"
}

guest_root() {
	echo "$LAB_CACHE/guest-$(guest_key)"
}

# debootstrap_to DIR PACKAGE...: a minimal root of the release, in DIR.
debootstrap_to() {
	local dir=$1 mirror include
	shift
	include=$(IFS=,; echo "$*")
	mirror=$(host_mirror)
	rm -rf --one-file-system "$dir"
	mmdebstrap --variant=minbase --keyring="$LAB_KEYRING" --include="$include" \
		--aptopt='Acquire::Retries "3"' "$LAB_RELEASE" "$dir" ${mirror:+"$mirror"}
}

# make_build_root DIR: build root with the backports suite beside the release.
make_build_root() {
	local dir=$1
	debootstrap_to "$dir.tmp" "${BUILD_PACKAGES[@]}"
	# The mirror's name stands only in the line that mmdebstrap wrote.
	sed -n "s/ $LAB_RELEASE / $LAB_RELEASE-backports /p" "$dir.tmp/etc/apt/sources.list" \
		>"$dir.tmp/etc/apt/sources.list.d/backports.list"
	in_root "$dir.tmp" apt-get update
	mkdir -p "$dir.tmp"/{src,out,cache}
	mv -T "$dir.tmp" "$dir"
}

make_guest_root() {
	local dir=$1
	debootstrap_to "$dir.tmp" "${GUEST_PACKAGES[@]}"
	rm -rf "$dir.tmp"/var/lib/apt/lists/* "$dir.tmp"/var/cache/apt/*.bin \
		"$dir.tmp"/usr/share/{doc,man,locale,info}
	mkdir -p "$dir.tmp"/{lab,out} "$dir.tmp/usr/lib/modules"
	install -m 755 "$LAB_TREE/tests/qemu/stub-init" "$dir.tmp/init"
	mv -T "$dir.tmp" "$dir"
}

# in_root DIR CMD...: run in a root, with mounts that vanish with the command.
# The source tree is at /src (read-only), the cache at /cache, LAB_OUT at /out.
in_root() {
	local dir=$1
	shift
	LAB_ROOT=$dir LAB_TREE=$LAB_TREE LAB_CACHE=$LAB_CACHE LAB_OUT=${LAB_OUT:-} \
		unshare --mount --propagation private bash -euc '
		r=$LAB_ROOT
		mkdir -p "$r/src" "$r/cache" "$r/out"
		mount -t proc proc "$r/proc"
		mount --rbind /dev "$r/dev"
		mount -t tmpfs tmpfs "$r/tmp"
		mount --bind "$LAB_CACHE" "$r/cache"
		mount --bind "$LAB_TREE" "$r/src"
		mount -o remount,bind,ro "$r/src"
		if [ -n "$LAB_OUT" ]; then mount --bind "$LAB_OUT" "$r/out"; fi
		# Names and certificates as on the host: a proxy may need both.
		for f in /etc/resolv.conf /etc/hosts; do
			if [ -e "$f" ]; then cp -L "$f" "$r/tmp/bind"; cat "$r/tmp/bind" >"$r$f" || true; fi
		done
		if [ -d /etc/ssl/certs ] && [ -d "$r/etc/ssl/certs" ]; then
			mount --bind /etc/ssl/certs "$r/etc/ssl/certs"
			if [ -d /usr/share/ca-certificates ] && [ -d "$r/usr/share/ca-certificates" ]; then
				mount --bind /usr/share/ca-certificates "$r/usr/share/ca-certificates"
			fi
			if [ -d /usr/local/share/ca-certificates ]; then
				mkdir -p "$r/usr/local/share/ca-certificates"
				mount --bind /usr/local/share/ca-certificates "$r/usr/local/share/ca-certificates"
			fi
		fi
		export HOME=/root CARGO_HOME=/cache/cargo LC_ALL=C.UTF-8
		export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
		unset RUSTUP_HOME RUSTUP_TOOLCHAIN LAB_ROOT LAB_TREE LAB_CACHE
		exec chroot "$r" "$@"' in_root "$@"
}

build_root_once() {
	[[ -d $(build_root) ]] || timed "build root ($LAB_RELEASE)" make_build_root "$(build_root)"
}

guest_root_once() {
	[[ -d $(guest_root) ]] || timed "guest root ($LAB_RELEASE)" make_guest_root "$(guest_root)"
}

# newest_source SERIES: package and version of the newest linux-source-7.x (7.2 or later), or
# of the one before it (SERIES "previous").
newest_source() {
	local back=1
	[[ ${1:-} != previous ]] || back=2
	in_root "$(build_root)" sh -c '
		for p in $(apt-cache search --names-only "^linux-source-7\.[0-9]+\$" | cut -d" " -f1); do
			v=$(apt-cache policy "$p" | sed -n "s/^ *Candidate: //p")
			echo "${p#linux-source-} $p $v"
		done' | awk '{split($1, a, "."); if (a[2] >= 2) print a[2], $2, $3}' |
		sort -n | tail -n "$back" | awk -v n="$back" 'NR == 1 { line = $2 " " $3 } END { if (NR == n) print line }'
}

# source_pin SERIES: "package version" of the source in use; chosen once for a build root, so
# that a new upload does not rebuild kernels behind the user's back. SERIES is empty or previous.
source_pin() {
	cat "$(source_pin_file "${1:-}")" 2>/dev/null || true
}

source_pin_file() {
	echo "$LAB_CACHE/source-$(build_key)${1:+-$1}"
}

source_dir() {
	local pkg version
	read -r pkg version < <(source_pin "${1:-}") || die "no kernel source yet: run scripts/lab setup"
	readlink -m "$LAB_CACHE/${pkg}_${version//[^a-zA-Z0-9.+-]/_}"
}

unpack_source() {
	local pkg=$1 version=$2 dir=$3 work
	work="$LAB_CACHE/source.tmp"
	rm -rf "$work" "$dir.tmp"
	mkdir -p "$work" "$dir.tmp"
	LAB_OUT=$work in_root "$(build_root)" sh -c "
		cd /out && chmod 777 . &&
		{ apt-get -o APT::Sandbox::User=root download $pkg=$version ||
		  { apt-get update && apt-get -o APT::Sandbox::User=root download $pkg=$version; }; } &&
		dpkg-deb --fsys-tarfile ${pkg}_*.deb | tar x --wildcards './usr/src/linux-source-*.tar.xz'"
	tar -C "$dir.tmp" --strip-components=1 -xJf "$work"/usr/src/linux-source-*.tar.xz
	rm -rf "$work"
	mv -T "$dir.tmp" "$dir"
}

source_once() {
	local series=${1:-} pkg version dir pin
	pin=$(source_pin_file "$series")
	if [[ ! -s $pin ]]; then
		newest_source "$series" >"$pin.tmp"
		[[ -s $pin.tmp ]] ||
			die "no ${series:+$series }linux-source-7.x (7.2 or later) in $LAB_RELEASE-backports"
		mv "$pin.tmp" "$pin"
	fi
	read -r pkg version < <(source_pin "$series")
	dir=$(source_dir "$series")
	[[ -d $dir ]] || timed "kernel source $pkg $version" unpack_source "$pkg" "$version" "$dir"
}

# lab_build_root, lab_guest_root, lab_source: make the thing unless it is there.
lab_build_root() {
	host_setup
	locked build-root build_root_once
}

lab_guest_root() {
	host_setup
	locked guest-root guest_root_once
}

lab_source() {
	lab_build_root
	locked source source_once "${1:-}"
}

lab_setup() {
	lab_build_root
	lab_guest_root
	lab_source
	say "build root, guest root and kernel source are ready in $LAB_CACHE"
}

lab_chroot() {
	lab_build_root
	in_root "$(build_root)" "$@"
}
