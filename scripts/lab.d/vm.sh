# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Runs scenarios in virtual machines. A result is a line that the guest wrote to a
# second serial port; a machine that dies or hangs fails the scenario it was in, and
# the rest runs in a fresh one.

# What in the kernel log fails a scenario. Everything the debug options report.
SPLAT='BUG:|BUG |WARNING:|kernel BUG|Oops|general protection fault|KASAN|UBSAN|kmemleak: [1-9]'
SPLAT+='|kmemleak: .*disabled'
SPLAT+='|possible (recursive|circular|irq)|inconsistent .*lock state|suspicious RCU|bad unlock'
SPLAT+='|held lock freed|locks? held when returning|still held|DEBUG_LOCKS|lockdep.*(turning off|too low)'
SPLAT+='|sleeping function called|scheduling while atomic|refcount_t:|ODEBUG|blocked for more than'
SPLAT+='|rcu: INFO|detected stalls|self-detected stall|soft lockup|hard LOCKUP|workqueue lockup|Kernel panic'
SPLAT+='|unregister_netdevice: waiting|ref_tracker|list_(add|del) corruption|Bad page|bad page'
SPLAT+='|rust_kernel: panicked|panicked at|Unable to handle|stack guard'

# Lines that match the above and are not ours. Keep it empty if it can be.
SPLAT_FOREIGN='^$'

# scenario_names: every scenario, in the order of a whole run.
scenario_names() {
	local f
	for f in "$LAB_TREE"/tests/qemu/scenarios/*.sh; do
		[[ $f == */fig_*.sh || $f == */demo.sh ]] || basename "$f" .sh
	done
}

# scenario_head NAME KEY DEFAULT: value of a "# KEY: value" line of a scenario.
scenario_head() {
	local v
	v=$(sed -n "s/^# $2: *//p" "$LAB_TREE/tests/qemu/scenarios/$1.sh" | head -n 1)
	echo "${v:-$3}"
}

# vm_share DIR MODULE SMCT SCENARIO...: what the guest sees at /lab.
vm_share() {
	local dir=$1 module=$2 smct=$3 s under factor=${LAB_TIME_FACTOR:-1}
	shift 3
	mkdir -p "$dir/share" "$dir/out" "$dir/modules"
	cp "$LAB_TREE"/tests/qemu/{init,lib.sh} "$dir/share/"
	cp -r "$LAB_TREE/tests/qemu/scenarios" "$dir/share/"
	[[ -z $module ]] || cp "$module" "$dir/share/smc_rs.ko"
	[[ -z $smct ]] || cp "$smct" "$dir/share/smct"
	# The suites that must be in the module, from the source.
	grep -rhoE 'kunit_tests\([a-z0-9_]+\)' --include="*.rs" "${SMC_RS_TREE:-$LAB_TREE}" 2>/dev/null |
		sed 's/.*(\(.*\))/\1/' | sort -u >"$dir/share/suites" || true
	echo "FAMILY=${LAB_FAMILY:-smc}" >"$dir/share/settings"
	: >"$dir/share/plan"
	for s; do
		[[ -e $LAB_TREE/tests/qemu/scenarios/$s.sh ]] || die "no such scenario: $s"
		under=$(scenario_head "$s" module smc_rs)
		# To validate scenarios: run them against upstream's module.
		[[ $under != smc_rs ]] || under=${LAB_UNDER_TEST:-smc_rs}
		echo "$s $(($(scenario_head "$s" limit 120) * factor)) $under" >>"$dir/share/plan"
	done
}

# vm_qemu FLAVOUR: QEMU's options for this kernel, one a line.
vm_qemu() {
	local flavour=$1 cpu=max,-la57 accel=tcg,thread=multi smp=2 mem=3072
	if [[ -n ${LAB_ICOUNT:-} ]]; then
		printf '%s\n' -icount shift=0,sleep=off
		accel=tcg,thread=single cpu=max,-erms,-fsrm,-la57 smp=1 mem=2048
	fi
	# q35: under KASAN the older machine's ACPI interrupt links cost 20 s of boot.
	printf '%s\n' -M q35 -accel "$accel" -cpu "$cpu" -smp "$smp" -m "$mem" -nodefaults \
		-display none -no-reboot -kernel "$(kernel_image "$flavour")"
}

# vm_9p TAG DIR MODE: options for one shared directory.
vm_9p() {
	printf '%s\n' -virtfs \
		"local,path=$2,mount_tag=$1,security_model=none,multidevs=remap${3:+,readonly=on}"
}

# vm_modules FLAVOUR: the kernel's modules as /lib/modules.
vm_modules() {
	echo "$(kernel_dir "$1")/modroot/lib/modules"
}

VM_APPEND='root=r rootfstype=9p rootflags=trans=virtio,version=9p2000.L,msize=262144,cache=loose ro'
VM_APPEND+=' init=/init panic=-1 oops=panic loglevel=7 sysctl.kernel.hung_task_timeout_secs=60 rcupdate.rcu_cpu_stall_timeout=60 printk.time=1'

# vm_boot FLAVOUR DIR: one machine, until it ends or makes no progress.
vm_boot() {
	local flavour=$1 dir=$2 opts pid
	if [[ $flavour == uml ]]; then
		uml_boot "$dir"
		return
	fi
	mapfile -t opts < <(
		vm_qemu "$flavour"
		vm_9p r "$(guest_root)" ro
		vm_9p lab "$dir/share" ro
		vm_9p modules "$(vm_modules "$flavour")" ro
		vm_9p out "$dir/out" ''
	)
	qemu-system-x86_64 "${opts[@]}" -append "console=ttyS0 $VM_APPEND" \
		-serial "file:$dir/console" -serial "file:$dir/results" \
		</dev/null >"$dir/qemu" 2>&1 &
	pid=$!
	vm_watch "$pid" "$dir"
}

# vm_watch PID DIR: kill the machine when a scenario takes much longer than its limit
# (the guest enforces the limit itself; this is for a guest that can't any more).
vm_watch() {
	local pid=$1 dir=$2 seen='' since=$SECONDS limit=300 last name
	while kill -0 "$pid" 2>/dev/null; do
		sleep 1
		last=$(tail -n 1 "$dir/results" 2>/dev/null | tr -d '\r' || true)
		if [[ $last != "$seen" ]]; then
			vm_echo "$dir" "$seen"
			seen=$last since=$SECONDS limit=300
			if [[ $last == "run "* ]]; then
				name=${last#run }
				limit=$(awk -v n="$name" '$1 == n { print $2 + 120 }' "$dir/share/plan")
			fi
		fi
		if ((SECONDS - since > limit)); then
			say "no progress for $limit s ($seen): stopping the machine"
			kill -9 "$pid" 2>/dev/null || true
		fi
	done
	wait "$pid" 2>/dev/null || true
	vm_echo "$dir" ''
}

# vm_echo DIR: progress for the user; the verdict comes after the splat check.
vm_echo() {
	local n
	n=$(grep -cE '^(ok|not ok) ' "$1/results" 2>/dev/null || true)
	[[ ${n:-0} == "${VM_SHOWN:-}" ]] || tr -d '\r' <"$1/results" |
		grep -E '^(ok|not ok) ' | tail -n +$((${VM_SHOWN:-0} + 1)) | sed 's/^/lab:   /' >&2 || true
	VM_SHOWN=${n:-0}
}

# console_of CONSOLE NAME: the part of the kernel log that belongs to a scenario.
console_of() {
	tr -d '\r' <"$1" | awk -v n="$2" '
		index($0, "smc_rs-lab: begin ") { on = ($NF == n) }
		on { print }
		index($0, "smc_rs-lab: end " n) && $NF == n { on = 0 }'
}

# splats: lines on stdin that fail a run.
splats() {
	grep -E "$SPLAT" | grep -vE "$SPLAT_FOREIGN" | grep -v 'smc_rs-lab: ' || true
}

# vm_verdict DIR: results of one machine on stdout, with splats taken into account;
# details of failures on stderr.
vm_verdict() {
	local dir=$1 line name rest why
	while IFS= read -r line; do
		case $line in
		'ok '* | 'not ok '* | 'skip '*) ;;
		*) continue ;;
		esac
		rest=${line#not } rest=${rest#ok } rest=${rest#skip }
		name=${rest%% *}
		why=$(console_of "$dir/console" "$name" | splats | head -n 1)
		if [[ -n $why ]]; then
			line="not ok $rest # kernel log: $why"
		fi
		echo "$line"
		[[ $line != not* ]] || vm_explain "$dir" "$name" "$why" >&2
	done < <(tr -d '\r' <"$dir/results")
	# Splats outside scenarios (boot, end) count too.
	why=$(tr -d '\r' <"$dir/console" | awk '
		/smc_rs-lab: begin / { on = 1 } !on { print } /smc_rs-lab: end / { on = 0 }' | splats | head -n 1)
	if [[ -n $why ]]; then
		echo "not ok vm_log 0 # kernel log: $why"
		tr -d '\r' <"$dir/console" | grep -F -A 60 -m 1 -- "$why" >&2 || true
	fi
}

# vm_explain DIR NAME SPLAT: what is known about a failure.
vm_explain() {
	local dir=$1 name=$2 why=$3
	echo "---- $name failed: end of its output"
	tail -n 60 "$dir/out/$name.log" 2>/dev/null || true
	if [[ -n $why ]]; then
		echo "---- $name: kernel log from the first complaint"
		console_of "$dir/console" "$name" | grep -F -A 80 -m 1 -- "$why" || true
	else
		echo "---- $name: end of its kernel log"
		console_of "$dir/console" "$name" | tail -n 30
	fi
	echo "---- logs: $dir"
}

# vm_run FLAVOUR MODULE SMCT SCENARIO...: all of them, in as many machines as it takes.
# Prints result lines; status 1 when one failed.
vm_run() {
	local flavour=$1 module=$2 smct=$3 logs boot=0 dir todo running
	shift 3
	todo=("$@")
	logs=${SMC_RS_LOGS:-$(mktemp -d "${TMPDIR:-/tmp}/smc_rs-vm.XXXXXX")}
	mkdir -p "$logs"
	: >"$logs/verdict"
	say "logs of this run: $logs"
	while ((${#todo[@]})); do
		boot=$((boot + 1))
		dir=$logs/boot$boot
		mkdir -p "$dir"
		vm_share "$dir" "$module" "$smct" "${todo[@]}"
		: >"$dir/results"
		VM_SHOWN=0
		vm_boot "$flavour" "$dir"
		running=$(tr -d '\r' <"$dir/results" | sed -n 's/^run //p' | tail -n 1)
		if ! grep -q '^done' "$dir/results"; then
			if [[ -z $running ]]; then
				echo "not ok vm_boot 0 # the machine never came up" >>"$dir/results"
				tail -n 40 "$dir/console" "$dir"/{qemu,uml} >&2 2>/dev/null || true
				vm_verdict "$dir" >>"$logs/verdict"
				break
			fi
			grep -qE "^(skip|ok|not ok) $running " "$dir/results" ||
				echo "not ok $running 0 # the machine died or hung in it" >>"$dir/results"
		fi
		vm_verdict "$dir" >>"$logs/verdict"
		mapfile -t todo < <(
			cut -d' ' -f1 "$dir/share/plan" | grep -vxF -f <(
				tr -d '\r' <"$dir/results" | sed -nE 's/^(skip|ok|not ok) ([^ ]+).*/\2/p'
			) || true
		)
	done
	cat "$logs/verdict"
	! grep -q '^not ok' "$logs/verdict"
}

# lab_vm [FLAVOUR] SCENARIO...: build what is needed and run.
lab_vm() {
	local flavour=debug names module smct
	case ${1:-} in
	debug | lean)
		flavour=$1
		shift
		;;
	esac
	(($#)) || die "usage: scripts/lab vm [debug|lean] SCENARIO... (or \"all\"); there are: $(scenario_names | xargs)"
	names=("$@")
	[[ $1 != all ]] || mapfile -t names < <(scenario_names)
	lab_guest_root
	lab_kernel "$flavour" >/dev/null
	module=$(lab_module "$flavour")
	smct=$(lab_smct)
	vm_run "$flavour" "$module" "$smct" "${names[@]}"
}

# lab_shell FLAVOUR: a shell on the console; Ctrl-A X ends the machine.
lab_shell() {
	local flavour=$1 dir opts
	lab_guest_root
	lab_kernel "$flavour" >/dev/null
	dir=$(mktemp -d "${TMPDIR:-/tmp}/smc_rs-vm.XXXXXX")
	vm_share "$dir" "$(lab_module "$flavour")" "$(lab_smct)"
	echo shell >"$dir/share/plan"
	mapfile -t opts < <(
		vm_qemu "$flavour"
		vm_9p r "$(guest_root)" ro
		vm_9p lab "$dir/share" ro
		vm_9p modules "$(vm_modules "$flavour")" ro
		vm_9p out "$dir/out" ''
	)
	qemu-system-x86_64 "${opts[@]}" -append "console=ttyS0 $VM_APPEND" \
		-serial mon:stdio -serial "file:$dir/results"
}
