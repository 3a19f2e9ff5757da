// SPDX-License-Identifier: GPL-2.0

//! A reliable connection with message slots.
//!
//! Life: [`Qp::new`] (INIT), [`Qp::connect`] (receives posted, RTR), [`Qp::activate`] (RTS). It
//! ends when a completion or post fails, or by [`Qp::shut_down`]: posting stops at once, a worker
//! tells the user, drains the queue pair, and releases all it has on the device. Every posted work
//! request holds a reference to the [`Qp`] until its completion, whatever time that takes.
//!
//! Locks: `hw` (mutex) before `state` (BH spinlock). No lock is held when the user is called.

use super::{
    client::DevRef,
    gid::GidAttr,
    hw::Hw,
    mr::{
        Entry,
        Region,
        Shared, //
    },
    post::{
        Ctx,
        Receives, //
    },
    send_cq::SendCq, //
};
use crate::ext::{
    abi::bindings,
    ring::RingMem,
    spinlock_bh::SpinLockBh,
    workqueue, //
};
use core::ptr::NonNull;
use kernel::{
    error::to_result,
    impl_has_work,
    new_mutex,
    new_work,
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            Atomic,
            AtomicFlag,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
    types::Opaque,
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// Bytes of a message slot.
pub(super) const STRIDE: usize = 48;

/// Longest message that can be received (an ADD LINK with 255 keys), rounded up.
const LONGEST: usize = 4160;

/// Sizes of a queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Send slots.
    pub(crate) tx: u32,
    /// How many of these, from the first, may be posted with writes.
    pub(crate) data: u32,
    /// Receives.
    pub(crate) rx: u32,
}

impl Shape {
    /// Work requests of the send queue: two writes and a message a data slot, a message any other,
    /// one registration, one for the drain.
    pub(super) fn send_wrs(&self) -> u32 {
        self.tx + self.data * 2 + 2
    }

    /// Work requests of the receive queue, with one for the drain.
    pub(super) fn recv_wrs(&self) -> u32 {
        self.rx + 1
    }

    /// Where the message of a send slot lies in the buffer.
    pub(super) fn tx_offset(&self, slot: u32) -> usize {
        (self.rx + slot) as usize * STRIDE
    }

    /// Where long messages' ends go.
    pub(super) fn spill_offset(&self) -> usize {
        self.tx_offset(self.tx)
    }

    /// Size of the buffer: a power of two.
    pub(super) fn buf_len(&self) -> usize {
        (self.spill_offset() + LONGEST - STRIDE).next_power_of_two()
    }
}

/// What a queue pair tells its user. Softirq or worker context; must not sleep.
pub(crate) trait QpUser: Send + Sync + Sized + 'static {
    /// What goes along with a posted message until it completes.
    type Tag: Send;
    /// A message came.
    fn received(&self, msg: &[u8]);
    /// The message of `slot`, posted with `tag`, left (`ok`) or will not.
    fn sent(&self, slot: u32, tag: Option<Self::Tag>, ok: bool);
    /// The queue pair broke. In a worker, at most once, never if it was shut down first.
    fn down(&self);
    /// All that queue pair `qpn` had on the device has been released. In a worker, once.
    fn gone(&self, qpn: u32);
}

/// The other end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// Its GID.
    pub(crate) gid: [u8; 16],
    /// The next hop's MAC address.
    pub(crate) mac: [u8; 6],
    /// Time to live.
    pub(crate) hop_limit: u8,
    /// Its queue pair.
    pub(crate) qpn: u32,
    /// The first packet sequence number it sends.
    pub(crate) psn: u32,
    /// The path's MTU (`enum ib_mtu`).
    pub(crate) mtu: u8,
}

/// Where in its life a queue pair is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Receives may be posted.
    Init,
    /// Everything may be posted.
    Ready,
    /// Nothing may be posted; teardown is under way.
    Closing,
    /// Nothing is left on the device.
    Dead,
}

/// What the state lock protects.
pub(super) struct State {
    /// Where we are.
    pub(super) phase: Phase,
    /// It broke by itself and the user has not been told.
    tell: bool,
}

/// What posting needs of [`Hw`].
pub(super) struct Raw {
    /// The queue pair; valid until [`Phase::Dead`].
    pub(super) qp: *mut bindings::ib_qp,
    /// The device; valid until [`Phase::Dead`].
    pub(super) dev: *mut bindings::ib_device,
    /// The messages' memory; valid until [`Phase::Dead`].
    pub(super) buf: NonNull<u8>,
    /// Its size.
    pub(super) buf_len: usize,
    /// Its DMA address.
    pub(super) dma: u64,
    /// Whether it needs syncs.
    pub(super) sync: bool,
    /// Its key.
    pub(super) lkey: u32,
    /// What data goes inline.
    pub(super) max_inline: u32,
    /// How many pieces a work request may gather.
    pub(super) send_sge: u32,
    /// Completions of sends; what is valid until [`Phase::Dead`] is the queue itself.
    pub(super) send_cq: Arc<SendCq>,
}

/// A queue pair; see the head of the file.
#[pin_data]
pub(crate) struct Qp<U: QpUser> {
    /// What posting needs.
    pub(super) raw: Raw,
    /// Sizes.
    pub(super) shape: Shape,
    /// Its number.
    qpn: u32,
    /// Contexts of receives.
    pub(super) rx: KVec<Ctx<U>>,
    /// The receives themselves.
    pub(super) chains: Receives,
    /// Contexts of sends; one more for registrations.
    pub(super) tx: KVec<Ctx<U>>,
    /// Where in its life it is; held while posting, so that posts have an order and none comes
    /// after the drain has started.
    #[pin]
    pub(super) state: SpinLockBh<State>,
    /// Whether the phase is [`Phase::Ready`], for who can live with an old answer.
    ready: Atomic<bool>,
    /// What is on the device.
    #[pin]
    hw: Mutex<Option<Hw>>,
    /// One registration at a time.
    #[pin]
    pub(super) reg_lock: Mutex<()>,
    /// Completed by the registration's completion.
    #[pin]
    pub(super) reg_done: Opaque<bindings::completion>,
    /// Whether it succeeded.
    pub(super) reg_ok: AtomicFlag,
    /// Teardown, and unmapping of dropped regions.
    #[pin]
    work: Work<Qp<U>>,
    /// The user.
    #[pin]
    user: U,
}

// SAFETY: The raw pointers are used under `state` and valid as `Raw` says; the rest is `Send`.
unsafe impl<U: QpUser> Send for Qp<U> {}
// SAFETY: As above.
unsafe impl<U: QpUser> Sync for Qp<U> {}

impl_has_work! {
    impl{U: QpUser} HasWork<Self> for Qp<U> { self.work }
}

impl<U: QpUser> Qp<U> {
    /// Creates a queue pair on `port` of a device, in state INIT. May sleep.
    pub(crate) fn new(
        dev: DevRef,
        port: u32,
        shape: Shape,
        user: impl PinInit<U>,
    ) -> Result<Arc<Self>> {
        let hw = Hw::new(dev, &shape)?;
        let mut attr = bindings::ib_qp_attr {
            qp_state: bindings::ib_qp_state_IB_QPS_INIT,
            pkey_index: 0,
            port_num: port,
            qp_access_flags: (bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE
                | bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE)
                as c_int,
            ..pin_init::zeroed()
        };
        modify(
            &hw,
            &mut attr,
            bindings::ib_qp_attr_mask_IB_QP_STATE
                | bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX
                | bindings::ib_qp_attr_mask_IB_QP_PORT
                | bindings::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS,
        )?;
        // SAFETY: Queue pair and domain are valid.
        let (qpn, lkey) = unsafe { ((*hw.qp()).qp_num, (*hw.pd()).local_dma_lkey) };
        let raw = Raw {
            qp: hw.qp(),
            dev: hw.dev.as_raw(),
            buf: hw.buf.mem,
            buf_len: hw.buf.len,
            dma: hw.buf.dma,
            sync: hw.buf.sync,
            lkey,
            max_inline: hw.max_inline,
            send_sge: hw.send_sge,
            send_cq: hw.send_cq.shared().clone(),
        };
        let rx = Ctx::receives(shape.rx)?;
        let chains = Receives::new(&rx, &raw, &shape)?;
        let tx = Ctx::sends(shape.tx + 1)?;
        let init = pin_init!(Self {
            raw,
            shape,
            qpn,
            rx,
            chains,
            tx,
            state <- SpinLockBh::new(
                State { phase: Phase::Init, tell: false },
                c"smc_rs Qp.state",
                static_lock_class!()
            ),
            ready: Atomic::new(false),
            hw <- new_mutex!(Some(hw), "smc_rs Qp.hw"),
            reg_lock <- new_mutex!((), "smc_rs Qp.reg_lock"),
            // SAFETY: `slot` is valid for writes of a completion.
            reg_done <- Opaque::ffi_init(|slot| unsafe {
                bindings::smc_rs_completion_init(slot)
            }),
            reg_ok: AtomicFlag::new(false),
            work <- new_work!("smc_rs Qp.work"),
            user <- user,
        });
        Arc::pin_init(init, GFP_KERNEL)
    }

    /// The user.
    pub(crate) fn user(&self) -> &U {
        &self.user
    }

    /// Its number.
    pub(crate) fn qpn(&self) -> u32 {
        self.qpn
    }

    /// Whether messages can be posted, as far as is known without a lock.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Relaxed)
    }

    /// Somebody waits for the messages posted so far: [`QpUser::sent`] is called for each as soon
    /// as it completed, not only when the next message comes in. Any context but hard interrupts.
    pub(crate) fn want_sent(&self) {
        let cq = &self.raw.send_cq;
        if cq.is_armed() || !cq.is_busy() {
            return;
        }
        let state = self.state.lock();
        if state.phase == Phase::Ready {
            // SAFETY: The queue is valid in this phase, which does not end under the lock.
            unsafe { cq.want() }
        }
    }

    /// Posts all receives and goes to RTR. May sleep.
    pub(crate) fn connect(self: &Arc<Self>, sgid: &GidAttr<'_>, peer: &Peer) -> Result {
        let hw = self.hw.lock();
        let hw = hw.as_ref().ok_or(ENOTCONN)?;
        self.post_receives()?;
        let mut attr = bindings::ib_qp_attr {
            qp_state: bindings::ib_qp_state_IB_QPS_RTR,
            path_mtu: peer.mtu.into(),
            dest_qp_num: peer.qpn & 0xff_ffff,
            rq_psn: peer.psn & 0xff_ffff,
            max_dest_rd_atomic: 1,
            min_rnr_timer: 5,
            ..pin_init::zeroed()
        };
        // SAFETY: All pointers are valid; the GID entry outlives the call of `modify`, which takes
        // its own reference.
        unsafe {
            bindings::smc_rs_set_ah(
                &mut attr.ah_attr,
                sgid.as_raw(),
                peer.gid.as_ptr(),
                peer.mac.as_ptr(),
                peer.hop_limit,
            )
        };
        modify(
            hw,
            &mut attr,
            bindings::ib_qp_attr_mask_IB_QP_STATE
                | bindings::ib_qp_attr_mask_IB_QP_AV
                | bindings::ib_qp_attr_mask_IB_QP_PATH_MTU
                | bindings::ib_qp_attr_mask_IB_QP_DEST_QPN
                | bindings::ib_qp_attr_mask_IB_QP_RQ_PSN
                | bindings::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC
                | bindings::ib_qp_attr_mask_IB_QP_MIN_RNR_TIMER,
        )
    }

    /// Goes to RTS; `psn` is the first packet sequence number we send. May sleep.
    pub(crate) fn activate(&self, psn: u32) -> Result {
        let hw = self.hw.lock();
        let hw = hw.as_ref().ok_or(ENOTCONN)?;
        let mut attr = bindings::ib_qp_attr {
            qp_state: bindings::ib_qp_state_IB_QPS_RTS,
            // 0.54 s. smc.ko has 15 (0.13 s), which a busy virtual machine misses now and then; rxe
            // then sends again from within a message and breaks the connection.
            timeout: 17,
            retry_cnt: 7,
            rnr_retry: 7,
            sq_psn: psn & 0xff_ffff,
            max_rd_atomic: 1,
            ..pin_init::zeroed()
        };
        modify(
            hw,
            &mut attr,
            bindings::ib_qp_attr_mask_IB_QP_STATE
                | bindings::ib_qp_attr_mask_IB_QP_TIMEOUT
                | bindings::ib_qp_attr_mask_IB_QP_RETRY_CNT
                | bindings::ib_qp_attr_mask_IB_QP_RNR_RETRY
                | bindings::ib_qp_attr_mask_IB_QP_SQ_PSN
                | bindings::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC,
        )?;
        let mut state = self.state.lock();
        if state.phase != Phase::Init {
            return Err(ENOTCONN);
        }
        state.phase = Phase::Ready;
        self.ready.store(true, Relaxed);
        Ok(())
    }

    /// Maps memory; with `remote`, with a key for the peer. May sleep.
    pub(crate) fn map(self: &Arc<Self>, mem: &Arc<RingMem>, remote: bool) -> Result<Region<U>> {
        let mut hw = self.hw.lock();
        let hw = (*hw).as_mut().ok_or(ENOTCONN)?;
        let entry = Entry::new(hw, mem, remote)?;
        let shared = entry.shared().clone();
        hw.regions.push(entry, GFP_KERNEL)?;
        Ok(Region {
            shared,
            qp: self.clone(),
        })
    }

    /// Stops everything; the user will be told. Any context but hard interrupts.
    pub(crate) fn fail(self: &Arc<Self>) {
        self.close(true);
    }

    /// Stops everything; the user will not be told. Any context but hard interrupts.
    pub(crate) fn shut_down(self: &Arc<Self>) {
        self.close(false);
    }

    /// Common part of the above.
    fn close(self: &Arc<Self>, tell: bool) {
        let mut state = self.state.lock();
        if !matches!(state.phase, Phase::Init | Phase::Ready) {
            // The user shut it down after it broke: then it need not be told any more.
            state.tell &= tell;
            return;
        }
        state.phase = Phase::Closing;
        self.ready.store(false, Relaxed);
        state.tell = tell;
        drop(state);
        self.kick();
    }

    /// Lets the worker look. Any context but hard interrupts.
    pub(super) fn kick(self: &Arc<Self>) {
        if self.state.lock().phase != Phase::Dead {
            // If it is queued already it has yet to look.
            let _ = workqueue::queue().enqueue(self.clone());
        }
    }

    /// Drains and releases everything on the device. In the worker.
    fn tear_down(&self) {
        let Some(hw) = self.hw.lock().take() else {
            return;
        };
        hw.drain();
        self.state.lock().phase = Phase::Dead;
        drop(hw);
        self.sweep();
        self.user.gone(self.qpn);
    }

    /// Unmaps regions whose handles were dropped. In the worker.
    fn reap(&self) {
        let mut hw = self.hw.lock();
        if let Some(hw) = (*hw).as_mut() {
            hw.regions.retain(|entry| !entry.is_unused());
        }
    }

    /// Makes what the device wrote visible to the CPU.
    pub(super) fn sync_for_cpu(&self, shared: &Shared, offset: u32, len: u32) {
        let state = self.state.lock();
        if state.phase != Phase::Dead {
            // SAFETY: The device is valid in this phase, and the region is mapped, as its handle
            // is borrowed; both stay so while the lock is held.
            unsafe { shared.sync(self.raw.dev, offset, len, true) }
        }
    }
}

impl<U: QpUser> WorkItem for Qp<U> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let mut state = this.state.lock();
        let tell = core::mem::take(&mut state.tell);
        let closing = state.phase == Phase::Closing;
        drop(state);
        if tell {
            this.user.down();
        }
        if closing {
            this.tear_down();
        } else {
            this.reap();
        }
    }
}

/// Modifies a queue pair.
fn modify(hw: &Hw, attr: &mut bindings::ib_qp_attr, mask: bindings::ib_qp_attr_mask) -> Result {
    // SAFETY: The queue pair is valid while `hw` is; `mask` says which attributes are set.
    to_result(unsafe { bindings::ib_modify_qp(hw.qp(), attr, mask as c_int) })
}
