// SPDX-License-Identifier: GPL-2.0

//! The rings of a link group that no connection uses.

use super::Ring;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// Unused receive buffers that are kept; more are given up.
const KEEP_RMB: usize = 32;
/// Unused send buffers that are kept.
const KEEP_SND: usize = 32;

/// The rings.
struct Inner {
    /// Send buffers.
    snd: KVec<Arc<Ring>>,
    /// Receive buffers.
    rmb: KVec<Arc<Ring>>,
    /// The link is gone: nothing is kept.
    closed: bool,
}

/// A pool; process context only.
#[pin_data]
pub(crate) struct Pool {
    /// The rings.
    #[pin]
    inner: Mutex<Inner>,
}

/// Takes a ring of `size` bytes out of a list.
fn take(list: &mut KVec<Arc<Ring>>, size: u32) -> Option<Arc<Ring>> {
    let at = list.iter().rposition(|ring| ring.size() == size)?;
    list.remove(at).ok()
}

/// Adds a ring to a list, or gives it back if there are `keep` already.
fn put(list: &mut KVec<Arc<Ring>>, ring: Arc<Ring>, keep: usize) -> Option<Arc<Ring>> {
    if list.len() >= keep || list.reserve(1, GFP_KERNEL).is_err() {
        return Some(ring);
    }
    list.push_within_capacity(ring).err().map(|e| e.0)
}

impl Pool {
    /// An empty pool.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            inner <- new_mutex!(Inner {
                snd: KVec::new(),
                rmb: KVec::new(),
                closed: false,
            }, "smc_rs_pool"),
        })
    }

    /// A send buffer of `size` bytes.
    pub(crate) fn take_snd(&self, size: u32) -> Option<Arc<Ring>> {
        take(&mut self.inner.lock().snd, size)
    }

    /// A receive buffer of `size` bytes.
    pub(crate) fn take_rmb(&self, size: u32) -> Option<Arc<Ring>> {
        take(&mut self.inner.lock().rmb, size)
    }

    /// Keeps a send buffer; gives it back if it is one too many.
    pub(crate) fn put_snd(&self, ring: Arc<Ring>) -> Option<Arc<Ring>> {
        let mut inner = self.inner.lock();
        if inner.closed {
            return Some(ring);
        }
        put(&mut inner.snd, ring, KEEP_SND)
    }

    /// Keeps a receive buffer of which the first `touched` bytes may have been written; gives it
    /// back if it is one too many. The bytes are cleared here, not when the next connection waits.
    pub(crate) fn put_rmb(&self, ring: Arc<Ring>, touched: usize) -> Option<Arc<Ring>> {
        ring.mem().zero(0, touched);
        let mut inner = self.inner.lock();
        if inner.closed {
            return Some(ring);
        }
        put(&mut inner.rmb, ring, KEEP_RMB)
    }

    /// The link is gone: gives everything up. May sleep.
    pub(crate) fn close(&self) {
        let (snd, rmb) = {
            let mut inner = self.inner.lock();
            inner.closed = true;
            (
                core::mem::take(&mut inner.snd),
                core::mem::take(&mut inner.rmb),
            )
        };
        drop((snd, rmb));
    }

    /// How many rings lie unused: send buffers, receive buffers.
    pub(crate) fn unused(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        (inner.snd.len(), inner.rmb.len())
    }
}
