// SPDX-License-Identifier: GPL-2.0

//! Ring memory mapped for, and registered with, a link's device.

use super::link::LinkUser;
use crate::ext::{
    ring::RingMem,
    verbs::Region, //
};
use kernel::sync::Arc;

/// A ring mapped on a link. Dropping it (any context) unmaps and deregisters it in a worker, once
/// no posted message reads it; the ring's memory is kept until then. When the link goes away it becomes invalid by itself.
pub(crate) struct Mr(Region<LinkUser>);

impl Mr {
    /// Wraps a region.
    pub(super) fn new(region: Region<LinkUser>) -> Self {
        Self(region)
    }

    /// The region.
    pub(super) fn region(&self) -> &Region<LinkUser> {
        &self.0
    }

    /// The key the peer needs (0 for a send ring).
    pub(crate) fn rkey(&self) -> u32 {
        self.0.rkey()
    }

    /// The address the peer (or a write's source) uses for offset 0.
    pub(crate) fn addr(&self) -> u64 {
        self.0.addr()
    }

    /// The memory.
    pub(crate) fn mem(&self) -> &Arc<RingMem> {
        self.0.mem()
    }

    /// Makes what the device wrote to `offset..offset + len` visible to the CPU: call it before
    /// copying out of an RMB. Nothing on coherent systems. Any context but hard interrupts.
    pub(crate) fn sync_for_cpu(&self, offset: u32, len: u32) {
        self.0.sync_for_cpu(offset, len);
    }
}
