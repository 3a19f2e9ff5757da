// SPDX-License-Identifier: GPL-2.0

//! Taking children from TCP's queue, and giving them to users.

use super::{
    abi::bindings,
    sk::{
        Sk,
        SkLocked,
        Socket, //
    }, //
};
use core::ptr::NonNull;
use kernel::sync::aref::ARef;

/// The next child of TCP's queue, without waiting. Its base reference is the caller's: it must be
/// attached to a private socket at once, which then owns it. May sleep for the listener's lock.
pub(crate) fn tcp_accept(listener: &Sk) -> Option<ARef<Sk>> {
    let mut err = 0;
    // SAFETY: A live listener; `err` is written during the call.
    let child = unsafe { bindings::smc_rs_tcp_accept(listener.as_raw(), &mut err) };
    // SAFETY: TCP's accept gives a live child.
    NonNull::new(child).map(|p| unsafe { Sk::from_raw(p.as_ptr()) }.hold())
}

/// Grafts a child to the socket of accept(), in the accepting task: memory cgroup, labels, state.
pub(crate) fn graft(listener: &Socket, new: &Socket, child: &SkLocked<'_>) {
    // SAFETY: Live sockets of this accept(); the child is locked and grafted once.
    unsafe { bindings::__inet_accept(listener.as_raw(), new.as_raw(), child.as_raw()) }
}
