// SPDX-License-Identifier: GPL-2.0

//! The end of the module: waiting until none of its text can be running.

use super::{
    abi::bindings,
    workqueue, //
};

/// Waits until no task and no softirq is inside the module's text, and no deferred work is left.
/// To be called when everything is unregistered and no socket is left. Sleeps.
pub(crate) fn quiesce() {
    // SAFETY: Process context without locks. Tasks that dropped the last reference from within our
    // text leave it; so do softirqs on idle CPUs, which Tasks RCU ignores.
    unsafe {
        bindings::smc_rs_synchronize_rcu_tasks();
        bindings::synchronize_net();
        // The callbacks of `call_rcu` queue work items...
        bindings::rcu_barrier();
    }
    // ... which end here. They may have dropped the last reference of something that is freed
    // after another grace period.
    workqueue::drain();
    // SAFETY: As above.
    unsafe { bindings::rcu_barrier() };
    workqueue::drain();
}
