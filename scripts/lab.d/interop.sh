# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# smc_rs and upstream's smc.ko in two machines that share a network: the cases of
# tests/interop/cases.sh in both roles.

# interop_boot WHICH NUMBER MODULE SMCT: start a machine, without waiting for it.
interop_boot() {
	local who=$1 number=$2 dir=$INTEROP/$1 opts under=smc_rs nic kernel=lean
	mkdir -p "$dir/share" "$dir/out" "$dir/modules"
	cp "$LAB_TREE"/tests/interop/{init,lib.sh} "$dir/share/"
	cp "$4" "$dir/share/smct"
	cp "$3" "$dir/share/smc_rs.ko"
	[[ $who == rs ]] || under=smc kernel=$INTEROP_KERNEL
	printf '%s\n' "UNDER=$under" "NUMBER=$number" >"$dir/share/settings"
	nic=stream,id=n,addr.type=unix,addr.path=$INTEROP/wire
	[[ $who != rs ]] || nic+=,server=on
	mapfile -t opts < <(
		vm_qemu "$kernel" | sed 's/^3072$/1536/'
		vm_9p r "$(guest_root)" ro
		vm_9p lab "$dir/share" ro
		vm_9p modules "$(vm_modules "$kernel")" ro
		vm_9p out "$dir/out" ''
	)
	# The same address at both ends is what QEMU gives by default.
	qemu-system-x86_64 "${opts[@]}" -append "console=ttyS0 net.ifnames=0 $VM_APPEND" \
		-netdev "$nic" -device "virtio-net-pci,netdev=n,romfile=,mac=52:54:00:00:01:0$number" \
		-serial "file:$dir/console" </dev/null >"$dir/qemu" 2>&1 &
	echo $! >"$dir/pid"
}

# start WHICH NAME TEXT: run a script in a machine, in the background.
start() {
	echo "$3" >"$INTEROP/$1/out/$2.cmd"
	touch "$INTEROP/$1/out/$2.go"
}

# finish WHICH NAME SECONDS: its status; 124 when it takes longer.
finish() {
	local i
	for ((i = 0; i < $3 * 10; i++)); do
		if [[ -e $INTEROP/$1/out/$2.rc ]]; then
			return "$(<"$INTEROP/$1/out/$2.rc")"
		fi
		sleep 0.1
	done
	return 124
}

# on WHICH TEXT: run a script in a machine; its output is kept.
on() {
	local rc=0
	INTEROP_N=$((INTEROP_N + 1))
	start "$1" "$INTEROP_N" "$2"
	finish "$1" "$INTEROP_N" "${3:-60}" || rc=$?
	((rc == 0)) || note "$1: status $rc: $2: $(tail -n 5 "$INTEROP/$1/out/$INTEROP_N.log" 2>/dev/null)"
	return "$rc"
}

# note TEXT: into the log of the case.
note() {
	echo "$*" >>"$INTEROP/case.log"
}

# listen_for ARG...: start the server for one job; sets SERVER, PORT.
listen_for() {
	local i
	INTEROP_N=$((INTEROP_N + 1))
	SERVER=$INTEROP_N PORT=$((6000 + INTEROP_N))
	start "$S" "$SERVER" "exec \$SMCT server --port $PORT $*"
	for ((i = 0; i < 200; i++)); do
		! grep -q '^listening' "$INTEROP/$S/out/$SERVER.log" 2>/dev/null || return 0
		sleep 0.1
	done
	note "the server did not start"
	return 1
}

# job ARG...: a server and a client; both must succeed and use the expected transport.
job() {
	local rc=0 client
	listen_for --expect "$EXPECT" "${SERVER_ARGS[@]}" || return 1
	INTEROP_N=$((INTEROP_N + 1))
	client=$INTEROP_N JOB_CLIENT=$INTEROP_N
	start "$C" "$client" "exec \$SMCT client $* --addr $(address "$S") --port $PORT --expect $EXPECT"
	finish "$C" "$client" 60 || rc=$?
	note "job $* rc=$rc: $(tail -n 3 "$INTEROP/$C/out/$client.log")"
	((rc == 0)) && { finish "$S" "$SERVER" 20 || rc=$?; }
	note "   server rc=$rc: $(tail -n 3 "$INTEROP/$S/out/$SERVER.log")"
	if ((rc != 0)); then
		on rs state || true
		note "$(cat "$INTEROP/rs/out/$INTEROP_N.log")"
		on up state || true
		on rs 'pkill -9 smct || true'
		on up 'pkill -9 smct || true'
		return 1
	fi
}

# killed END JOB...: END (client or server) is killed; the other end must hear of it.
killed() {
	local end=$1 client rc=0 victim name other oname
	shift
	listen_for --expect SMC-R '--broken-ok!' || return 1
	INTEROP_N=$((INTEROP_N + 1))
	client=$INTEROP_N
	start "$C" "$client" "exec \$SMCT client $* --addr $(address "$S") --port $PORT --expect SMC-R --broken-ok!"
	sleep 3
	on rs '$SMCT stat smcr_active --min 1' || return 1
	case $end in
	client) victim=$C name=$client other=$S oname=$SERVER ;;
	*) victim=$S name=$SERVER other=$C oname=$client ;;
	esac
	if [[ -e $INTEROP/$victim/out/$name.rc || -e $INTEROP/$other/out/$oname.rc ]]; then
		note "one ended early: $(cat "$INTEROP/$victim/out/$name.log" "$INTEROP/$other/out/$oname.log")"
		return 1
	fi
	on "$victim" 'pkill -9 smct' || return 1
	finish "$other" "$oname" 30 || rc=$?
	note "killed $end ($*): the other end: rc=$rc $(tail -n 2 "$INTEROP/$other/out/$oname.log")"
	((rc == 0)) || {
		on rs state || true
		note "$(cat "$INTEROP/rs/out/$INTEROP_N.log")"
		on rs 'pkill -9 smct || true'
		on up 'pkill -9 smct || true'
		return 1
	}
}

address() {
	[[ $1 == rs ]] && echo 10.1.1.1 || echo 10.1.1.2
}

# interop_case LABEL NAME SERVER CLIENT: one case in one role, with the check that
# nothing is left at either end.
interop_case() {
	local label=$1 name=$2 rc=0 line
	S=$3 C=$4 EXPECT=${5:-SMC-R} SERVER_ARGS=()
	: >"$INTEROP/case.log"
	set +e
	(
		set -e
		"case_$name"
	)
	rc=$?
	set -e
	INTEROP_N=$((INTEROP_N + 100))
	if ((rc == 0)); then
		on rs gone && on up gone || rc=1
	fi
	line="$label/$name server=$3 client=$4 expect=$EXPECT"
	if ((rc == 0)); then
		echo "ok $line" | tee -a "$INTEROP/verdict"
	else
		echo "not ok $line" | tee -a "$INTEROP/verdict"
		on rs 'pkill -9 smct || true; device' && on up 'pkill -9 smct || true; device' || true
		sed 's/^/    /' "$INTEROP/case.log" >&2
	fi
	{
		echo "== $line: $rc"
		cat "$INTEROP/case.log"
	} >>"$INTEROP/log"
}

# LLC messages: SENDs of one packet that are no CDC message.
INTEROP_LLC='udp port 4791 and udp[8] & 0x1f = 4 and udp[20] != 0xfe'

# llc_count LABEL FILTER: how many LLC messages of the capture match.
llc_count() {
	on up "tcpdump -nr /out/$1.pcap '$2' 2>/dev/null | wc -l" >&2 || return 1
	cat "$INTEROP/up/out/$INTEROP_N.log"
}

# interop_llc LABEL CHECK...: CHECK is NAME=WANTED=FILTER, WANTED is none or some.
interop_llc() {
	local label=$1 check name wanted filter n
	shift
	[[ -z ${INTEROP_ONLY:-} ]] || return 0
	on up 'pkill tcpdump; pause 1'
	for check; do
		name=${check%%=*} wanted=${check#*=}
		filter=${wanted#*=} wanted=${wanted%%=*}
		n=$(llc_count "$label" "$filter")
		# A job of its own in a subshell would count twice.
		INTEROP_N=$((INTEROP_N + 1))
		if [[ $wanted == none && $n == 0 || $wanted == some && $n -gt 0 ]]; then
			echo "ok $label/llc_$name ($n messages)" | tee -a "$INTEROP/verdict"
		else
			echo "not ok $label/llc_$name ($n messages, wanted $wanted)" | tee -a "$INTEROP/verdict"
		fi
	done
}

# interop_load LABEL EID TEXT: both modules fresh, upstream's with this EID; TEXT runs
# in upstream's machine.
interop_load() {
	: >"$INTEROP/case.log"
	start up "tcpdump-$1" "exec tcpdump -Uni eth0 -w /out/$1.pcap '${INTEROP_FILTER:-$INTEROP_LLC}'"
	on rs load && on up "load $2; ${3:-:}" || die "$1: a module does not load"
}

interop_unload() {
	local who
	on rs 'cat /proc/net/smc_stat /proc/net/smc_lgr'
	{
		echo "== $1: counters of smc_rs"
		cat "$INTEROP/rs/out/$INTEROP_N.log"
	} >>"$INTEROP/log"
	for who in rs up; do
		if on $who unload; then
			echo "ok $1/unload $who" | tee -a "$INTEROP/verdict"
		else
			echo "not ok $1/unload $who" | tee -a "$INTEROP/verdict"
		fi
	done
}

# interop_both LABEL EXPECT NAME...: cases in both roles.
interop_both() {
	local label=$1 expect=$2 name
	shift 2
	for name; do
		[[ -z ${INTEROP_ONLY:-} || $name == $INTEROP_ONLY ]] || continue
		interop_case "$label" "$name" up rs "$expect"
		interop_case "$label" "$name" rs up "$expect"
	done
}

interop_stop() {
	local who i pid
	for who in rs up; do
		touch "$INTEROP/$who/out/stop"
	done
	for who in rs up; do
		pid=$(<"$INTEROP/$who/pid")
		for ((i = 0; i < 100; i++)); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
		kill -9 "$pid" 2>/dev/null || true
	done
}

# interop_all: every case, with upstream set up in different ways.
interop_all() {
	local all=() common=(
		'confirm_link=some=(udp[20] & 0x1f)=1'
		# With one link negotiated nobody may ask for a second.
		'add_link=none=(udp[20] & 0x1f)=2'
		'confirm_rkey_rs=some=(udp[20] & 0x1f)=6 and src 10.1.1.1'
		'confirm_rkey_up=some=(udp[20] & 0x1f)=6 and src 10.1.1.2'
	)
	mapfile -t all < <(declare -F | sed -n 's/^declare -f case_//p' | grep -vxE 'plain_peer|.*_device|device_.*')

	# As upstream comes: it would like two links.
	interop_load links2 SMC-RS-DEFAULT
	interop_both links2 SMC-R "${all[@]}"
	interop_both links2 SMC-R plain_peer
	interop_llc links2 "${common[@]}"
	interop_unload links2

	interop_load links1 SMC-RS-DEFAULT 'sysctl -qw net.smc.smcr_max_links_per_lgr=1'
	interop_both links1 SMC-R at_once data sequence close_in_flight
	interop_llc links1 "${common[@]}"
	interop_unload links1

	# Without an EID in common there is no SMC-Rv2.
	interop_load noeid ''
	interop_both noeid TCP data half_close sequence
	interop_unload noeid

	interop_load device SMC-RS-DEFAULT
	interop_both device SMC-R no_device device_gone
	interop_unload device
}

# interop_record: whole captures of every kind of message, for the corpus of the host tests.
interop_record() {
	INTEROP_FILTER="tcp or udp port 4791"
	interop_load record SMC-RS-DEFAULT
	interop_both record SMC-R data_tiny half_close urgent abort at_once
	interop_unload record
	interop_load record-noeid ''
	interop_both record-noeid TCP data_tiny
	interop_unload record-noeid
	for i in record record-noeid; do
		on up 'pkill tcpdump || true; pause 1'
	done
	say "cut: cargo run --example record -- corpus/recorded 10.1.1.2 $INTEROP/up/out/record*.pcap"
}

# lab_interop [previous|record]: build what is needed, boot both, run everything; against
# smc.ko of the newest kernel series, or of the one before.
lab_interop() {
	local module smct who why i what=all
	INTEROP_KERNEL=lean
	case ${1:-} in
	'') ;;
	previous) INTEROP_KERNEL=previous ;;
	record) what=record ;;
	*) die "usage: scripts/lab interop [previous|record]" ;;
	esac
	lab_guest_root
	lab_kernel lean >/dev/null
	lab_kernel "$INTEROP_KERNEL" >/dev/null
	module=$(lab_module lean)
	smct=$(lab_smct)
	INTEROP=${SMC_RS_LOGS:-$(mktemp -d "${TMPDIR:-/tmp}/smc_rs-interop.XXXXXX")}
	INTEROP_N=0
	mkdir -p "$INTEROP"
	: >"$INTEROP/verdict"
	say "logs of this run: $INTEROP"
	# shellcheck source=/dev/null
	. "$LAB_TREE/tests/interop/cases.sh"
	interop_boot rs 1 "$module" "$smct"
	sleep 1
	interop_boot up 2 "$module" "$smct"
	trap interop_stop EXIT
	for who in rs up; do
		for ((i = 0; i < 600; i++)); do
			[[ ! -e $INTEROP/$who/out/up ]] || break
			sleep 0.1
		done
		[[ -e $INTEROP/$who/out/up ]] || die "machine $who does not come up: $INTEROP/$who/console"
	done
	on rs 'ping -c 3 -i 0.3 10.1.1.2' || die "no network between the machines"

	"interop_$what"

	for who in rs up; do
		why=$(tr -d '\r' <"$INTEROP/$who/console" | splats | head -n 1)
		[[ -z $why ]] || echo "not ok log $who # $why" | tee -a "$INTEROP/verdict"
	done
	! grep '^not ok' "$INTEROP/verdict" >&2
}
