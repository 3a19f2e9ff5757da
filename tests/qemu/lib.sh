# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Library of the scenarios. A scenario runs with errexit; what it made is taken down
# when it ends.

set -euo pipefail

SMCT=/lab/smct
# smc_rs, or smc when a scenario runs against upstream's module to validate it.
UNDER_TEST=${UNDER_TEST:-smc_rs}

# fail TEXT: end the scenario as failed.
fail() {
	echo "FAIL: $*"
	return 1
}

note() {
	local now
	read -r now _ </proc/uptime
	echo "== [$now] $*"
}

# pause SECONDS, without a process: forks are slow in a debug kernel.
pause() {
	read -rt "$1" <>/run/never || true
}

# file_has FILE TEXT: whether a line of the file starts with TEXT, without a process.
file_has() {
	local line
	while IFS= read -r line; do
		[[ $line != "$2"* ]] || return 0
	done 2>/dev/null <"$1"
	return 1
}

# await SECONDS FILE TEXT: wait until a line of the file starts with TEXT.
await() {
	local i
	for ((i = 0; i < $1 * 10; i++)); do
		! file_has "$2" "$3" || return 0
		pause 0.1
	done
	cat "$2"
	fail "no line '$3' in $2 within $1 s"
}

h1() {
	ip netns exec h1 "$@"
}

h2() {
	ip netns exec h2 "$@"
}

on_exit() {
	local rc=$?
	set +e
	if ((rc != 0)); then
		echo "---- failed with status $rc; sockets and counters"
		for ns in h1 h2; do
			[[ -e /run/netns/$ns ]] || continue
			echo "== $ns"
			ip netns exec "$ns" cat /proc/net/smc /proc/net/smc6 /proc/net/smc_lgr /proc/net/smc_stat 2>/dev/null
			ip netns exec "$ns" rdma link 2>/dev/null
		done
	fi
	# Only our own children; a failed scenario must not leave servers.
	local p
	for p in $(jobs -p); do
		kill -9 "$p" 2>/dev/null
	done
	wait
	((${#STAR[@]} == 0)) || star_down
	net_down
	exit "$rc"
}
trap on_exit EXIT

# rxe_add NS NUMBER NETDEV: an rxe device over NETDEV, moved into NS (it is born in the
# initial namespace, whatever namespace asks for it).
rxe_add() {
	ip netns exec "$1" rdma link add "rxe$2" type rxe netdev "$3"
	rdma dev set "rxe$2" netns "$1"
}

# net_pair: two namespaces h1, h2 joined by a veth, with addresses, without RDMA.
net_pair() {
	local n
	ip -batch - <<-END
		netns add h1
		netns add h2
		link add e1 netns h1 type veth peer name e2 netns h2
	END
	for n in 1 2; do
		ip -n h$n -batch - <<-END
			link set lo up
			link set e$n up
			addr add 10.1.1.$n/24 dev e$n
			addr add fd00:1::$n/64 dev e$n nodad
		END
	done
}

# net_up: net_pair with an rxe device on each side.
net_up() {
	net_pair
	rxe_add h1 1 e1
	rxe_add h2 2 e2
	if [[ $UNDER_TEST == smc ]]; then
		# Upstream has no default EID, and rxe only does SMC-Rv2. One for all namespaces.
		$SMCT ueid SMC-RS-DEFAULT
	fi
}

# net_star PREFIX COUNT SUBNET: namespaces PREFIX1... with a link to a bridge in h1 (10.1.1.1/16,
# made when it is not there), addresses 10.1.SUBNET.N and an rxe device each.
net_star() {
	local n
	if [[ ! -e /run/netns/h1 ]]; then
		ip -batch - <<-END
			netns add h1
			link add br0 netns h1 type bridge
		END
		ip -n h1 -batch - <<-END
			link set lo up
			link set br0 up
			addr add 10.1.1.1/16 dev br0
		END
		rxe_add h1 h1 br0
	fi
	for ((n = 1; n <= $2; n++)); do
		ip -batch - <<-END
			netns add $1$n
			link add $1$n netns h1 type veth peer name e0 netns $1$n
		END
		ip -n h1 link set "$1$n" up master br0
		ip -n "$1$n" -batch - <<-END
			link set lo up
			link set e0 up
			addr add 10.1.$3.$n/16 dev e0
		END
		rxe_add "$1$n" "$1$n" e0
		STAR+=("$1$n")
	done
}
STAR=()

# star_down: what net_star made.
star_down() {
	local ns
	for ns in "${STAR[@]}" h1; do
		ip netns exec "$ns" rdma link del "rxe$ns" 2>/dev/null
		ip netns del "$ns" 2>/dev/null
	done
}

net_down() {
	local n
	for n in 1 2; do
		[[ -e /run/netns/h$n ]] || continue
		ip netns exec h$n rdma link del rxe$n 2>/dev/null
		ip netns del h$n
	done
	return 0
}

# server_up PORT NS ARG...: start `smct server` in NS, wait until it listens.
# Sets SERVER to its process id; its output is in /tmp/server.PORT.
server_up() {
	local port=$1 ns=$2
	shift 2
	$SMCT server --port "$port" --ns "$ns" "$@" >"/tmp/server.$port" 2>&1 &
	SERVER=$!
	await 60 "/tmp/server.$port" listening
}

# server_end PORT: the server must end by itself with success.
server_end() {
	local rc=0
	wait "$SERVER" || rc=$?
	cat "/tmp/server.$1"
	((rc == 0)) || fail "server on port $1 ended with status $rc"
}

# pair JOB ARG...: a server in h1 and a client in h2, in one process.
pair() {
	$SMCT pair "$@" --server-ns h1 --ns h2
}

# stat_of NS NAME: a counter of /proc/net/smc_stat; 0 when it is not there.
stat_of() {
	$SMCT stat "$2" --ns "$1"
}

# expect_stat NS NAME VALUE
expect_stat() {
	[[ $UNDER_TEST == smc_rs ]] || return 0
	$SMCT stat "$2" --ns "$1" --equals "$3" >/dev/null
}

# no_fallback NS...: nothing fell back so far.
no_fallback() {
	local ns
	for ns; do
		expect_stat "$ns" fallback_total 0
	done
}

# sockets_gone NS...: no socket of the module is left within 10 s.
sockets_gone() {
	local ns
	[[ $UNDER_TEST == smc_rs ]] || return 0
	for ns; do
		$SMCT gone --ns "$ns"
	done
}

# must_fail CMD...: CMD has to fail.
must_fail() {
	if "$@"; then
		fail "succeeded but must not: $*"
	fi
}

# groups_gone NS: no link group is left within 10 s.
groups_gone() {
	local i lines
	for ((i = 0; i < 100; i++)); do
		mapfile -t lines < <(ip netns exec "$1" cat /proc/net/smc_lgr)
		((${#lines[@]} > 1)) || return 0
		pause 0.1
	done
	printf '%s\n' "${lines[@]}"
	fail "link groups left in $1"
}

# hostile ROLE: all cases of `smct peer` where the peer is the client or the server. The peer lives
# on e2, without the kernel of h2, which gets its address back only afterwards: then nothing may
# be left, and SMC-R must still work.
hostile() {
	net_pair
	ip -n h2 addr flush dev e2
	ip -n h1 addr add 10.2.0.1/16 dev e1
	rxe_add h1 1 e1
	note "with an RDMA device"
	$SMCT peer run --role "$1"
	expect_stat h1 smcr_active 0
	sockets_gone h1
	groups_gone h1
	note "without"
	h1 rdma link del rxe1
	$SMCT peer run --role "$1" --bare!
	sockets_gone h1
	note "a good peer"
	ip -n h2 addr add 10.1.1.2/24 dev e2
	rxe_add h1 1 e1
	rxe_add h2 2 e2
	pair data --expect SMC-R --bytes 100k
	no_fallback h2
	sockets_gone h1 h2
}
