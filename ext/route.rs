// SPDX-License-Identifier: GPL-2.0

//! IPv4 routes, as far as choosing a device needs them.
//!
//! C header: [`include/net/route.h`](srctree/include/net/route.h)

use super::{
    abi::bindings,
    net::NetPtr, //
};
use core::net::Ipv4Addr;
use kernel::prelude::*;

/// An address in network byte order, as C has it.
pub(super) fn be32(addr: Ipv4Addr) -> u32 {
    u32::from_ne_bytes(addr.octets())
}

/// What a route is looked up by.
pub(crate) struct Key {
    /// The local address.
    pub(crate) local: Ipv4Addr,
    /// The peer's address.
    pub(crate) peer: Ipv4Addr,
    /// The interface it must leave by; 0: any.
    pub(crate) ifindex: u32,
    /// The packet mark.
    pub(crate) mark: u32,
    /// The socket's owner.
    pub(crate) uid: u32,
}

/// The interface by which packets leave, or for a peer on the same host the one that owns the
/// local address. `None`: no route. Any context but hard interrupts.
pub(crate) fn interface(net: NetPtr<'_>, key: &Key) -> Option<u32> {
    let oif = c_int::try_from(key.ifindex).ok()?;
    // SAFETY: `net` is alive; the route and its device are used and put by the helper.
    let index = unsafe {
        bindings::smc_rs_route_ifindex(
            net.as_raw(),
            be32(key.local),
            be32(key.peer),
            oif,
            key.mark,
            key.uid,
        )
    };
    u32::try_from(index).ok().filter(|&i| i != 0)
}
