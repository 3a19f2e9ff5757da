// SPDX-License-Identifier: GPL-2.0

//! A TCP sock's ULP slot: where a socket's state hangs, and the callbacks TCP makes to it.
//!
//! The slot (`icsk_ulp_ops`/`icsk_ulp_data`) is filled without registering a ULP, so nobody else
//! can ask for it, and while it is filled kTLS and sockmap keep off. A filled slot owns one
//! reference to the [`UlpSocket`]; readers clone it under RCU, and it is dropped a grace period
//! after the slot was emptied, on the module's work queue.
//!
//! A listener's children get their callbacks back in `clone`; those that were promised SMC keep a
//! marker in the slot (no data, one module reference) until the listener's owner pulls them.
//!
//! C header: [`include/net/tcp.h`](srctree/include/net/tcp.h)

use super::{
    abi::bindings,
    module::{
        self,
        ModuleRef, //
    },
    sk::{
        Sk,
        SkLocked, //
    },
    static_cell::StaticCell,
    workqueue, //
};
use core::{
    cell::UnsafeCell,
    ops::Deref, //
};
use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        rcu,
        Arc, //
    },
    types::Opaque,
    workqueue::{
        impl_has_delayed_work,
        impl_has_work,
        new_delayed_work,
        new_work,
        DelayedWork,
        Work,
        WorkItem, //
    }, //
};

/// What the owner of a slot does on TCP's events. The callbacks run under the socket's bh lock,
/// in softirq or process context, and must not sleep.
pub(crate) trait SlotOwner: Send + Sync + Sized + 'static {
    /// The initialiser of a socket's state.
    fn new() -> impl PinInit<Self>;
    /// TCP changed state.
    fn state_change(this: &Arc<UlpSocket<Self>>);
    /// TCP queued data or a FIN, or a listener has a child.
    fn data_ready(this: &Arc<UlpSocket<Self>>);
    /// TCP's send buffer has room.
    fn write_space(this: &Arc<UlpSocket<Self>>);
    /// `sk_err` was set: a reset, a time-out, `ss -K`.
    fn error_report(this: &Arc<UlpSocket<Self>>);
    /// TCP destroyed the sock; the slot is empty.
    fn released(this: &Arc<UlpSocket<Self>>);
    /// Whether a listener wants this SYN to be answered without the option.
    fn congested(this: &Arc<UlpSocket<Self>>) -> bool;
    /// The work of [`UlpSocket::kick`] and [`UlpSocket::kick_in`]; process context, may sleep.
    fn work(this: &Arc<UlpSocket<Self>>);
}

/// A socket's state as it hangs in the slot: the owner's value, the sock, and what is needed to
/// give the slot back.
#[pin_data]
pub(crate) struct UlpSocket<T: SlotOwner> {
    sk: ARef<Sk>,
    /// TCP's callbacks; written once before the slot is filled.
    saved: UnsafeCell<bindings::smc_rs_callbacks>,
    /// Goes when the last user of the state is gone: keeps the text that they run.
    _module: ModuleRef,
    /// The reference that went with our `sock->ops`, once they were replaced.
    ops_ref: UnsafeCell<Option<ModuleRef>>,
    #[pin]
    rcu: Opaque<bindings::callback_head>,
    #[pin]
    drop_work: Work<UlpSocket<T>, 0>,
    #[pin]
    work: DelayedWork<UlpSocket<T>, 1>,
    #[pin]
    inner: T,
}

// SAFETY: `saved` is written before the value is shared; `ops_ref` only under the socket lock.
unsafe impl<T: SlotOwner> Send for UlpSocket<T> {}
// SAFETY: As above.
unsafe impl<T: SlotOwner> Sync for UlpSocket<T> {}

impl_has_work! {
    impl{T: SlotOwner} HasWork<UlpSocket<T>, 0> for UlpSocket<T> { self.drop_work }
}
impl_has_delayed_work! {
    impl{T: SlotOwner} HasDelayedWork<UlpSocket<T>, 1> for UlpSocket<T> { self.work }
}

impl<T: SlotOwner> WorkItem<0> for UlpSocket<T> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        drop(this);
        // SAFETY: Pairs with `fill`; process context.
        unsafe { bindings::smc_rs_have_smc_dec() };
    }
}

impl<T: SlotOwner> WorkItem<1> for UlpSocket<T> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        T::work(&this);
    }
}

impl<T: SlotOwner> Deref for UlpSocket<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

/// What hangs in a sock's slot.
pub(crate) enum Slot<T: SlotOwner> {
    /// Nothing, or another ULP.
    Other,
    /// The marker of a child that was promised SMC and has not been pulled.
    Promised,
    /// A state of ours.
    Ours(Arc<UlpSocket<T>>),
}

/// Our ULP with state.
static ULP: StaticCell<bindings::tcp_ulp_ops> = StaticCell::new(pin_init::zeroed());
/// The marker of promised children.
static MARKER: StaticCell<bindings::tcp_ulp_ops> = StaticCell::new(pin_init::zeroed());

/// Fills the ULP tables for `T`; module init, once.
pub(crate) fn init<T: SlotOwner>() {
    let mut name = [0; 16];
    for (to, from) in name.iter_mut().zip(b"smc") {
        *to = *from;
    }
    // SAFETY: No sock points at the tables yet.
    unsafe {
        *ULP.get() = bindings::tcp_ulp_ops {
            name,
            clone: Some(on_clone::<T>),
            release: Some(on_release::<T>),
            // Ours is counted by `UlpSocket::_module`, which outlives the release.
            owner: core::ptr::null_mut(),
            ..pin_init::zeroed()
        };
        *MARKER.get() = bindings::tcp_ulp_ops {
            name,
            owner: module::this(),
            ..pin_init::zeroed()
        };
    }
}

/// What hangs in `sk`'s slot; any context.
pub(crate) fn get<T: SlotOwner>(sk: &Sk) -> Slot<T> {
    let _rcu = rcu::read_lock();
    // SAFETY: A live sock.
    let ops = unsafe { bindings::smc_rs_ulp_ops(sk.as_raw()) };
    if ops == MARKER.get().cast_const() {
        return Slot::Promised;
    }
    if ops != ULP.get().cast_const() {
        return Slot::Other;
    }
    // SAFETY: A live sock.
    let data = unsafe { bindings::smc_rs_ulp_data(sk.as_raw()) };
    if data.is_null() {
        return Slot::Other;
    }
    // SAFETY: Our slot's data is an `Arc<UlpSocket<T>>` whose reference is dropped a grace period
    // after the slot was emptied, hence is alive here.
    Slot::Ours(unsafe { clone_raw(data.cast()) })
}

/// Whether `sk`'s slot is empty.
pub(crate) fn is_free(sk: &Sk) -> bool {
    // SAFETY: A live sock.
    unsafe { bindings::smc_rs_ulp_ops(sk.as_raw()) }.is_null()
}

/// Clones the reference behind a slot's data.
///
/// # Safety
///
/// `ptr` came from `Arc::into_raw` and that reference is alive during the call.
unsafe fn clone_raw<T: SlotOwner>(ptr: *const UlpSocket<T>) -> Arc<UlpSocket<T>> {
    // SAFETY: By the safety requirements; the reference itself is not given up.
    let arc = core::mem::ManuallyDrop::new(unsafe { Arc::from_raw(ptr) });
    Arc::clone(&arc)
}

/// Makes a state, puts it into `sk`'s empty slot and takes over TCP's callbacks.
///
/// `module` is the reference that goes with the state. May sleep.
pub(crate) fn fill<T: SlotOwner>(
    sk: &SkLocked<'_>,
    module: ModuleRef,
) -> Result<Arc<UlpSocket<T>>, ModuleRef> {
    // SAFETY: A live sock, locked.
    if !unsafe { bindings::smc_rs_ulp_ops(sk.as_raw()) }.is_null() {
        return Err(module);
    }
    // Room first, so that the module reference is not lost with a failed allocation.
    let Ok(room) = kernel::sync::UniqueArc::<UlpSocket<T>>::new_uninit(GFP_KERNEL) else {
        return Err(module);
    };
    let init = pin_init!(UlpSocket {
        sk: sk.hold(),
        saved: UnsafeCell::new(bindings::smc_rs_callbacks::default()),
        _module: module,
        ops_ref: UnsafeCell::new(None),
        rcu <- Opaque::ffi_init(|_| {}),
        drop_work <- new_work!("smc_rs::UlpSocket::drop_work"),
        work <- new_delayed_work!("smc_rs::UlpSocket::work"),
        inner <- T::new(),
    });
    let arc: Arc<UlpSocket<T>> = match room.pin_init_with(init) {
        Ok(unique) => unique.into(),
        Err(infallible) => match infallible {},
    };
    let callbacks = bindings::smc_rs_callbacks {
        state_change: Some(on_state_change::<T>),
        data_ready: Some(on_data_ready::<T>),
        write_space: Some(on_write_space::<T>),
        error_report: Some(on_error_report::<T>),
    };
    // SAFETY: The sock is locked and the slot empty; `saved` is not shared yet. The static key is
    // raised in process context and lowered when the state's slot reference goes.
    unsafe {
        bindings::smc_rs_have_smc_inc();
        bindings::smc_rs_ulp_set(
            sk.as_raw(),
            ULP.get(),
            Arc::into_raw(arc.clone()).cast_mut().cast(),
        );
        bindings::smc_rs_set_callbacks(sk.as_raw(), &callbacks, arc.saved.get());
    }
    Ok(arc)
}

/// Takes the marker out of a promised child's slot; the caller holds the socket lock.
pub(crate) fn take_marker(sk: &SkLocked<'_>) -> bool {
    // SAFETY: A live, locked sock.
    unsafe {
        if bindings::smc_rs_ulp_ops(sk.as_raw()) != MARKER.get().cast_const() {
            return false;
        }
        bindings::smc_rs_ulp_set(sk.as_raw(), core::ptr::null(), core::ptr::null_mut());
    }
    // The marker's reference; the listener's own keeps the module.
    drop(ModuleRef::adopt());
    true
}

impl<T: SlotOwner> UlpSocket<T> {
    /// The sock.
    pub(crate) fn sk(&self) -> &Sk {
        &self.sk
    }

    /// Makes the sock plain TCP again: callbacks back, no offer, empty slot. The state lives on
    /// while anybody uses it. `true`: it was this call that emptied the slot.
    pub(crate) fn make_plain(this: &Arc<Self>, sk: &SkLocked<'_>) -> bool {
        // SAFETY: A live, locked sock; `saved` was filled by `fill`.
        unsafe {
            if bindings::smc_rs_ulp_ops(sk.as_raw()) != ULP.get().cast_const() {
                return false;
            }
            bindings::smc_rs_set_callbacks(sk.as_raw(), this.saved.get(), core::ptr::null_mut());
            bindings::smc_rs_tcp_set_syn_smc(sk.as_raw(), false);
            bindings::smc_rs_tcp_set_congested(sk.as_raw(), None);
            bindings::smc_rs_ulp_set(sk.as_raw(), core::ptr::null(), core::ptr::null_mut());
        }
        this.drop_slot_ref();
        true
    }

    /// Takes over the reference that went with `sock->ops`, which were just replaced: it is put
    /// by the last user of the state. The socket lock is held.
    pub(crate) fn adopt_ops_ref(&self, _sk: &SkLocked<'_>) {
        // SAFETY: The socket lock serialises writers; nobody reads it before `drop`.
        unsafe { *self.ops_ref.get() = Some(ModuleRef::adopt()) };
    }

    /// Asks the per-SYN hook before each SYN-ACK: see [`SlotOwner::congested`].
    pub(crate) fn hook_syn(&self, sk: &SkLocked<'_>) {
        // SAFETY: A live, locked sock.
        unsafe { bindings::smc_rs_tcp_set_congested(sk.as_raw(), Some(on_syn::<T>)) };
    }

    /// Runs the owner's work soon; any context. A pending timer is brought forward.
    pub(crate) fn kick(this: &Arc<Self>) {
        this.queue(0, true);
    }

    /// Runs the owner's work in `ms` milliseconds unless it is already due; any context.
    pub(crate) fn kick_in(this: &Arc<Self>, ms: u64) {
        let ms = u32::try_from(ms).unwrap_or(u32::MAX);
        this.queue(kernel::time::msecs_to_jiffies(ms), false);
    }

    fn queue(self: &Arc<Self>, delay: c_ulong, sooner: bool) {
        let ptr = Arc::into_raw(self.clone());
        // SAFETY: `DelayedWork` starts with its `delayed_work`; the reference in `ptr` becomes the
        // queued item's if it was queued by this call, else it is taken back.
        let queued = unsafe {
            let work = <Self as kernel::workqueue::HasWork<Self, 1>>::raw_get_work(ptr.cast_mut());
            let dwork = Work::raw_get(work).cast();
            workqueue::queue_delayed(dwork, delay, sooner)
        };
        if !queued {
            // SAFETY: From `into_raw` above, and not given away.
            drop(unsafe { Arc::from_raw(ptr) });
        }
    }

    /// Calls TCP's own state_change: wakes everybody.
    pub(crate) fn original_state_change(&self) {
        // SAFETY: `saved` is set; the sock is live.
        unsafe {
            if let Some(f) = (*self.saved.get()).state_change {
                f(self.sk.as_raw());
            }
        }
    }

    /// Calls TCP's own data_ready.
    pub(crate) fn original_data_ready(&self) {
        // SAFETY: As above.
        unsafe {
            if let Some(f) = (*self.saved.get()).data_ready {
                f(self.sk.as_raw());
            }
        }
    }

    /// Calls TCP's own write_space.
    pub(crate) fn original_write_space(&self) {
        // SAFETY: As above.
        unsafe {
            if let Some(f) = (*self.saved.get()).write_space {
                f(self.sk.as_raw());
            }
        }
    }

    /// Calls TCP's own error_report.
    pub(crate) fn original_error_report(&self) {
        // SAFETY: As above.
        unsafe {
            if let Some(f) = (*self.saved.get()).error_report {
                f(self.sk.as_raw());
            }
        }
    }

    /// Queues the drop of the slot's reference for after a grace period.
    fn drop_slot_ref(&self) {
        // SAFETY: The slot was emptied by the caller, so this happens once; `rcu` is ours until
        // the callback runs, and the slot's reference keeps it alive.
        unsafe { bindings::call_rcu(self.rcu.get(), Some(on_grace_period::<T>)) }
    }
}

/// The reference that the emptied slot held is moved to a work item, where dropping may sleep.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn on_grace_period<T: SlotOwner>(head: *mut bindings::callback_head) {
    // SAFETY: `head` is the `rcu` field of a `UlpSocket<T>` whose slot's reference is still held;
    // `Opaque` is transparent.
    let ptr = unsafe {
        kernel::container_of!(
            head.cast::<Opaque<bindings::callback_head>>(),
            UlpSocket<T>,
            rcu
        )
    };
    // SAFETY: The slot's reference, from `Arc::into_raw` in `fill`.
    let arc = unsafe { Arc::from_raw(ptr.cast_const()) };
    // Queued once per state, so this cannot fail.
    let _ = workqueue::queue().enqueue::<_, 0>(arc);
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn on_release<T: SlotOwner>(sk: *mut bindings::sock) {
    // SAFETY: TCP destroys a live sock of which we still hold the slot.
    let sk = unsafe { Sk::from_raw(sk) };
    if let Slot::Ours(this) = get::<T>(sk) {
        // SAFETY: The sock is dead for TCP: nobody else changes slot or callbacks.
        unsafe {
            bindings::smc_rs_set_callbacks(sk.as_raw(), this.saved.get(), core::ptr::null_mut());
            bindings::smc_rs_ulp_set(sk.as_raw(), core::ptr::null(), core::ptr::null_mut());
            // `tcp_cleanup_ulp` reads the ops' owner after we return.
            bindings::smc_rs_ulp_set(sk.as_raw(), ULP.get(), core::ptr::null_mut());
        }
        T::released(&this);
        this.drop_slot_ref();
    }
}

/// A listener's child: callbacks back, and a marker if it was promised SMC. Softirq.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn on_clone<T: SlotOwner>(
    req: *const bindings::request_sock,
    child: *mut bindings::sock,
    _gfp: bindings::gfp_t,
) {
    // SAFETY: The child is a copy of a listener with our slot; its data is alive as long as the
    // listener, which the request holds.
    unsafe {
        let data = bindings::smc_rs_ulp_data(child).cast::<UlpSocket<T>>();
        let promised = bindings::smc_rs_tcp_syn_smc(child) && bindings::smc_rs_req_smc_ok(req);
        if !data.is_null() {
            bindings::smc_rs_set_callbacks_nolock(child, (*data).saved.get());
        }
        bindings::smc_rs_tcp_set_congested(child, None);
        if promised {
            ModuleRef::get().leave();
            bindings::smc_rs_ulp_set(child, MARKER.get(), core::ptr::null_mut());
        } else {
            bindings::smc_rs_ulp_set(child, core::ptr::null(), core::ptr::null_mut());
        }
    }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn on_syn<T: SlotOwner>(sk: *const bindings::sock) -> bool {
    // A child that was promised SMC must not get to a listener of TCP; and what was set on the
    // listener since listen(), such as a key, counts, too.
    // SAFETY: TCP passes a live listener; both only look.
    if unsafe { bindings::smc_rs_may_migrate(sk) || !bindings::smc_rs_tcp_may_offer(sk.cast_mut()) }
    {
        return true;
    }
    // SAFETY: As above.
    match get::<T>(unsafe { Sk::from_raw(sk.cast_mut()) }) {
        Slot::Ours(this) => T::congested(&this),
        _ => true,
    }
}

/// Runs `f` on the state of `sk`, if it has one.
///
/// # Safety
///
/// `sk` is live: the caller is one of its callbacks.
unsafe fn with_state<T: SlotOwner>(sk: *mut bindings::sock, f: impl FnOnce(&Arc<UlpSocket<T>>)) {
    // SAFETY: By the safety requirements.
    if let Slot::Ours(this) = get::<T>(unsafe { Sk::from_raw(sk) }) {
        f(&this);
    }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn on_state_change<T: SlotOwner>(sk: *mut bindings::sock) {
    // SAFETY: A callback of a live sock.
    unsafe { with_state(sk, T::state_change) }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn on_data_ready<T: SlotOwner>(sk: *mut bindings::sock) {
    // SAFETY: A callback of a live sock.
    unsafe { with_state(sk, T::data_ready) }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn on_write_space<T: SlotOwner>(sk: *mut bindings::sock) {
    // SAFETY: A callback of a live sock.
    unsafe { with_state(sk, T::write_space) }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn on_error_report<T: SlotOwner>(sk: *mut bindings::sock) {
    // SAFETY: A callback of a live sock.
    unsafe { with_state(sk, T::error_report) }
}
