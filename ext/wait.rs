// SPDX-License-Identifier: GPL-2.0

//! Sleeping on a socket's wait queue without holding any lock.
//!
//! C header: [`include/linux/wait.h`](srctree/include/linux/wait.h)

use super::{
    abi::bindings,
    sk::Sk, //
};
use kernel::{
    prelude::*,
    types::Opaque, //
};

/// Whether the wait is exclusive: one event wakes one exclusive waiter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Every event wakes it.
    Shared,
    /// As accept() waits.
    Exclusive,
}

/// Sleeps interruptibly on `sk`'s wait queue until `ready` returns a value.
///
/// `timeo` is in jiffies (`MAX_SCHEDULE_TIMEOUT`: for ever). Process context; the caller's file
/// pins the `struct socket`. Errors: `EAGAIN` when the time is over, `EINTR` or `ERESTARTSYS` on a
/// signal, as TCP's.
pub(crate) fn wait_until<R>(
    sk: &Sk,
    mode: Mode,
    timeo: c_long,
    mut ready: impl FnMut() -> Option<R>,
) -> Result<R> {
    if let Some(r) = ready() {
        return Ok(r);
    }
    sleep_until(sk, mode, timeo, ready)
}

/// [`wait_until`] for a caller who has just found that he has to wait.
pub(crate) fn sleep_until<R>(
    sk: &Sk,
    mode: Mode,
    mut timeo: c_long,
    mut ready: impl FnMut() -> Option<R>,
) -> Result<R> {
    if timeo == 0 {
        return Err(EAGAIN);
    }
    let slot = Opaque::uninit();
    let entry = Entry::begin(&slot, sk, mode);
    loop {
        if let Some(r) = ready() {
            return Ok(r);
        }
        if timeo == 0 {
            return Err(EAGAIN);
        }
        // SAFETY: No preconditions.
        if unsafe { bindings::smc_rs_signal_pending() } {
            // SAFETY: No preconditions.
            return Err(Error::from_errno(unsafe {
                bindings::smc_rs_intr_errno(timeo)
            }));
        }
        // SAFETY: The entry is queued with `woken_wake_function` and lives until `end`.
        timeo = unsafe { bindings::wait_woken(entry.slot.get(), INTERRUPTIBLE, timeo) };
    }
}

/// `TASK_INTERRUPTIBLE` of `include/linux/sched.h`.
const INTERRUPTIBLE: c_uint = 1;

/// A queued wait entry.
struct Entry<'a> {
    slot: &'a Opaque<bindings::wait_queue_entry>,
    sk: &'a Sk,
}

impl<'a> Entry<'a> {
    fn begin(slot: &'a Opaque<bindings::wait_queue_entry>, sk: &'a Sk, mode: Mode) -> Self {
        // SAFETY: `slot` is borrowed, hence neither moved nor freed, until `drop` removes it from
        // the queue; the queue is pinned by the caller's file.
        unsafe {
            bindings::smc_rs_wait_begin(sk.as_raw(), slot.get(), mode == Mode::Exclusive);
        }
        Self { slot, sk }
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        // SAFETY: The entry was queued by `begin`.
        unsafe { bindings::smc_rs_wait_end(self.sk.as_raw(), self.slot.get()) }
    }
}

/// Whether the current task is exiting: it must not wait for a peer.
pub(crate) fn exiting() -> bool {
    // SAFETY: No preconditions.
    unsafe { bindings::smc_rs_exiting() }
}
