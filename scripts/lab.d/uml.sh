# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Scenarios under user-mode Linux: a kernel that is a process, at the host's own speed, with
# KASAN. One CPU, no kretprobes, lockdep switches itself off and kmemleak sees too little there,
# so the virtual machine stays the judge; this is for stress and for the daily loop.

# uml_names: scenarios that user-mode Linux can run.
uml_names() {
	local name
	for name in $(scenario_names); do
		[[ $(scenario_head "$name" uml yes) == no* ]] || echo "$name"
	done
}

# uml_kernel DIR: run it until it ends. Its files lie in the build root's view of the cache,
# whose libc it is linked against; DIR is /out there.
uml_kernel() {
	local dir=$1
	LAB_OUT=$dir in_root "$(build_root)" bash -c 'mkdir /tmp/uml && TMPDIR=/tmp exec "$@"' uml \
		"/cache/$(basename "$(kernel_dir uml)")/linux" umid="$(uml_id "$dir")" uml_dir=/tmp/uml \
		mem=2048M seccomp=on ncpus=1 \
		root=/dev/root rootfstype=hostfs "rootflags=/cache/$(basename "$(guest_root)")" ro \
		con=null con0=fd:0,fd:1 ssl=null \
		init=/init panic=-1 oops=panic loglevel=7 printk.time=1 \
		sysctl.kernel.hung_task_timeout_secs=60 rcupdate.rcu_cpu_stall_timeout=60 \
		lab_hostfs=/out lab_results=/out/results "lab_modules=/cache/$(basename "$(kernel_dir uml)")/modroot/lib/modules"
}

# uml_id DIR: what tells this machine's processes from others'.
uml_id() {
	echo "smc_rs-$(echo "$1" | key_of)"
}

# uml_stop DIR: end whatever is left of it.
uml_stop() {
	pkill -9 -f "umid=$(uml_id "$1") " 2>/dev/null || true
}

# uml_boot DIR: one machine, until it ends or makes no progress.
uml_boot() {
	local dir=$1
	ln -sf out/results "$dir/results"
	uml_kernel "$dir" </dev/null >"$dir/console" 2>"$dir/uml" &
	vm_watch $! "$dir"
	uml_stop "$dir"
}

# lab_uml SCENARIO...: build what is needed and run.
lab_uml() {
	local names module smct name
	(($#)) || die "usage: scripts/lab uml SCENARIO... (or \"all\"); there are: $(uml_names | xargs)"
	names=("$@")
	[[ $1 != all ]] || mapfile -t names < <(uml_names)
	for name in "${names[@]}"; do
		[[ $(scenario_head "$name" uml yes) != no* ]] ||
			die "$name does not run under user-mode Linux: $(scenario_head "$name" uml yes)"
	done
	lab_guest_root
	lab_kernel uml >/dev/null
	module=$(lab_module uml)
	smct=$(lab_smct)
	vm_run uml "$module" "$smct" "${names[@]}"
}
