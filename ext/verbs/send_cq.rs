// SPDX-License-Identifier: GPL-2.0

//! The completion queue of sends, which disturbs nobody as long as nobody waits.
//!
//! That a message arrived is seldom news: in a dialogue the answer comes right behind it. So
//! completions stay in the queue until the next message comes in ([`SendCq::reap`]), and only when
//! somebody needs one (to send more, to have room, to close) the queue is armed ([`SendCq::want`]).
//! Once armed it stays so until nothing is outstanding.
//!
//! C header: [`include/linux/irq_poll.h`](srctree/include/linux/irq_poll.h)

use super::client::DevRef;
use crate::ext::abi::bindings;
use core::ptr;
use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc, //
    },
    types::Opaque, //
};

/// Completions handled in a row.
const BUDGET: c_int = 64;

/// The queue.
///
/// # Invariants
///
/// `cq` is null before [`SendCq::new`] has made it; then it is valid until [`Handle`] is dropped.
#[pin_data]
pub(super) struct SendCq {
    /// The queue itself; written once before it is shared.
    cq: Atomic<*mut bindings::ib_cq>,
    /// Handles completions in softirq when the queue was armed.
    #[pin]
    poll: Opaque<bindings::irq_poll>,
    /// Work requests of ours that have not completed.
    posted: Atomic<i32>,
    /// Whether an event is to come, or is being handled.
    armed: Atomic<bool>,
    /// Everything is to be completed.
    draining: Atomic<bool>,
}

// SAFETY: The C objects may be used from any thread.
unsafe impl Send for SendCq {}
// SAFETY: As above.
unsafe impl Sync for SendCq {}

/// What owns the queue; dropping it frees it. The queue pair must be gone.
pub(super) struct Handle(Arc<SendCq>);

impl Handle {
    /// Allocates a queue for `size` completions. May sleep.
    pub(super) fn new(dev: &DevRef, size: u32) -> Result<Self> {
        let size = c_int::try_from(size)?;
        let this = Arc::pin_init(
            pin_init!(SendCq {
                cq: Atomic::new(ptr::null_mut()),
                poll <- Opaque::ffi_init(|slot| {
                    // SAFETY: `slot` is valid for writes, and pinned.
                    unsafe { bindings::irq_poll_init(slot, BUDGET, Some(poll)) }
                }),
                posted: Atomic::new(0),
                armed: Atomic::new(false),
                draining: Atomic::new(false),
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: The device is valid; `poll` lives until the queue is freed.
        let cq = from_err_ptr(unsafe {
            bindings::smc_rs_alloc_send_cq(dev.as_raw(), this.poll.get().cast(), size, Some(event))
        })?;
        this.cq.store(cq, Relaxed);
        Ok(Self(this))
    }

    /// What others use.
    pub(super) fn shared(&self) -> &Arc<SendCq> {
        &self.0
    }

    /// The raw queue.
    pub(super) fn as_raw(&self) -> *mut bindings::ib_cq {
        self.0.cq.load(Relaxed)
    }

    /// From now on every completion is handled at once.
    pub(super) fn drain(&self) {
        self.0.draining.store(true, Relaxed);
        // SAFETY: The queue is valid.
        unsafe { self.0.arm() }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: The queue is ours, its queue pair is gone. The poller is stopped first, as it
        // uses the queue; it may arm it after it counts as stopped, but that is in softirq.
        unsafe {
            bindings::irq_poll_disable(self.0.poll.get());
            bindings::synchronize_net();
            bindings::ib_free_cq(self.as_raw());
        }
    }
}

impl SendCq {
    /// A work request that will complete here is about to be posted.
    pub(super) fn posting(&self) {
        // Fully ordered: see `poll`.
        self.posted.fetch_add(1, Full);
    }

    /// It completed, or was not posted after all.
    pub(super) fn completed(&self) {
        self.posted.fetch_sub(1, Relaxed);
    }

    /// Whether completions are to come.
    pub(super) fn is_busy(&self) -> bool {
        self.posted.load(Relaxed) > 0
    }

    /// Whether completions will be handled soon without [`SendCq::want`].
    pub(super) fn is_armed(&self) -> bool {
        self.armed.load(Relaxed)
    }

    /// Somebody waits for what has been posted so far.
    ///
    /// # Safety
    ///
    /// The queue must be valid.
    pub(super) unsafe fn want(&self) {
        if !self.is_armed() && self.is_busy() {
            // SAFETY: By the safety requirements.
            unsafe { self.arm() }
        }
    }

    /// Asks for an event, or handles what it would have told of.
    ///
    /// # Safety
    ///
    /// The queue must be valid.
    unsafe fn arm(&self) {
        self.armed.store(true, Relaxed);
        // SAFETY: The queue is valid by the safety requirements; the poller is initialised.
        unsafe {
            if bindings::smc_rs_arm_cq(self.cq.load(Relaxed)) {
                bindings::irq_poll_sched(self.poll.get());
            }
        }
    }

    /// Handles what has completed. Softirq.
    ///
    /// # Safety
    ///
    /// The queue must be valid.
    pub(super) unsafe fn reap(&self) {
        // SAFETY: The queue is valid by the safety requirements.
        unsafe { bindings::ib_process_cq_direct(self.cq.load(Relaxed), BUDGET) };
    }
}

/// The queue has completions; any context.
///
/// # Safety
///
/// `context` must be the poller of a [`SendCq`].
unsafe extern "C" fn event(_cq: *mut bindings::ib_cq, context: *mut c_void) {
    // SAFETY: By the safety requirements.
    unsafe { bindings::irq_poll_sched(context.cast()) }
}

/// Handles completions; softirq.
///
/// # Safety
///
/// `iop` must be the poller of a [`SendCq`] whose queue is valid.
unsafe extern "C" fn poll(iop: *mut bindings::irq_poll, budget: c_int) -> c_int {
    // SAFETY: By the safety requirements; `Opaque` is transparent.
    let this = unsafe { &*kernel::container_of!(Opaque::cast_from(iop), SendCq, poll) };
    // SAFETY: By the safety requirements.
    let done = unsafe { bindings::ib_process_cq_direct(this.cq.load(Relaxed), budget) };
    if done < budget {
        // SAFETY: As above.
        unsafe { bindings::irq_poll_complete(iop) };
        // Either we see what was posted just now, or who posted it sees that nothing is armed.
        this.armed.xchg(false, Full);
        if this.is_busy() || this.draining.load(Relaxed) {
            // SAFETY: As above.
            unsafe { this.arm() };
        }
    }
    done
}
