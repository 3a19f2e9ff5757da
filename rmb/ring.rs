// SPDX-License-Identifier: GPL-2.0

//! One ring and its mapping.

use crate::{
    ext::ring::RingMem,
    ib::Mr,
    proto::size::SizeCode, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// A ring mapped on the link of its group. Only [`Pool`](super::Pool) and one connection at a time
/// hold it.
pub(crate) struct Ring {
    /// The mapping; it keeps the memory.
    mr: Mr,
    /// The size in bytes.
    size: u32,
    /// Receive buffer: the peer was told its key by CONFIRM RKEY, or in its own first contact.
    confirmed: Atomic<bool>,
}

impl Ring {
    /// A ring with its mapping. May sleep.
    pub(crate) fn new(mr: Mr) -> Result<Arc<Self>> {
        let size = u32::try_from(mr.mem().size()).map_err(|_| EINVAL)?;
        Ok(Arc::new(
            Self {
                mr,
                size,
                confirmed: Atomic::new(false),
            },
            GFP_KERNEL,
        )?)
    }

    /// The mapping.
    pub(crate) fn mr(&self) -> &Mr {
        &self.mr
    }

    /// The memory.
    pub(crate) fn mem(&self) -> &Arc<RingMem> {
        self.mr.mem()
    }

    /// The size in bytes.
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// Whether the peer knows the key.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.confirmed.load(Relaxed)
    }

    /// The peer knows the key.
    pub(crate) fn set_confirmed(&self) {
        self.confirmed.store(true, Relaxed);
    }
}

/// Allocates ring memory of `wanted` bytes rounded up, or less if there is not so much memory:
/// half, and so on, down to 16 KiB. May sleep.
pub(crate) fn alloc(wanted: u32) -> Result<Arc<RingMem>> {
    let mut size = SizeCode::from_size(usize::try_from(wanted).map_err(|_| EINVAL)?);
    loop {
        match (RingMem::new(size.bytes()), size.smaller()) {
            (Err(_), Some(smaller)) => size = smaller,
            (done, _) => return done,
        }
    }
}
