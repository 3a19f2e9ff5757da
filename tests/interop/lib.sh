# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the host's commands use inside either machine. $UNDER is smc_rs or smc.

set -euo pipefail

SMCT=/lab/smct
# shellcheck source=/dev/null
. /lab/settings

pause() {
	read -rt "$1" <>/run/never || true
}

# load [EID]: the module of this machine, and the EID if upstream's needs one.
load() {
	if [[ $UNDER == smc_rs ]]; then
		# The suites have a scenario of their own.
		echo nothing >/sys/module/kunit/parameters/filter_glob 2>/dev/null || true
		insmod /lab/smc_rs.ko
		return
	fi
	modprobe smc
	modprobe smc_diag
	[[ -z ${1:-} ]] || $SMCT ueid "$1"
}

# device: the RDMA device, if it is not there.
device() {
	[[ -e /sys/class/infiniband/rxe0 ]] || rdma link add rxe0 type rxe netdev eth0
}

# unload: nothing may be left that holds the module.
unload() {
	local i
	for ((i = 0; i < 100; i++)); do
		if [[ $UNDER == smc_rs ]]; then
			! rmmod smc_rs 2>/tmp/unload || return 0
		else
			! modprobe -r smc_diag smc 2>/tmp/unload || return 0
		fi
		pause 0.1
	done
	cat /tmp/unload
	return 1
}

# sockets: how many sockets of the module exist.
sockets() {
	local name size count rest
	while read -r name size count rest; do
		[[ $name != SMC ]] || echo "$count"
	done </proc/net/protocols
}

# gone: no socket of the module is left within 20 s.
gone() {
	local i
	if [[ $UNDER == smc_rs ]]; then
		$SMCT gone
		return
	fi
	for ((i = 0; i < 200; i++)); do
		[[ $(sockets) != 0 ]] || return 0
		pause 0.1
	done
	echo "$(sockets) sockets of $UNDER left"
	return 1
}

# state: what the module says of itself, for a failure.
state() {
	cat /proc/net/smc /proc/net/smc_lgr /proc/net/smc_stat 2>/dev/null || true
	grep SMC /proc/net/protocols || true
	dmesg | tail -n 20
}
