// SPDX-License-Identifier: GPL-2.0

//! Ring memory mapped for, and registered with, a link's device.

use crate::ext::ring::RingMem;
use kernel::sync::Arc;

/// A ring mapped on a link. Dropping it (any context) unmaps and deregisters it in a worker; the
/// ring's memory is kept until then. When the link goes away it becomes invalid by itself.
pub(crate) struct Mr {
    /// The memory.
    mem: Arc<RingMem>,
}

impl Mr {
    /// The key the peer needs (0 for a send ring).
    pub(crate) fn rkey(&self) -> u32 {
        0
    }

    /// The address the peer (or a write's source) uses for offset 0.
    pub(crate) fn addr(&self) -> u64 {
        0
    }

    /// The memory.
    pub(crate) fn mem(&self) -> &Arc<RingMem> {
        &self.mem
    }

    /// Makes what the device wrote to `offset..offset + len` visible to the CPU: call it before
    /// copying out of an RMB. Nothing on coherent systems. Any context.
    pub(crate) fn sync_for_cpu(&self, _offset: u32, _len: u32) {}
}
