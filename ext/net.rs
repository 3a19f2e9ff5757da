// SPDX-License-Identifier: GPL-2.0

//! Network namespaces, borrowed for a call.
//!
//! C header: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h)

use super::abi::bindings;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

/// A network namespace that is alive for `'a`.
///
/// # Invariants
///
/// Points to a `struct net` that is not freed during `'a`.
#[derive(Clone, Copy)]
pub(crate) struct NetPtr<'a>(NonNull<bindings::net>, PhantomData<&'a bindings::net>);

/// Which network namespace something belongs to, without keeping it: its cookie, which no other
/// namespace ever has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct NetId(u64);

impl NetPtr<'_> {
    /// Which namespace it is.
    pub(crate) fn id(self) -> NetId {
        NetId(self.cookie())
    }

    /// Wraps a raw pointer.
    ///
    /// # Safety
    ///
    /// `net` must stay alive for the lifetime the caller picks.
    pub(super) unsafe fn from_raw(net: NonNull<bindings::net>) -> Self {
        // INVARIANT: By the safety requirements.
        Self(net, PhantomData)
    }

    /// The raw pointer.
    pub(super) fn as_raw(self) -> *mut bindings::net {
        self.0.as_ptr()
    }

    /// A number that no other namespace ever has.
    pub(crate) fn cookie(self) -> u64 {
        // SAFETY: The namespace is alive by the type invariants.
        unsafe { bindings::smc_rs_net_cookie(self.as_raw()) }
    }
}
