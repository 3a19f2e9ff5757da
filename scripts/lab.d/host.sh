# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the host needs, and where Debian comes from.

LAB_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# host_missing: packages that lack on the host, one a line.
host_missing() {
	command -v mmdebstrap >/dev/null || echo mmdebstrap
	command -v qemu-system-x86_64 >/dev/null || echo qemu-system-x86
	command -v xz >/dev/null || echo xz-utils
	command -v pgrep >/dev/null || echo procps
	command -v git >/dev/null || echo git
	command -v make >/dev/null || echo make
	[[ -e $LAB_KEYRING ]] || echo debian-archive-keyring
}

host_install() {
	apt-get update
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# host_setup: install what lacks, or say what does.
host_setup() {
	local missing
	need_root
	mapfile -t missing < <(host_missing)
	if ((${#missing[@]} == 0)); then
		return
	fi
	command -v apt-get >/dev/null ||
		die "missing on this host, and no apt-get to install it with: ${missing[*]}"
	timed "installing on the host: ${missing[*]}" host_install "${missing[@]}"
	mapfile -t missing < <(host_missing)
	((${#missing[@]} == 0)) || die "still missing on this host: ${missing[*]}"
}

# host_mirror: the Debian mirror to use; nothing when mmdebstrap's own default will do.
host_mirror() {
	if [[ -n ${SMC_RS_MIRROR:-} ]]; then
		echo "$SMC_RS_MIRROR"
		return
	fi
	# The archive proper, not the security or a third party's: it has a component
	# "main" of origin Debian and a path that ends in /debian.
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' \
		'Created-By: Packages' 2>/dev/null |
		sed -n 's,^Debian main \(.*/debian\)/*$,\1,p' | sort -u | head -n 1 || true
}
