// SPDX-License-Identifier: GPL-2.0

//! Posting work requests, and their completions.

use super::{
    mr::{
        Region,
        Shared, //
    },
    qp::{
        Phase,
        Qp,
        QpUser,
        Raw,
        Shape,
        STRIDE, //
    },
};
use crate::ext::abi::bindings;
use core::{
    cell::UnsafeCell,
    mem::ManuallyDrop,
    ptr, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Release, //
        },
        Arc, //
    },
    types::Opaque, //
};

/// How long a registration may take.
const REG_MS: c_uint = 5000;

/// Most writes in front of a message, after joining.
const MAX_WRS: usize = 2;

/// Most pieces of memory in them.
const MAX_SGES: usize = 4;

/// Receives that are posted together. There are far more than a peer may use at a time.
const BATCH: usize = 8;

/// The context of a work request that can be outstanding once at a time.
///
/// # Invariants
///
/// `parent` is null, or a reference from [`Arc::into_raw`] to the queue pair that owns this
/// context: then the context is armed. `held` belongs to whoever armed it until the work request is
/// posted, and from then on to whoever may call [`Ctx::end`].
#[repr(C)]
pub(super) struct Ctx<U: QpUser> {
    /// What the completion queue calls; first, so that its address is the context's.
    cqe: Opaque<bindings::ib_cqe>,
    /// The reference held while outstanding.
    parent: Atomic<*mut Qp<U>>,
    /// What else is held while outstanding.
    held: UnsafeCell<Held<U>>,
    /// Index of the slot.
    index: u32,
}

/// What a posted message keeps until it completes.
struct Held<U: QpUser> {
    /// The region that its writes read, which counts it.
    region: Option<Arc<Shared>>,
    /// What the user gave along.
    tag: Option<U::Tag>,
}

impl<U: QpUser> Held<U> {
    /// Nothing.
    const NOTHING: Self = Self {
        region: None,
        tag: None,
    };
}

/// What an outstanding context gives back: its queue pair, and what goes with the completion.
type Ended<U> = (Arc<Qp<U>>, Option<<U as QpUser>::Tag>);

impl<U: QpUser> Ctx<U> {
    /// Contexts that call `done`.
    fn many(
        count: u32,
        done: unsafe extern "C" fn(*mut bindings::ib_cq, *mut bindings::ib_wc),
    ) -> Result<KVec<Self>> {
        let mut all = KVec::with_capacity(count as usize, GFP_KERNEL)?;
        for index in 0..count {
            all.push(
                Self {
                    cqe: Opaque::new(bindings::ib_cqe { done: Some(done) }),
                    parent: Atomic::new(ptr::null_mut()),
                    held: UnsafeCell::new(Held::NOTHING),
                    index,
                },
                GFP_KERNEL,
            )?;
        }
        Ok(all)
    }

    /// Contexts for receives.
    pub(super) fn receives(count: u32) -> Result<KVec<Self>> {
        Self::many(count, received::<U>)
    }

    /// Contexts for sends and registrations.
    pub(super) fn sends(count: u32) -> Result<KVec<Self>> {
        Self::many(count, sent::<U>)
    }

    /// Marks it as outstanding; gives `qp` back if it already is.
    fn arm(&self, qp: Arc<Qp<U>>) -> Result<(), Arc<Qp<U>>> {
        let new = Arc::into_raw(qp).cast_mut();
        // INVARIANT: `new` is a reference from `into_raw`.
        match self.parent.cmpxchg(ptr::null_mut(), new, Full) {
            Ok(_) => Ok(()),
            // SAFETY: `new` came from `into_raw` above and was not stored.
            Err(_) => Err(unsafe { Arc::from_raw(new) }),
        }
    }

    /// Keeps `held` until [`Ctx::end`].
    ///
    /// # Safety
    ///
    /// The caller must have armed the context, and not have posted yet.
    unsafe fn hold(&self, held: Held<U>) {
        if let Some(region) = &held.region {
            region.hold();
        }
        // SAFETY: By the safety requirements and the type invariants `held` is ours.
        unsafe { *self.held.get() = held };
    }

    /// Marks it as not outstanding, if it is, and takes all back.
    ///
    /// # Safety
    ///
    /// The caller must be the completion, which comes once; or who posted, if posting failed; or
    /// know that neither can come any more and nothing is posted.
    unsafe fn end(&self) -> Option<Ended<U>> {
        if self.parent.load(Acquire).is_null() {
            return None;
        }
        // SAFETY: By the safety requirements and the type invariants `held` is ours. It must be
        // taken before the context can be armed again.
        let held = core::mem::replace(unsafe { &mut *self.held.get() }, Held::NOTHING);
        let parent = self.parent.xchg(ptr::null_mut(), Full);
        // SAFETY: By the type invariants it is a reference; taking it out makes it ours.
        let qp = unsafe { Arc::from_raw(parent) };
        if let Some(region) = held.region {
            if region.release() {
                qp.kick();
            }
        }
        Some((qp, held.tag))
    }

    /// The context of a completion.
    ///
    /// # Safety
    ///
    /// `wc` must be the completion of a work request that was posted with a context of this type,
    /// and [`Ctx::end`] not yet called; the context lives until then at least.
    unsafe fn of<'a>(wc: *mut bindings::ib_wc) -> &'a Self {
        // SAFETY: By the safety requirements `wr_cqe` is the first field of a context, which lives
        // as long as its queue pair, which the work request holds.
        unsafe { &*(*wc).__bindgen_anon_1.wr_cqe.cast::<Self>() }
    }
}

/// The work requests of all receives, tied together by batches.
pub(super) struct Receives {
    /// The work requests; they point to each other and to `sges`.
    wrs: KVec<bindings::ib_recv_wr>,
    /// Where messages go.
    #[expect(dead_code)]
    sges: KVec<[bindings::ib_sge; 2]>,
}

impl Receives {
    /// The receives of `contexts`.
    pub(super) fn new<U: QpUser>(contexts: &[Ctx<U>], raw: &Raw, shape: &Shape) -> Result<Self> {
        let spill = shape.spill_offset();
        let sge = |offset: usize, length: usize| bindings::ib_sge {
            addr: raw.dma + offset as u64,
            length: length as u32,
            lkey: raw.lkey,
        };
        let mut sges = KVec::with_capacity(contexts.len(), GFP_KERNEL)?;
        let mut wrs = KVec::with_capacity(contexts.len(), GFP_KERNEL)?;
        for (i, ctx) in contexts.iter().enumerate() {
            let places = [sge(i * STRIDE, STRIDE), sge(spill, raw.buf_len - spill)];
            sges.push(places, GFP_KERNEL)?;
            let mut wr: bindings::ib_recv_wr = pin_init::zeroed();
            wr.__bindgen_anon_1.wr_cqe = ctx.cqe.get();
            wr.num_sge = 2;
            wrs.push(wr, GFP_KERNEL)?;
        }
        for (wr, places) in wrs.iter_mut().zip(&mut sges) {
            wr.sg_list = places.as_mut_ptr();
        }
        for batch in wrs.chunks_mut(BATCH) {
            let mut next = ptr::null_mut();
            for wr in batch.iter_mut().rev() {
                wr.next = next;
                next = wr;
            }
        }
        Ok(Self { wrs, sges })
    }
}

/// A piece of a ring to be written to the peer.
pub(crate) struct Write<'a, U: QpUser> {
    /// The ring.
    pub(crate) region: &'a Region<U>,
    /// Offset in it.
    pub(crate) offset: u32,
    /// Bytes.
    pub(crate) len: u32,
    /// Where to.
    pub(crate) remote_addr: u64,
    /// The peer's key.
    pub(crate) rkey: u32,
}

/// A chain of work requests being built.
struct Chain {
    /// The writes, then the message.
    wrs: [bindings::ib_rdma_wr; MAX_WRS + 1],
    /// How many writes there are.
    writes: usize,
    /// Bytes and first piece of each write.
    parts: [(u32, usize); MAX_WRS],
    /// The pieces, and one for the message.
    sges: [bindings::ib_sge; MAX_SGES + 1],
    /// The pieces' virtual addresses.
    virt: [u64; MAX_SGES],
    /// How many pieces there are.
    pieces: usize,
}

impl Chain {
    /// An empty chain.
    fn new() -> Self {
        Self {
            wrs: pin_init::zeroed(),
            writes: 0,
            parts: [(0, 0); MAX_WRS],
            sges: pin_init::zeroed(),
            virt: [0; MAX_SGES],
            pieces: 0,
        }
    }

    /// Appends a write; one that goes on where the last ended is joined to it.
    fn add<U: QpUser>(&mut self, w: &Write<'_, U>, raw: &Raw) -> Result {
        let shared = &w.region.shared;
        let end = w.offset.checked_add(w.len).ok_or(EINVAL)?;
        if w.len == 0 || end as usize > shared.mem.size() {
            return Err(EINVAL);
        }
        if !self.joins(w, raw) {
            let wr = self.wrs.get_mut(self.writes).ok_or(E2BIG)?;
            let part = self.parts.get_mut(self.writes).ok_or(E2BIG)?;
            *part = (0, self.pieces);
            wr.wr.opcode = bindings::ib_wr_opcode_IB_WR_RDMA_WRITE;
            wr.remote_addr = w.remote_addr;
            wr.rkey = w.rkey;
            self.writes += 1;
        }
        let last = self.writes.checked_sub(1).ok_or(EINVAL)?;
        let virt = self.virt.get_mut(self.pieces).ok_or(E2BIG)?;
        *virt = (shared.mem.as_ptr() as u64).wrapping_add(w.offset.into());
        self.sges[self.pieces] = bindings::ib_sge {
            addr: shared.addr + u64::from(w.offset),
            length: w.len,
            lkey: shared.lkey,
        };
        self.pieces += 1;
        self.wrs[last].wr.num_sge += 1;
        self.parts[last].0 = self.parts[last].0.checked_add(w.len).ok_or(EINVAL)?;
        Ok(())
    }

    /// Whether a write goes on where the last one ends.
    fn joins<U: QpUser>(&self, w: &Write<'_, U>, raw: &Raw) -> bool {
        let Some(last) = self.writes.checked_sub(1) else {
            return false;
        };
        let wr = &self.wrs[last];
        wr.rkey == w.rkey
            && wr.remote_addr.wrapping_add(self.parts[last].0.into()) == w.remote_addr
            && (wr.wr.num_sge as u32) < raw.send_sge
    }

    /// Appends the message and ties everything together; the chain must not move afterwards.
    fn finish(&mut self, msg: &[u8], dma: u64, cqe: *mut bindings::ib_cqe, raw: &Raw) {
        for i in 0..self.writes {
            let (len, first) = self.parts[i];
            if len <= raw.max_inline {
                for k in first..first + self.wrs[i].wr.num_sge as usize {
                    self.sges[k].addr = self.virt[k];
                }
                self.wrs[i].wr.send_flags = bindings::ib_send_flags_IB_SEND_INLINE as c_int;
            }
            self.wrs[i].wr.sg_list = &raw mut self.sges[first];
            self.wrs[i].wr.next = &raw mut self.wrs[i + 1].wr;
        }
        let mut flags =
            bindings::ib_send_flags_IB_SEND_SIGNALED | bindings::ib_send_flags_IB_SEND_SOLICITED;
        let mut addr = dma;
        if raw.goes_inline(msg) {
            flags |= bindings::ib_send_flags_IB_SEND_INLINE;
            addr = msg.as_ptr() as u64;
        }
        self.sges[MAX_SGES] = bindings::ib_sge {
            addr,
            length: msg.len() as u32,
            lkey: raw.lkey,
        };
        let wr = &mut self.wrs[self.writes].wr;
        wr.opcode = bindings::ib_wr_opcode_IB_WR_SEND;
        wr.send_flags = flags as c_int;
        wr.num_sge = 1;
        wr.sg_list = &raw mut self.sges[MAX_SGES];
        wr.__bindgen_anon_1.wr_cqe = cqe;
    }
}

impl<U: QpUser> Qp<U> {
    /// Posts writes, all out of one region, and then a message of up to 48 bytes from a send slot,
    /// in one go. The region stays mapped until the completion, which hands `tag` to
    /// [`QpUser::sent`]; `want`: as after [`Qp::want_sent`]. The slot must not be outstanding. After an error the queue pair is going
    /// down, except for `ENOTCONN` (it was already, or is not active) and wrong arguments. Any
    /// context but hard interrupts.
    pub(crate) fn post<'a>(
        self: &Arc<Self>,
        slot: u32,
        writes: impl Iterator<Item = Write<'a, U>> + Clone,
        msg: &[u8],
        tag: Option<U::Tag>,
        want: bool,
    ) -> Result {
        if slot >= self.shape.tx || msg.is_empty() || msg.len() > STRIDE {
            return Err(EINVAL);
        }
        let ctx = self.tx.get(slot as usize).ok_or(EINVAL)?;
        let mut chain = Chain::new();
        let source = writes.clone().next().map(|w| &w.region.shared);
        for w in writes.clone() {
            let same = source.is_some_and(|s| Arc::ptr_eq(s, &w.region.shared));
            if slot >= self.shape.data || !same || !Arc::ptr_eq(&w.region.qp, self) {
                return Err(EINVAL);
            }
            chain.add(&w, &self.raw)?;
        }
        let offset = self.shape.tx_offset(slot);
        chain.finish(msg, self.raw.dma + offset as u64, ctx.cqe.get(), &self.raw);
        let held = Held {
            region: source.cloned(),
            tag,
        };
        self.post_with(ctx, &chain.wrs[0].wr, held, want, || {
            if !self.raw.goes_inline(msg) {
                self.raw.write(offset, msg);
            }
            for w in writes.filter(|w| w.region.shared.sync) {
                // SAFETY: The region is mapped on our device: its handle is borrowed and the
                // device is valid while posting is allowed.
                unsafe { w.region.shared.sync(self.raw.dev, w.offset, w.len, false) }
            }
        })
    }

    /// Posts a chain whose last work request completes to `ctx`; `prepare` runs when it is certain
    /// that posting is allowed.
    fn post_with(
        self: &Arc<Self>,
        ctx: &Ctx<U>,
        wr: *const bindings::ib_send_wr,
        held: Held<U>,
        want: bool,
        prepare: impl FnOnce(),
    ) -> Result {
        let state = self.state.lock();
        if state.phase != Phase::Ready {
            return Err(ENOTCONN);
        }
        if let Err(me) = ctx.arm(self.clone()) {
            drop(state);
            drop(me);
            return Err(EBUSY);
        }
        // SAFETY: Just armed, and not posted.
        unsafe { ctx.hold(held) };
        prepare();
        let cq = &self.raw.send_cq;
        cq.posting();
        // SAFETY: The queue pair is valid in this phase. The chain is complete, its memory is
        // mapped and stays so until the completion: message slots as the context holds us, rings
        // as the context holds them.
        let done = to_result(unsafe { bindings::smc_rs_post_send(self.raw.qp, wr) });
        if want && done.is_ok() {
            // SAFETY: The queue is valid in this phase.
            unsafe { cq.want() }
        }
        drop(state);
        if done.is_err() {
            cq.completed();
            // SAFETY: Some of the chain may have been posted, but not its end, which would
            // complete to `ctx`.
            drop(unsafe { ctx.end() });
            self.fail();
        }
        done
    }

    /// Registers a region that has a key and waits for it. Sleeps up to 5 s.
    pub(crate) fn register(self: &Arc<Self>, region: &Region<U>) -> Result {
        let shared = &region.shared;
        if !Arc::ptr_eq(&region.qp, self) {
            return Err(EINVAL);
        }
        if shared.mr.is_null() {
            return Ok(());
        }
        let _one = self.reg_lock.lock();
        let ctx = self.tx.last().ok_or(EINVAL)?;
        let mut wr: bindings::ib_reg_wr = pin_init::zeroed();
        wr.wr.opcode = bindings::ib_wr_opcode_IB_WR_REG_MR;
        wr.wr.send_flags = bindings::ib_send_flags_IB_SEND_SIGNALED as c_int;
        wr.wr.__bindgen_anon_1.wr_cqe = ctx.cqe.get();
        wr.mr = shared.mr;
        // SAFETY: The region is mapped as its handle is borrowed.
        wr.key = unsafe { (*shared.mr).rkey };
        wr.access = shared.access;
        self.post_with(ctx, &wr.wr, Held::NOTHING, true, || {
            self.reg_ok.store(false, Release);
            // SAFETY: The completion was initialised by `new`; no registration is outstanding, as
            // its context was free.
            unsafe { bindings::smc_rs_completion_reinit(self.reg_done.get()) }
        })?;
        // SAFETY: The completion was initialised by `new`.
        if !unsafe { bindings::smc_rs_completion_wait(self.reg_done.get(), REG_MS) } {
            self.fail();
            return Err(ETIMEDOUT);
        }
        if self.reg_ok.load(Acquire) {
            Ok(())
        } else {
            Err(EIO)
        }
    }

    /// Posts all receives for the first time.
    pub(super) fn post_receives(self: &Arc<Self>) -> Result {
        for ctx in &self.rx {
            // Armed until a receive fails, or the sweep: it is posted again and again.
            ctx.arm(self.clone()).map_err(|_| EBUSY)?;
        }
        let mut first = 0;
        while first < self.rx.len() {
            self.post_batch(first)?;
            first += BATCH;
        }
        Ok(())
    }

    /// Posts the batch of receives that begins with `first`. They must have been armed, and all be
    /// complete.
    fn post_batch(self: &Arc<Self>, first: usize) -> Result {
        let wr = self.chains.wrs.get(first).ok_or(EINVAL)?;
        let state = self.state.lock();
        if !matches!(state.phase, Phase::Init | Phase::Ready) {
            return Err(ENOTCONN);
        }
        // SAFETY: The queue pair is valid in these phases; the buffer is mapped until it is dead.
        // In these phases no receive has failed, so that all are armed.
        let done = to_result(unsafe { bindings::smc_rs_post_recv(self.raw.qp, wr) });
        drop(state);
        if done.is_err() {
            self.fail();
        }
        done
    }

    /// A receive is complete and its message was taken out. Receives complete in the order in which
    /// they were posted, so that with the last one of a batch all of it can be posted again.
    fn took_receive(self: &Arc<Self>, index: usize) {
        if index % BATCH == BATCH - 1 || index + 1 == self.rx.len() {
            let _ = self.post_batch(index - index % BATCH);
        }
    }

    /// Takes back what never completed, as a device too broken to be drained leaves it. Called
    /// when the completion queue is gone.
    pub(super) fn sweep(&self) {
        for ctx in &self.rx {
            // SAFETY: Nothing completes without a completion queue, and nothing is posted any more.
            drop(unsafe { ctx.end() });
        }
        for ctx in &self.tx {
            // SAFETY: As above.
            if let Some((_, tag)) = unsafe { ctx.end() } {
                self.on_sent(ctx.index, tag, false);
            }
        }
    }

    /// A send or a registration completed, or never will.
    fn on_sent(&self, index: u32, tag: Option<U::Tag>, ok: bool) {
        if index < self.shape.tx {
            self.user().sent(index, tag, ok);
        } else {
            self.reg_ok.store(ok, Release);
            // SAFETY: The completion was initialised by `new`.
            unsafe { bindings::smc_rs_complete(self.reg_done.get()) };
        }
    }

    /// A receive completed.
    fn on_received(self: &Arc<Self>, index: usize, len: usize) {
        let mut short = [0u8; STRIDE];
        let head = len.min(STRIDE);
        self.raw.read(index * STRIDE, &mut short[..head]);
        if len <= STRIDE {
            // Before dispatch, so that the queue never runs dry.
            self.took_receive(index);
            self.user().received(&short[..head]);
            return;
        }
        let mut long = KVec::new();
        let copied = long
            .extend_from_slice(&short, GFP_ATOMIC)
            .and_then(|()| long.resize(len, 0, GFP_ATOMIC));
        if copied.is_ok() {
            self.raw
                .read(self.shape.spill_offset(), &mut long[STRIDE..]);
        }
        self.took_receive(index);
        if copied.is_ok() {
            self.user().received(&long);
        }
    }
}

impl Raw {
    /// Whether a message is handed to the device by value.
    fn goes_inline(&self, msg: &[u8]) -> bool {
        msg.len() <= self.max_inline as usize
    }

    /// Copies bytes out of the message buffer. The device must be valid.
    fn read(&self, offset: usize, to: &mut [u8]) {
        let len = to.len().min(self.buf_len.saturating_sub(offset));
        // SAFETY: The range lies in the buffer, which is valid and mapped until `Phase::Dead`,
        // before which all completions come.
        unsafe {
            if self.sync {
                bindings::smc_rs_dma_sync(self.dev, self.dma + offset as u64, len, true);
            }
            ptr::copy_nonoverlapping(self.buf.as_ptr().add(offset), to.as_mut_ptr(), len);
            if self.sync {
                bindings::smc_rs_dma_sync(self.dev, self.dma + offset as u64, len, false);
            }
        }
    }

    /// Copies bytes into the message buffer. The device must be valid.
    fn write(&self, offset: usize, from: &[u8]) {
        let len = from.len().min(self.buf_len.saturating_sub(offset));
        // SAFETY: As in `read`; called only while posting is allowed.
        unsafe {
            ptr::copy_nonoverlapping(from.as_ptr(), self.buf.as_ptr().add(offset), len);
            if self.sync {
                bindings::smc_rs_dma_sync(self.dev, self.dma + offset as u64, len, false);
            }
        }
    }
}

/// Completion of a receive; softirq.
///
/// # Safety
///
/// `wc` must be the completion of a receive that was posted with a [`Ctx<U>`].
unsafe extern "C" fn received<U: QpUser>(_cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: Receives are posted with contexts of this type; this is the completion.
    let ctx = unsafe { Ctx::<U>::of(wc) };
    let parent = ctx.parent.load(Acquire);
    if parent.is_null() {
        return;
    }
    // SAFETY: The context's reference. It stays until an error completes this receive, which would
    // be handled after this, or until the sweep, when the completion queue is gone.
    let qp = ManuallyDrop::new(unsafe { Arc::from_raw(parent) });
    if qp.raw.send_cq.is_busy() {
        // SAFETY: The queue is freed after the one whose completion this is.
        unsafe { qp.raw.send_cq.reap() }
    }
    // SAFETY: The completion is valid during the callback.
    let (status, len) = unsafe { ((*wc).status, (*wc).byte_len as usize) };
    if status == bindings::ib_wc_status_IB_WC_SUCCESS {
        qp.on_received(ctx.index as usize, len);
    } else {
        qp.fail();
        // SAFETY: This is the completion, and it will not be posted again.
        drop(unsafe { ctx.end() });
    }
}

/// Completion of a send or a registration; softirq.
///
/// # Safety
///
/// `wc` must be the completion of a work request that was posted with a [`Ctx<U>`].
unsafe extern "C" fn sent<U: QpUser>(_cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: Sends and registrations are posted with contexts of this type; this is the
    // completion.
    let ctx = unsafe { Ctx::<U>::of(wc) };
    let index = ctx.index;
    // SAFETY: This is the completion.
    let Some((qp, tag)) = (unsafe { ctx.end() }) else {
        return;
    };
    qp.raw.send_cq.completed();
    // SAFETY: The completion is valid during the callback.
    let ok = unsafe { (*wc).status } == bindings::ib_wc_status_IB_WC_SUCCESS;
    if !ok {
        qp.fail();
    }
    qp.on_sent(index, tag, ok);
}
