// SPDX-License-Identifier: GPL-2.0

//! Network namespaces and our state in each of them.
//!
//! C headers: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h),
//! [`include/net/netns/generic.h`](srctree/include/net/netns/generic.h)

use super::{
    abi::bindings,
    net::NetPtr,
    static_cell::StaticCell, //
};
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

/// What the module keeps per namespace.
pub(crate) trait PerNet: Sync + pin_init::Zeroable + Sized + 'static {
    /// Fills the zeroed state of a new namespace. Process context, may sleep.
    fn init(&self, net: NetPtr<'_>) -> Result;
    /// Before the namespace's sockets are known to be gone. May sleep.
    fn pre_exit(&self, net: NetPtr<'_>);
    /// The namespace goes away. May sleep.
    fn exit(&self, net: NetPtr<'_>);
    /// Where the kernel's id of this type's memory is kept.
    fn slot() -> &'static NetSlot<Self>;
    /// Stands in as long as nothing is registered.
    fn unregistered() -> &'static Self;
}

/// The kernel's id of the memory that each namespace has for a `T`; 0: not registered.
pub(crate) struct NetSlot<T>(StaticCell<c_uint>, PhantomData<fn() -> T>);

impl<T> NetSlot<T> {
    /// Not registered.
    pub(crate) const fn new() -> Self {
        Self(StaticCell::new(0), PhantomData)
    }
}

/// Wraps the namespace a pernet operation was called for.
///
/// # Safety
///
/// `net` is live for the lifetime the caller picks.
unsafe fn wrap<'a>(net: *mut bindings::net) -> NetPtr<'a> {
    // SAFETY: The kernel passes a live namespace, never NULL.
    unsafe { NetPtr::from_raw(NonNull::new_unchecked(net)) }
}

/// Registered per-namespace operations; dropped: every namespace's state goes away (may sleep).
pub(crate) struct Registration<T: PerNet>(
    Pin<KBox<Opaque<bindings::pernet_operations>>>,
    PhantomData<T>,
);

// SAFETY: Registration and removal are serialised by the kernel.
unsafe impl<T: PerNet> Send for Registration<T> {}
// SAFETY: As above.
unsafe impl<T: PerNet> Sync for Registration<T> {}

impl<T: PerNet> Registration<T> {
    /// Registers `T` for all present and future namespaces; once. May sleep.
    pub(crate) fn register() -> Result<Self> {
        let ops = KBox::pin(
            Opaque::new(bindings::pernet_operations {
                init: Some(init::<T>),
                pre_exit: Some(pre_exit::<T>),
                exit: Some(exit::<T>),
                id: T::slot().0.get(),
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

/// Our state in `net`; any context.
pub(crate) fn state<'a, T: PerNet>(net: NetPtr<'a>) -> &'a T {
    // SAFETY: Written by the kernel during the registration, before namespaces have the memory.
    let id = unsafe { *T::slot().0.get() };
    if id == 0 {
        return T::unregistered();
    }
    // SAFETY: Only a `Registration<T>` gives the slot of `T` an id, with memory for a `T`, of
    // which zeroes are a value; the memory lives as long as the namespace, and the registration
    // outlives all users.
    unsafe { &*bindings::smc_rs_net_generic(net.as_raw(), id).cast::<T>() }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn init<T: PerNet>(net: *mut bindings::net) -> c_int {
    // SAFETY: The kernel passes a live namespace.
    let net = unsafe { wrap(net) };
    kernel::error::from_result(|| state::<T>(net).init(net).map(|()| 0))
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn pre_exit<T: PerNet>(net: *mut bindings::net) {
    // SAFETY: The kernel passes a namespace that is live until exit returns.
    let net = unsafe { wrap(net) };
    state::<T>(net).pre_exit(net);
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn exit<T: PerNet>(net: *mut bindings::net) {
    // SAFETY: As above.
    let net = unsafe { wrap(net) };
    state::<T>(net).exit(net);
}

/// An integer that a sysctl writes and the module reads.
#[repr(transparent)]
pub(crate) struct Setting(Atomic<i32>);

/// A counter.
#[repr(transparent)]
pub(crate) struct Counter(Atomic<i64>);

// SAFETY: An atomic integer; zero is a value.
unsafe impl pin_init::Zeroable for Setting {}
// SAFETY: As above.
unsafe impl pin_init::Zeroable for Counter {}

impl core::ops::Deref for Setting {
    type Target = Atomic<i32>;

    fn deref(&self) -> &Atomic<i32> {
        &self.0
    }
}

impl Counter {
    /// Adds one; any context.
    pub(crate) fn inc(&self) {
        self.0.add(1, Relaxed);
    }

    /// The value.
    pub(crate) fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}
