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

#[cfg(smc_rs_kunit)]
#[kernel::macros::kunit_tests(smc_rs_slot_queue)]
mod tests {
    use super::*;
    use crate::proto::wire::cdc::Cdc;
    use kernel::sync::atomic::{
        Atomic,
        Relaxed, //
    };

    /// Counts the order in which ports were asked.
    static TURN: Atomic<u32> = Atomic::new(0);

    /// A connection that answers as it was told to.
    struct Fake {
        /// The answer.
        answer: Pushed,
        /// When it was asked; 0: not yet.
        asked: Atomic<u32>,
    }

    impl Port for Fake {
        fn on_cdc(self: Arc<Self>, _cdc: &Cdc) {}
        fn on_slots(self: Arc<Self>) -> Pushed {
            self.asked.store(TURN.fetch_add(1, Relaxed) + 1, Relaxed);
            self.answer
        }
        fn on_group_down(self: Arc<Self>) {}
        fn on_link_gone(self: Arc<Self>) {}
        fn expire(self: Arc<Self>, _now: u64) -> bool {
            false
        }
    }

    /// A connection that will give `answer`.
    fn fake(answer: Pushed) -> Result<Arc<Fake>> {
        let asked = Atomic::new(0);
        Ok(Arc::new(Fake { answer, asked }, GFP_KERNEL)?)
    }

    #[test]
    fn serves_in_order_until_blocked() -> Result {
        let queue = KBox::pin_init(WaitQueue::new(), GFP_KERNEL)?;
        let ports = [
            fake(Pushed::Idle)?,
            fake(Pushed::Queued)?,
            fake(Pushed::Blocked)?,
            fake(Pushed::Idle)?,
        ];
        for port in &ports {
            assert!(queue.add(port.clone()));
        }
        queue.serve();
        let [a, b, c, d] = ports.each_ref().map(|port| port.asked.load(Relaxed));
        assert!(a > 0 && a < b && b < c);
        assert_eq!(d, 0);
        queue.serve();
        let [_, _, _, d] = ports.each_ref().map(|port| port.asked.load(Relaxed));
        assert!(d > c);
        Ok(())
    }

    #[test]
    fn is_bounded_and_can_be_cleared() -> Result {
        let queue = KBox::pin_init(WaitQueue::new(), GFP_KERNEL)?;
        let port = fake(Pushed::Idle)?;
        for _ in 0..ROOM {
            assert!(queue.add(port.clone()));
        }
        assert!(!queue.add(port.clone()));
        queue.clear();
        assert!(queue.add(port.clone()));
        queue.clear();
        // Only ours is left.
        assert!(Arc::into_unique_or_drop(port).is_some());
        Ok(())
    }
}
