// SPDX-License-Identifier: GPL-2.0

//! Transports: devices and ports, paths to a peer, links, registered memory.
//!
//! One transport is here, RoCEv2 over kernel verbs. The layers above see [`find_path`], [`Path`],
//! [`Link`], [`TxSlot`], [`Mr`] and the traits of [`transport`]; nothing of these names verbs, so
//! that another transport can stand behind them.
//!
//! Locks, in the order they may be taken: `Registry.devices` (mutex), `Device.links` (mutex), a
//! queue pair's control mutex (in `ext`), then one spinlock at a time. No lock is held while the
//! layer above is called.

mod device;
mod link;
mod mr;
mod path;
mod slot;
mod transport;

pub(crate) use self::{
    device::{
        system_id,
        Ib, //
    },
    link::{
        Link,
        TxSlot, //
    },
    mr::Mr,
    path::{
        find_path,
        Path, //
    },
    transport::{
        LinkUpper,
        NextHop,
        PeerQp,
        TxOwner,
        WriteSeg,
        MSG_LEN, //
    },
};

use crate::ext::net::NetPtr;
pub(crate) use crate::proto::{
    conn::{
        TxDone,
        MAX_WRITES, //
    },
    reason::Reason, //
};
use core::net::IpAddr;

/// The TCP connection that a path is wanted for.
#[derive(Clone, Copy)]
pub(crate) struct Flow<'a> {
    /// Its network namespace.
    pub(crate) net: NetPtr<'a>,
    /// The local address.
    pub(crate) local: IpAddr,
    /// The peer's address.
    pub(crate) peer: IpAddr,
    /// The interface it is bound to; 0: by route.
    pub(crate) ifindex: u32,
    /// The socket's mark.
    pub(crate) mark: u32,
    /// The socket's uid (for routing rules).
    pub(crate) uid: u32,
}
