// SPDX-License-Identifier: GPL-2.0

//! Moving the time of a delayed work item, which `kernel::workqueue` cannot do.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use kernel::{
    bindings,
    container_of,
    prelude::*,
    time::msecs_to_jiffies,
    workqueue::{
        Queue,
        RawDelayedWorkItem, //
    }, //
};

/// Milliseconds of the monotonic clock; any context but NMI.
pub(crate) fn now_ms() -> u64 {
    // SAFETY: `ktime_get` may be called in any context but NMI, where no Rust code of ours runs.
    let ns = unsafe { bindings::ktime_get() };
    u64::try_from(ns).unwrap_or(0) / 1_000_000
}

/// Queues `item` to run on `queue` in `delay_ms`, or moves it there if it is waiting already.
///
/// If it waits already the reference that `item` is, is given back. Does not sleep.
pub(crate) fn mod_delayed<W, const ID: u64>(
    queue: &Queue,
    item: W,
    delay_ms: u32,
) -> W::EnqueueOutput
where
    W: RawDelayedWorkItem<ID> + Send + 'static,
{
    let queue: *const Queue = queue;
    let delay = msecs_to_jiffies(delay_ms);

    // SAFETY: The closure returns false exactly if the item was waiting already, in which case
    // the queue keeps the reference it has; `W` is `Send` and static. The work item belongs to a
    // delayed work item by the guarantee of `RawDelayedWorkItem`. `Queue` is a transparent wrapper
    // of a `workqueue_struct`.
    unsafe {
        item.__enqueue(move |work| {
            let dwork = container_of!(work, bindings::delayed_work, work);
            !bindings::mod_delayed_work_on(
                bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int,
                queue.cast_mut().cast(),
                dwork,
                delay,
            )
        })
    }
}
