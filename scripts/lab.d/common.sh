# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Helpers of all parts of the lab: messages, times, locks, keys.

LAB_CACHE=${SMC_RS_CACHE:-/var/cache/smc_rs}
LAB_JOBS=${SMC_RS_JOBS:-$(nproc)}
LAB_RELEASE=trixie

# say TEXT: progress, on stderr (stdout carries results).
say() {
	printf 'lab: %s\n' "$*" >&2
}

# die TEXT: stop with a message.
die() {
	printf 'lab: error: %s\n' "$*" >&2
	exit 1
}

# timed TEXT CMD...: run a long step; shows that it goes on, and the time it took.
# Its output goes to a log, shown only when the step fails.
timed() {
	local what=$1 log start rc=0 ticker
	shift
	mkdir -p "$LAB_CACHE/log"
	log="$LAB_CACHE/log/$(date +%Y%m%d-%H%M%S)-$$-${what//[^a-zA-Z0-9._-]/_}.log"
	start=$SECONDS
	say "$what ... (log: $log)"
	(
		while sleep 30; do
			printf 'lab:   %s: %d s, %d log lines, last: %.80s\n' "$what" \
				$((SECONDS - start)) "$(wc -l <"$log")" "$(tail -n 1 "$log")" >&2
		done
	) 9>&- &
	ticker=$!
	# Not `if "$@"`: that would switch off errexit inside a function.
	set +e
	(
		set -euo pipefail
		"$@"
	) >"$log" 2>&1
	rc=$?
	set -e
	kill_tree "$ticker"
	if ((rc != 0)); then
		tail -n 40 "$log" >&2
		die "$what failed after $((SECONDS - start)) s (exit status $rc; whole log: $log)"
	fi
	say "$what: done in $((SECONDS - start)) s"
}

# kill_tree PID: end a background subshell of ours together with its children.
kill_tree() {
	local children
	mapfile -t children < <(pgrep -P "$1" 2>/dev/null || true)
	# The subshell first, or it would report its child's end.
	kill -9 "$1" "${children[@]}" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}

# locked NAME CMD...: run CMD while holding a lock of the cache, in a subshell, so
# that two runs never build the same thing. CMD looks again whether work is left.
locked() {
	local name=$1
	shift
	mkdir -p "$LAB_CACHE/lock"
	# Children inherit the lock: should we be killed and they go on, the next run waits.
	(
		exec 9>"$LAB_CACHE/lock/$name"
		if ! flock -n 9; then
			say "waiting for another run that holds the lock '$name'"
			flock 9
		fi
		"$@"
	)
}

# key_of: content key of what comes in on stdin.
key_of() {
	sha256sum | cut -c 1-12
}

# need_root: everything here mounts, enters roots or boots machines.
need_root() {
	((EUID == 0)) || die "must run as root (it makes root directories and mounts in them)"
}
