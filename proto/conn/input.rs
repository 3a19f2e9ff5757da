// SPDX-License-Identifier: GPL-2.0

//! What a message from the peer changes. Everything in it is taken for hostile.

use super::super::cursor::CursorFault;
use super::super::wire::cdc::{
    Cdc,
    ConnFlags,
    ProdFlags, //
};
use super::Connection;

/// How the peer broke the protocol. The connection is of no use any more: abort it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PeerFault {
    /// It claims to have written where it could not.
    Producer(CursorFault),
    /// It claims to have read what we did not send.
    Consumer(CursorFault),
    /// It changed links and sent messages that never arrived.
    LostMessages,
}

/// What a message changed.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct RxEffects {
    /// There is more to read, or the end to see.
    pub(crate) wake_reader: bool,
    /// Writers will get an error now.
    pub(crate) wake_writer: bool,
    /// Call [`Connection::plan_tx`].
    pub(crate) push: bool,
    /// The peer just ended its side in any way.
    pub(crate) peer_done: bool,
    /// The peer just closed in order.
    pub(crate) peer_closed: bool,
    /// The peer just aborted.
    pub(crate) peer_aborted: bool,
    /// An urgent byte arrived: see [`Connection::urgent_offset`].
    pub(crate) urgent: bool,
}

/// Whether sequence number `a` is before `b`, both counted modulo 2^16.
fn before(a: u16, b: u16) -> bool {
    // The sign bit of the 16-bit difference.
    a.wrapping_sub(b) & 0x8000 != 0
}

impl Connection {
    /// A message for this connection arrived.
    pub(crate) fn on_cdc(&mut self, cdc: &Cdc) -> Result<RxEffects, PeerFault> {
        if self.close.faulted {
            return Ok(RxEffects::default());
        }
        let result = self.take_cdc(cdc);
        if result.is_err() {
            self.close.faulted = true;
            self.tx.discard();
        }
        result
    }

    /// Checks a message, then applies it.
    fn take_cdc(&mut self, cdc: &Cdc) -> Result<RxEffects, PeerFault> {
        if cdc.flags.has(ProdFlags::VALIDATION) {
            return if before(self.rx.seq, cdc.seq) {
                Err(PeerFault::LostMessages)
            } else {
                Ok(RxEffects::default())
            };
        }
        if before(cdc.seq, self.rx.seq) {
            return Ok(RxEffects::default());
        }
        let wrote = cdc
            .prod
            .advance(self.rx.received, self.rx.ring, self.rx.window())
            .map_err(PeerFault::Producer)?;
        let read = cdc
            .cons
            .advance(self.tx.acked, self.tx.peer, self.tx.unread())
            .map_err(PeerFault::Consumer)?;
        Ok(self.apply(cdc, wrote, read))
    }

    /// Applies a message whose cursors moved by `wrote` and `read` bytes.
    fn apply(&mut self, cdc: &Cdc, wrote: u32, read: u32) -> RxEffects {
        self.rx.seq = cdc.seq;
        self.rx.flags = cdc.flags;
        self.rx.received = self.rx.received.plus(wrote);
        self.tx.acked = self.tx.acked.plus(read);
        let urgent = self.rx.take_urgent(cdc.flags, wrote > 0);
        if cdc.flags.has(ProdFlags::UPDATE_REQUESTED) {
            self.rx.ack = true;
        }

        let ended = self.peer_done();
        let news = cdc.state.only(ConnFlags::KNOWN).without(self.close.peer);
        self.close.peer = self.close.peer.and(news);
        let gone = news.has(ConnFlags::ANY_CLOSE);
        if gone {
            self.tx.discard();
        }
        self.discard_rx();

        let unblocked = self.tx.blocked && read > 0;
        let asked = self.rx.ack || self.write_shut();
        RxEffects {
            wake_reader: wrote > 0 || news != ConnFlags::default(),
            wake_writer: gone,
            push: (unblocked || asked) && self.has_work(),
            peer_done: !ended && self.peer_done(),
            peer_closed: news.has(ConnFlags::CLOSED),
            peer_aborted: news.has(ConnFlags::ABORTED),
            urgent: urgent && self.has_urgent(),
        }
    }
}
