// SPDX-License-Identifier: GPL-2.0

//! Network namespaces and our state in each of them.
//!
//! C headers: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h),
//! [`include/net/netns/generic.h`](srctree/include/net/netns/generic.h)

use super::abi::bindings;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    types::Opaque, //
};

/// A borrowed network namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Net<'a>(NonNull<bindings::net>, PhantomData<&'a ()>);

impl Net<'_> {
    /// Wraps a raw pointer.
    ///
    /// # Safety
    ///
    /// `ptr` is a live namespace for `'a`.
    pub(super) unsafe fn from_raw(ptr: *mut bindings::net) -> Self {
        // SAFETY: The caller promises that it is live, hence not NULL.
        Self(unsafe { NonNull::new_unchecked(ptr) }, PhantomData)
    }

    /// The raw pointer.
    pub(super) fn as_raw(self) -> *mut bindings::net {
        self.0.as_ptr()
    }

    /// The namespace's address: identifies it while it lives.
    pub(crate) fn id(self) -> usize {
        self.0.as_ptr() as usize
    }

    /// Whether it is the initial namespace.
    pub(crate) fn is_init(self) -> bool {
        // SAFETY: A live namespace.
        unsafe { bindings::smc_rs_net_is_init(self.as_raw()) }
    }
}

/// What the module keeps per namespace. Zeroed memory is a valid value.
pub(crate) trait PerNet: Sync + Sized + 'static {
    /// Fills the zeroed state of a new namespace. Process context, may sleep.
    fn init(&self, net: Net<'_>) -> Result;
    /// Before the namespace's sockets are known to be gone. May sleep.
    fn pre_exit(&self, net: Net<'_>);
    /// The namespace goes away. May sleep.
    fn exit(&self, net: Net<'_>);
}

/// The generic id of our per-namespace memory; 0: not registered.
static NET_ID: Opaque32 = Opaque32(Opaque::new(0));

/// A `u32` that C code writes once.
#[repr(transparent)]
struct Opaque32(Opaque<c_uint>);
// SAFETY: Written by the registration before any reader exists.
unsafe impl Sync for Opaque32 {}

/// Registered per-namespace operations; dropped: every namespace's state goes away (may sleep).
pub(crate) struct Registration<T: PerNet>(Pin<KBox<Opaque<bindings::pernet_operations>>>, PhantomData<T>);

// SAFETY: Registration and removal are serialised by the kernel.
unsafe impl<T: PerNet> Send for Registration<T> {}
// SAFETY: As above.
unsafe impl<T: PerNet> Sync for Registration<T> {}

impl<T: PerNet> Registration<T> {
    /// Registers `T` for all present and future namespaces. `T` must accept zeroed memory.
    ///
    /// # Safety
    ///
    /// All-zero bytes are a valid `T`.
    pub(super) unsafe fn register() -> Result<Self> {
        let ops = KBox::pin(
            Opaque::new(bindings::pernet_operations {
                init: Some(init::<T>),
                pre_exit: Some(pre_exit::<T>),
                exit: Some(exit::<T>),
                id: NET_ID.0.get(),
                size: size_of::<T>(),
                ..pin_init::zeroed()
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: `ops` is pinned until the registration is dropped.
        kernel::error::to_result(unsafe { bindings::register_pernet_subsys(ops.get()) })?;
        Ok(Self(ops, PhantomData))
    }
}

impl<T: PerNet> Drop for Registration<T> {
    fn drop(&mut self) {
        // SAFETY: Registered by `register`.
        unsafe { bindings::unregister_pernet_subsys(self.0.get()) }
    }
}

/// Our state in `net`; any context, between registration and removal.
pub(super) fn state<T: PerNet>(net: Net<'_>) -> &T {
    // SAFETY: `NET_ID` was set by the registration, which outlives all users; the memory lives as
    // long as the namespace.
    unsafe { &*bindings::smc_rs_net_generic(net.as_raw(), *NET_ID.0.get()).cast::<T>() }
}

unsafe extern "C" fn init<T: PerNet>(net: *mut bindings::net) -> c_int {
    // SAFETY: The kernel passes a live namespace.
    let net = unsafe { Net::from_raw(net) };
    kernel::error::from_result(|| state::<T>(net).init(net).map(|()| 0))
}

unsafe extern "C" fn pre_exit<T: PerNet>(net: *mut bindings::net) {
    // SAFETY: The kernel passes a namespace that is live until exit returns.
    let net = unsafe { Net::from_raw(net) };
    state::<T>(net).pre_exit(net);
}

unsafe extern "C" fn exit<T: PerNet>(net: *mut bindings::net) {
    // SAFETY: As above.
    let net = unsafe { Net::from_raw(net) };
    state::<T>(net).exit(net);
}

/// A value that C code (sysctl) and we both read and write.
pub(crate) type Setting = Atomic<i32>;

/// A counter.
pub(crate) type Counter = Atomic<i64>;

/// Adds one.
pub(crate) fn count(c: &Counter) {
    c.add(1, Relaxed);
}
