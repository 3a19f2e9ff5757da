// SPDX-License-Identifier: GPL-2.0

//! What the core lock of a connection protects: arithmetic and flags, no copies, no posts.

use super::events::Events;
use crate::{
    proto::{
        conn::{
            Connection,
            PeerFault,
            RxEffects,
            TxPlan, //
        },
        wire::cdc::Cdc, //
    },
    rmb::Ring, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Messages kept for a connection whose peer half isn't known yet. A peer may use the connection
/// as soon as it sent its CONFIRM, which we may read later than the first messages.
const EARLY: usize = 16;

/// The peer's half.
#[derive(Clone, Copy, Default)]
pub(crate) struct PeerRmb {
    /// Its name for the connection.
    pub(crate) token: u32,
    /// Its key for the receive buffer.
    pub(crate) rkey: u32,
    /// The address of the receive buffer.
    pub(crate) addr: u64,
    /// The size of the receive buffer.
    pub(crate) size: u32,
}

/// The rings of a connection.
pub(super) struct Rings {
    /// The send buffer.
    pub(super) snd: Arc<Ring>,
    /// The receive buffer.
    pub(super) rmb: Arc<Ring>,
}

/// What is posted.
pub(super) struct Posting {
    /// The writes and the message.
    pub(super) plan: TxPlan,
    /// The ring they come from.
    pub(super) snd: Arc<Ring>,
    /// Where they go.
    pub(super) peer: PeerRmb,
    /// Whether something waits for the completion.
    pub(super) want: bool,
}

/// The changing part of a connection.
pub(super) struct Core {
    /// The machine; `None` until the peer's half is known.
    pub(super) conn: Option<Connection>,
    /// The peer's half.
    pub(super) peer: PeerRmb,
    /// The rings; `None` before they are mapped, and after they were given back.
    pub(super) rings: Option<Rings>,
    /// Messages that came before the machine.
    early: [Option<Cdc>; EARLY],
    /// Why the connection was cut off.
    pub(super) error: Option<Error>,
    /// Posted messages that have not completed.
    pub(super) posts: u32,
    /// Posts being made.
    pub(super) pushing: u32,
    /// A sender copies into the send buffer.
    pub(super) tx_busy: bool,
    /// A receiver copies out of the receive buffer.
    pub(super) rx_busy: bool,
    /// A sender found no room.
    pub(super) want_space: bool,
    /// The user closed or aborted, or there never was one.
    pub(super) user_gone: bool,
    /// When the user went without an orderly end; the peer should finish soon after.
    pub(super) gone_at: Option<u64>,
    /// The peer had its time.
    pub(super) expired: bool,
    /// The link is dead.
    pub(super) link_gone: bool,
    /// The connection is being or was wound up.
    pub(super) released: bool,
    /// The user was told that all is drained.
    pub(super) told_drained: bool,
}

/// How the receive buffer ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RmbEnd {
    /// The peer is done with it; so many bytes of it may have been written.
    Reuse(usize),
    /// The peer may still write to it.
    Retire,
}

impl Core {
    /// A connection without a peer.
    pub(super) fn new() -> Self {
        Self {
            conn: None,
            peer: PeerRmb::default(),
            rings: None,
            early: [None; EARLY],
            error: None,
            posts: 0,
            pushing: 0,
            tx_busy: false,
            rx_busy: false,
            want_space: false,
            user_gone: false,
            gone_at: None,
            expired: false,
            link_gone: false,
            released: false,
            told_drained: false,
        }
    }

    /// Sizes of send buffer and receive buffer, 0 if there are none.
    pub(super) fn sizes(&self) -> (u32, u32) {
        let rings = self.rings.as_ref();
        rings.map_or((0, 0), |rings| (rings.snd.size(), rings.rmb.size()))
    }

    /// Takes a message; the events for the user and whether to push.
    pub(super) fn on_cdc(&mut self, cdc: &Cdc) -> (Events, bool) {
        let Some(conn) = self.conn.as_mut() else {
            self.keep(cdc);
            return (Events::NONE, false);
        };
        let result = conn.on_cdc(cdc);
        if let (Some(offset), Some(rings)) = (conn.urgent_offset(), &self.rings) {
            let offset = usize::try_from(offset).unwrap_or(usize::MAX);
            if let Some(byte) = rings.rmb.mem().byte_at(offset) {
                conn.store_urgent(byte);
            }
        }
        self.apply(result)
    }

    /// Keeps a message for later. When all places are taken the last one is replaced: cursors and
    /// close flags of a later message include those of earlier ones.
    fn keep(&mut self, cdc: &Cdc) {
        let free = self.early.iter().position(Option::is_none);
        if let Some(place) = self.early.get_mut(free.unwrap_or(EARLY - 1)) {
            *place = Some(*cdc);
        }
    }

    /// The peer's half is known: messages that came before count now.
    pub(super) fn start(&mut self, conn: Connection, peer: PeerRmb) -> (Events, bool) {
        self.peer = peer;
        self.conn = Some(conn);
        let (mut events, mut push) = (Events::NONE, false);
        for cdc in core::mem::take(&mut self.early).iter().flatten() {
            let (e, p) = self.on_cdc(cdc);
            events |= e;
            push |= p;
        }
        (events, push)
    }

    /// Turns the effects of a message into events.
    fn apply(&mut self, result: Result<RxEffects, PeerFault>) -> (Events, bool) {
        match result {
            Ok(fx) => {
                let gone = fx.peer_closed || fx.peer_aborted;
                let events = Events::READABLE.when(fx.wake_reader)
                    | Events::WRITABLE.when(fx.wake_writer)
                    | Events::RCV_CLOSED.when(fx.peer_done)
                    | Events::ERROR.when(fx.peer_aborted)
                    | Events::URGENT.when(fx.urgent)
                    | Events::PROGRESS.when(self.user_gone);
                (events, fx.push || gone)
            }
            Err(_) => {
                self.error = self.error.or(Some(ECONNRESET));
                if let Some(conn) = self.conn.as_mut() {
                    conn.abort();
                }
                let all = Events::READABLE | Events::WRITABLE | Events::RCV_CLOSED;
                (all | Events::ERROR, true)
            }
        }
    }

    /// The next post, if there is anything to say. Counts it as being made and as in flight.
    pub(super) fn next_post(&mut self) -> Option<Posting> {
        if self.released || self.link_gone {
            return None;
        }
        let rings = self.rings.as_ref()?;
        let plan = self.conn.as_mut()?.plan_tx()?;
        let snd = rings.snd.clone();
        let want = self.wants_sent();
        self.pushing += 1;
        self.posts += 1;
        Some(Posting {
            plan,
            snd,
            peer: self.peer,
            want,
        })
    }

    /// Whether something waits for completions: data that was held back, a sender without room, or
    /// the end.
    pub(super) fn wants_sent(&self) -> bool {
        let conn = self.conn.as_ref();
        self.user_gone || self.want_space || conn.is_some_and(|c| c.write_shut() || c.unsent() > 0)
    }

    /// A post went out (or not); the answer is whether to look for another one.
    pub(super) fn post_made(&mut self, ok: bool) -> bool {
        self.pushing -= 1;
        let Some(conn) = self.conn.as_mut() else {
            return false;
        };
        if ok {
            return conn.posted();
        }
        self.posts -= 1;
        conn.post_failed();
        false
    }

    /// Whether the connection may be wound up; the answer is yes once.
    #[inline]
    pub(super) fn take_release(&mut self) -> bool {
        self.user_gone && self.take_end()
    }

    /// [`Core::take_release`] when the user has left.
    #[cold]
    fn take_end(&mut self) -> bool {
        let idle = self.posts == 0 && self.pushing == 0 && !self.tx_busy && !self.rx_busy;
        let over = self.link_gone
            || self.expired
            || self.conn.as_ref().is_none_or(|conn| self.ended(conn));
        let now = idle && over && !self.released;
        self.released |= now;
        now
    }

    /// Whether nothing will come from the peer any more.
    fn ended(&self, conn: &Connection) -> bool {
        conn.finished() && (conn.faulted() || conn.peer_closed() || conn.peer_aborted())
    }

    /// Whether the user should hear now that all is drained.
    #[inline]
    pub(super) fn take_drained(&mut self) -> bool {
        self.user_gone && !self.told_drained && self.find_drained()
    }

    /// [`Core::take_drained`] when it is news.
    #[cold]
    fn find_drained(&mut self) -> bool {
        let drained = self
            .conn
            .as_ref()
            .is_none_or(|c| c.write_shut() && c.drained());
        self.told_drained = drained;
        drained
    }

    /// Takes the rings out, with what is to become of the receive buffer.
    pub(super) fn take_rings(&mut self) -> Option<(Rings, RmbEnd)> {
        let rings = self.rings.take()?;
        let end = match &self.conn {
            Some(conn) if (conn.peer_closed() || conn.peer_aborted()) && !conn.faulted() => {
                RmbEnd::Reuse(conn.touched())
            }
            _ => RmbEnd::Retire,
        };
        Some((rings, end))
    }
}
