// SPDX-License-Identifier: GPL-2.0

//! Posting: from the send buffer to the peer's receive buffer, and the completion.

use super::{
    events::Events,
    state::Posting,
    Conn, //
};
use crate::{
    ib::{
        TxOwner,
        TxSlot,
        WriteSeg,
        MAX_WRITES, //
    },
    lgr::{
        Phase,
        Pushed, //
    },
    proto::conn::TxDone, //
};
use core::array;
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    }, //
};

impl Conn {
    /// Posts whatever there is to say. Never sleeps.
    pub(crate) fn push(self: &Arc<Self>) {
        while self.push_one() == Pushed::Queued {
            // `Queued` from here means more to do, not a place in the queue.
        }
    }

    /// Posts once at most; `Queued`: there is more to post.
    fn push_one(self: &Arc<Self>) -> Pushed {
        let Some(slot) = self.slot() else {
            return Pushed::Blocked;
        };
        let posting = self.core.lock().next_post();
        let Some(posting) = posting else {
            return Pushed::Idle;
        };
        let ok = self.post(slot, posting).is_ok();
        // The completion may have come already, when the post still counted as being made.
        let (more, drained, release) = {
            let mut core = self.core.lock();
            let more = core.post_made(ok);
            (more, core.take_drained(), core.take_release())
        };
        self.tell(Events::DRAINED.when(drained));
        if !ok {
            self.on_post_failure();
        }
        if release {
            self.release_soon();
        }
        if more {
            Pushed::Queued
        } else {
            Pushed::Idle
        }
    }

    /// A slot, or a place in the queue for one. The second look closes the gap in which the last
    /// slot in use may have come back before we were queued.
    fn slot(self: &Arc<Self>) -> Option<TxSlot<'_>> {
        if let Some(slot) = self.link.take_slot() {
            return Some(slot);
        }
        if !self.link.is_active() {
            return None;
        }
        self.queue_up();
        self.link.take_slot()
    }

    /// Enters the queue for slots, unless already there.
    fn queue_up(self: &Arc<Self>) {
        if self.queued.cmpxchg(false, true, Relaxed).is_ok() && !self.seat.waiting.add(self.clone())
        {
            self.queued.store(false, Relaxed);
        }
        // The end of the group must not have missed it: the queue holds references.
        if self.seat.phase() == Phase::Dead {
            self.seat.waiting.clear();
        }
    }

    /// Posts the writes and the message of a plan.
    fn post(self: &Arc<Self>, slot: TxSlot<'_>, posting: Posting) -> Result {
        let Posting {
            plan,
            snd,
            peer,
            want,
        } = posting;
        let writes = plan.writes();
        let segs: [WriteSeg<'_>; MAX_WRITES] = array::from_fn(|i| {
            let write = writes.get(i).copied().unwrap_or_default();
            WriteSeg {
                local: snd.mr(),
                offset: write.src,
                len: write.len,
                remote_addr: peer.addr.wrapping_add(u64::from(write.dst)),
                rkey: peer.rkey,
            }
        });
        let segs = segs.get(..writes.len()).unwrap_or(&[]);
        let owner = self.clone() as Arc<dyn TxOwner>;
        self.link
            .post(slot, segs, &plan.cdc.emit(), owner, plan.done, want)
    }

    /// A post failed: the link is of no use any more. The link says so too, from a worker.
    fn on_post_failure(self: &Arc<Self>) {
        self.seat.link_broken();
    }

    /// Slots are free; see [`crate::lgr::Port::on_slots`].
    pub(super) fn slots_free(self: Arc<Self>) -> Pushed {
        self.queued.store(false, Relaxed);
        let pushed = self.push_one();
        if pushed == Pushed::Queued {
            self.queue_up();
        }
        pushed
    }
}

impl TxOwner for Conn {
    fn tx_done(self: Arc<Self>, cookie: TxDone, ok: bool) {
        let (events, push, release) = {
            let mut core = self.core.lock();
            core.posts -= 1;
            let (sndbuf, _) = core.sizes();
            let quarter = usize::try_from(sndbuf / 4).unwrap_or(0);
            let Some(conn) = core.conn.as_mut() else {
                return;
            };
            let fx = if ok {
                conn.tx_complete(cookie)
            } else {
                conn.tx_lost(cookie)
            };
            // Waking for every few bytes would cost more than it brings.
            let roomy = conn.inflight() == 0 || conn.tx_space() >= quarter;
            let wake = fx.wake_writer && roomy && core::mem::take(&mut core.want_space);
            let events = Events::WRITABLE.when(wake)
                | Events::PROGRESS.when(fx.wake_writer && core.user_gone)
                | Events::DRAINED.when(core.take_drained());
            (events, fx.push, core.take_release())
        };
        self.tell(events);
        if push {
            self.push();
        }
        if release {
            self.release_soon();
        }
    }
}
