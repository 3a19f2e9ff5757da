// SPDX-License-Identifier: GPL-2.0

//! Ring memory: the send buffers and receive buffers (RMBs) of connections.
//!
//! Sizes are 16 KiB times a power of two. Each link group keeps a pool of rings that earlier
//! connections used: they stay mapped and registered, and the peer keeps knowing their keys, so
//! that a later connection needs neither memory nor an exchange with the peer.

mod pool;
mod ring;

pub(crate) use self::{
    pool::Pool,
    ring::{
        alloc,
        Ring, //
    }, //
};
