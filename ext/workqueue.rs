// SPDX-License-Identifier: GPL-2.0

//! Work queues of our own, which `kernel::workqueue` cannot allocate.
//!
//! A queue of our own can be drained: after [`OwnQueue`] is dropped none of its items runs, and
//! none of the module's text is on a worker's stack. Items are `kernel::workqueue::Work`.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use super::abi::bindings;
use core::ops::Deref;
use kernel::{
    prelude::*,
    sync::SetOnce,
    workqueue::Queue, //
};

/// An unbound work queue with a rescuer; dropping it drains and destroys it (may sleep).
pub(crate) struct OwnQueue(*mut bindings::workqueue_struct);

// SAFETY: A `workqueue_struct` may be used from any thread.
unsafe impl Send for OwnQueue {}
// SAFETY: A `workqueue_struct` may be used from any thread.
unsafe impl Sync for OwnQueue {}

impl OwnQueue {
    /// Allocates a queue. May sleep.
    pub(crate) fn new(name: &'static CStr) -> Result<Self> {
        // SAFETY: `name` is a C string that lives for ever.
        let ptr = unsafe { bindings::smc_rs_alloc_workqueue(name.as_char_ptr()) };
        if ptr.is_null() {
            return Err(ENOMEM);
        }
        Ok(Self(ptr))
    }
}

impl Deref for OwnQueue {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        // SAFETY: The queue lives until `self` is dropped.
        unsafe { Queue::from_raw(self.0.cast()) }
    }
}

impl Drop for OwnQueue {
    fn drop(&mut self) {
        // SAFETY: The queue was allocated by `new` and is not used afterwards. Draining also waits
        // for items that queue themselves again.
        unsafe { bindings::smc_rs_destroy_workqueue(self.0) }
    }
}

/// The queue of the module's work: handshakes, closes, deferred drops. Set for the life of the
/// module.
static MODULE_QUEUE: SetOnce<OwnQueue> = SetOnce::new();

/// Allocates the module's queue; called once from module init. May sleep.
pub(crate) fn init() -> Result {
    MODULE_QUEUE.populate(OwnQueue::new(c"smc_rs")?);
    Ok(())
}

/// The module's queue; any context.
///
/// Before [`init`] (nothing can be queued then) it is the system's unbound queue.
pub(crate) fn queue() -> &'static Queue {
    match MODULE_QUEUE.as_ref() {
        Some(q) => q,
        None => kernel::workqueue::system_unbound(),
    }
}

/// Waits for what is on the module's queue; items that queue others are followed. Things that are
/// still alive may go on queueing. May sleep.
pub(crate) fn drain() {
    if let Some(q) = MODULE_QUEUE.as_ref() {
        // SAFETY: The queue is valid until module exit, where this is called.
        unsafe { bindings::smc_rs_drain_workqueue(q.0) }
    }
}

/// Destroys the module's queue, at the very end of module exit. May sleep.
///
/// The queue's memory must not be reached afterwards: nothing of the module may queue any more.
pub(crate) fn exit() {
    if let Some(q) = MODULE_QUEUE.as_ref() {
        // SAFETY: The caller is module exit; statics are not dropped, so this is the only call.
        unsafe { bindings::smc_rs_destroy_workqueue(q.0) }
    }
}

/// Queues a delayed item of the module's queue in `delay` jiffies; any context. A pending item is
/// brought forward if `sooner`, else left as it is. `false`: it was pending already.
///
/// # Safety
///
/// `work` is an initialised `delayed_work` whose function takes over a reference that the caller
/// gives if the result is `true`.
pub(super) unsafe fn queue_delayed(
    work: *mut bindings::delayed_work,
    delay: c_ulong,
    sooner: bool,
) -> bool {
    let Some(q) = MODULE_QUEUE.as_ref() else {
        return false;
    };
    let cpu = kernel::bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int;
    // SAFETY: By the safety requirements.
    unsafe {
        if sooner {
            // True: the item was pending and keeps its reference.
            !bindings::mod_delayed_work_on(cpu, q.0, work, delay)
        } else {
            bindings::queue_delayed_work_on(cpu, q.0, work, delay)
        }
    }
}
