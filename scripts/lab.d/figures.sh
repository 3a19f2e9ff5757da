# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Figures: guest time counts guest instructions, so they are the same on any machine.

# figure_run LOGS UNDER_TEST FAMILY MODULE SMCT: one boot, prints "NAME VALUE" lines.
figure_run() {
	local logs=$1 under=$2 family=$3 module=$4 smct=$5
	(
		export LAB_ICOUNT=1 LAB_UNDER_TEST=$under LAB_FAMILY=$family SMC_RS_LOGS=$logs
		vm_run lean "$module" "$smct" fig_rxe >&2
	) || die "measuring $under failed (logs: $logs)"
	sed -n 's/^raw: //p' "$logs/boot1/out/fig_rxe.log"
}

# figure_lines OURS OTHER NAME: compares two files of "NAME VALUE".
figure_lines() {
	awk -v against="$3" '
		NR == FNR { ours[$1] = $2; next }
		$1 in ours {
			unit = ($1 ~ /stream/) ? "ns/byte" : "us"
			div = (unit == "us") ? 1000 : 1
			printf "figure: %s ours=%.3f other=%.3f ratio=%.3f unit=%s against=%s\n",
				$1, ours[$1] / div, $2 / div, ours[$1] / $2, unit, against
		}' "$1" "$2"
}

# lab_figures: smc_rs, upstream's smc.ko and TCP, each in a machine of its own.
lab_figures() {
	local logs module smct
	lab_guest_root
	lab_kernel lean >/dev/null
	module=$(lab_module lean)
	smct=$(lab_smct)
	logs=${SMC_RS_LOGS:-$(mktemp -d "${TMPDIR:-/tmp}/smc_rs-fig.XXXXXX")}
	mkdir -p "$logs"
	figure_run "$logs/smc.ko" smc smc "$module" "$smct" >"$logs/other"
	figure_run "$logs/tcp" smc_rs tcp "$module" "$smct" >"$logs/tcp-values"
	figure_run "$logs/smc_rs" smc_rs smc "$module" "$smct" >"$logs/ours"
	figure_lines "$logs/ours" "$logs/other" smc.ko
	figure_lines "$logs/ours" "$logs/tcp-values" tcp
	say "lower is better; ratio = ours / other; logs: $logs"
}

# lab_strangers: connect() of clients while others stall, against without them. On the debug
# kernel, which has the packet filter that makes the others stall.
lab_strangers() {
	local logs module smct
	lab_guest_root
	lab_kernel debug >/dev/null
	module=$(lab_module debug)
	smct=$(lab_smct)
	logs=${SMC_RS_LOGS:-$(mktemp -d "${TMPDIR:-/tmp}/smc_rs-fig.XXXXXX")}
	(
		export LAB_ICOUNT=1 SMC_RS_LOGS=$logs
		vm_run debug "$module" "$smct" fig_strangers >&2
	) || die "measuring failed (logs: $logs)"
	sed -n 's/^raw: //p' "$logs/boot1/out/fig_strangers.log" | awk '{ v[$1] = $2 } END {
		printf "figure: connect_p99 ours=%.3f other=%.3f ratio=%.3f unit=us against=no-strangers\n",
			v["strangers"] / 1000, v["alone"] / 1000, v["strangers"] / v["alone"] }'
}
