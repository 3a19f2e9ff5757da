// SPDX-License-Identifier: GPL-2.0

//! Connections that wait for a free slot of their link, first come first served.

use super::tokens::{
    Port,
    Pushed, //
};
use crate::ext::spinlock_bh::{
    new_spinlock_bh,
    SpinLockBh, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A link group has at most 255 connections that count, and a few that are being wound up.
const ROOM: usize = 512;

/// A ring of waiting connections.
struct Ring {
    /// The places; allocated once.
    places: KVec<Option<Arc<dyn Port>>>,
    /// The oldest.
    head: usize,
    /// How many wait.
    len: usize,
}

impl Ring {
    /// Takes the oldest out.
    fn pop(&mut self) -> Option<Arc<dyn Port>> {
        if self.len == 0 {
            return None;
        }
        let port = self.places.get_mut(self.head)?.take();
        self.head = (self.head + 1) % ROOM;
        self.len -= 1;
        port
    }

    /// Adds at the end; gives it back if there is no room.
    fn push(&mut self, port: Arc<dyn Port>) -> Result<(), Arc<dyn Port>> {
        if self.len == ROOM {
            return Err(port);
        }
        match self.places.get_mut((self.head + self.len) % ROOM) {
            Some(place) => *place = Some(port),
            None => return Err(port),
        }
        self.len += 1;
        Ok(())
    }
}

/// The queue of connections waiting for a slot. A connection enters at most once: it keeps a flag.
#[pin_data]
pub(crate) struct WaitQueue {
    /// The ring.
    #[pin]
    ring: SpinLockBh<Ring>,
}

impl WaitQueue {
    /// An empty queue.
    pub(super) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            ring <- {
                let mut places = KVec::with_capacity(ROOM, GFP_KERNEL)?;
                for _ in 0..ROOM {
                    places.push_within_capacity(None).map_err(|_| ENOMEM)?;
                }
                new_spinlock_bh!(Ring { places, head: 0, len: 0 }, "smc_rs_slot_queue")
            },
        })
    }

    /// Puts a connection at the end; false if there is no room, which the caller's flag excludes.
    pub(crate) fn add(&self, port: Arc<dyn Port>) -> bool {
        let back = self.ring.lock().push(port);
        back.is_ok()
    }

    /// Slots are free: lets the waiting connections post in turn, one post each, until nobody
    /// waits or the slots are used up. Softirq.
    pub(super) fn serve(&self) {
        loop {
            let next = self.ring.lock().pop();
            let Some(port) = next else {
                return;
            };
            if port.on_slots() == Pushed::Blocked {
                return;
            }
        }
    }

    /// Forgets everybody; for a dead link.
    pub(crate) fn clear(&self) {
        loop {
            let next = self.ring.lock().pop();
            if next.is_none() {
                return;
            }
        }
    }
}
