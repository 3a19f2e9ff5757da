// SPDX-License-Identifier: GPL-2.0

//! Rings for the connections of a group.

use super::group::{
    Group,
    Phase, //
};
use crate::{
    ext::ring::RingMem,
    ib::Link,
    proto::{
        reason::Reason,
        size::SizeCode, //
    },
    rmb::Ring, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A size as rings have it.
fn bytes(size: SizeCode) -> u32 {
    // At most 512 MiB.
    u32::try_from(size.bytes()).unwrap_or(u32::MAX)
}

/// A ring of `wanted` bytes, or less for want of memory: out of the pool by `pooled`, else mapped
/// by `map`. May sleep.
fn obtain(
    wanted: u32,
    pooled: impl Fn(u32) -> Option<Arc<Ring>>,
    map: impl Fn(&Arc<RingMem>) -> Result<Arc<Ring>>,
) -> Result<Arc<Ring>, Reason> {
    let wanted = usize::try_from(wanted).map_err(|_| Reason::MEM)?;
    let mut size = SizeCode::from_size(wanted);
    loop {
        if let Some(ring) = pooled(bytes(size)) {
            return Ok(ring);
        }
        if let Ok(memory) = RingMem::new(size.bytes()) {
            return map(&memory).map_err(|_| Reason::ERR_REGBUF);
        }
        size = size.smaller().ok_or(Reason::MEM)?;
    }
}

impl Group {
    /// A receive buffer, registered. May sleep.
    pub(crate) fn take_rmb(&self, link: &Arc<Link>, wanted: u32) -> Result<Arc<Ring>, Reason> {
        obtain(
            wanted,
            |size| self.pool.take_rmb(size),
            |memory| Ring::new(link.register(memory)?),
        )
    }

    /// A send buffer, mapped. May sleep.
    pub(crate) fn take_snd(&self, link: &Arc<Link>, wanted: u32) -> Result<Arc<Ring>, Reason> {
        obtain(
            wanted,
            |size| self.pool.take_snd(size),
            |memory| Ring::new(link.map(memory)?),
        )
    }

    /// A send buffer isn't used any more, nor by the device.
    pub(crate) fn put_snd(&self, ring: Arc<Ring>) {
        drop(self.pool.put_snd(ring));
    }

    /// A receive buffer isn't used any more, nor by the peer; its first `touched` bytes may have
    /// been written.
    pub(crate) fn put_rmb(self: &Arc<Self>, ring: Arc<Ring>, touched: usize) {
        if let Some(extra) = self.pool.put_rmb(ring, touched) {
            self.retire_rmb(extra);
        }
    }

    /// A receive buffer of which the peer didn't hear for this connection.
    pub(crate) fn give_back_rmb(self: &Arc<Self>, ring: Arc<Ring>) {
        if ring.is_confirmed() {
            self.put_rmb(ring, 0);
        }
    }

    /// Gives a receive buffer up that the peer may still write to: it is told to forget the key,
    /// and the memory is kept until it did, or the link is gone.
    pub(crate) fn retire_rmb(self: &Arc<Self>, ring: Arc<Ring>) {
        if ring.is_confirmed() && self.phase() == Phase::Live {
            self.delete_rkey(ring);
        }
    }
}
