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

        // Space at the peer moves all that waits, even data held back for more to come: whether
        // it also waits for space is not known.
        let asked = read > 0 || self.rx.ack || self.write_shut();
        RxEffects {
            wake_reader: wrote > 0 || news != ConnFlags::default(),
            wake_writer: gone,
            push: asked && self.has_work(),
            peer_done: !ended && self.peer_done(),
            peer_closed: news.has(ConnFlags::CLOSED),
            peer_aborted: news.has(ConnFlags::ABORTED),
            urgent: urgent && self.has_urgent(),
        }
    }
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_conn_input))]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn sequence_numbers() {
        assert!(before(1, 2));
        assert!(!before(2, 2));
        assert!(!before(3, 2));
        assert!(before(65535, 0));
        assert!(before(65000, 500));
        assert!(!before(500, 65000));
    }

    #[test]
    fn old_messages_are_dropped() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = input(&mut conn, 5, 10, 0)?;
        assert_eq!(input(&mut conn, 4, 20, 0)?, RxEffects::default());
        assert_eq!(conn.readable(), 10);
        // Even hostile ones.
        assert_eq!(input(&mut conn, 4, 0, 99)?, RxEffects::default());
        assert_eq!(input(&mut conn, 5, 10, 0)?, RxEffects::default());
        // An older cursor in a newer message is no news.
        let _ = input(&mut conn, 6, 3, 0)?;
        assert_eq!(conn.readable(), 10);
        Ok(())
    }

    #[test]
    fn producer_is_bounded() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = input(&mut conn, 1, 16384, 0)?;
        assert_eq!(conn.readable(), 16384);
        // Read but not confirmed: the peer can't know of the space.
        let _ = conn.commit_rx(100);
        let fault = PeerFault::Producer(CursorFault::TooFar);
        assert_eq!(conn.on_cdc(&message(2, 16385, 0)?), Err(fault));
        assert!(conn.faulted());
        assert_eq!(conn.readable(), 16284);
        Ok(())
    }

    #[test]
    fn consumer_is_bounded() -> Result<(), Oops> {
        let mut conn = connection()?;
        send(&mut conn, 10)?;
        let fault = PeerFault::Consumer(CursorFault::TooFar);
        assert_eq!(conn.on_cdc(&message(1, 0, 1)?), Err(fault));

        let mut conn = connection()?;
        let _ = flush(&mut conn, 10)?;
        let _ = input(&mut conn, 1, 0, 10)?;
        assert_eq!(conn.peer_unread(), 0);
        assert_eq!(conn.on_cdc(&message(2, 0, 11)?), Err(fault));
        Ok(())
    }

    #[test]
    fn counts_are_inside_the_rings() -> Result<(), Oops> {
        let mut conn = connection()?;
        let mut cdc = message(1, 0, 0)?;
        cdc.prod.count = OURS;
        let fault = PeerFault::Producer(CursorFault::Outside);
        assert_eq!(conn.on_cdc(&cdc), Err(fault));

        let mut conn = connection()?;
        let mut cdc = message(1, 0, 0)?;
        cdc.cons.count = PEERS;
        let fault = PeerFault::Consumer(CursorFault::Outside);
        assert_eq!(conn.on_cdc(&cdc), Err(fault));
        Ok(())
    }

    #[test]
    fn faults_end_it() -> Result<(), Oops> {
        let mut conn = connection()?;
        send(&mut conn, 10)?;
        assert!(conn.on_cdc(&message(1, 0, 1)?).is_err());
        assert_eq!(input(&mut conn, 2, 10, 0)?, RxEffects::default());
        assert_eq!(conn.readable(), 0);
        assert!(conn.reserve_tx(1).is_err());
        conn.abort();
        let plan = post(&mut conn)?;
        assert_eq!(plan.cdc.state, ConnFlags::ABORTED);
        assert!(plan.writes().is_empty());
        let _ = conn.tx_complete(plan.done);
        assert!(conn.finished());
        assert_eq!(conn.touched(), 16384);
        Ok(())
    }

    #[test]
    fn unknown_bits_mean_nothing() -> Result<(), Oops> {
        let mut conn = connection()?;
        let mut cdc = message(1, 0, 0)?;
        cdc.flags = ProdFlags(0x07);
        cdc.state = ConnFlags(0x1f);
        assert_eq!(conn.on_cdc(&cdc), Ok(RxEffects::default()));
        assert!(!conn.peer_done());
        Ok(())
    }

    #[test]
    fn validation_after_a_change_of_links() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = input(&mut conn, 5, 10, 0)?;
        let mut cdc = message(5, 0, 0)?;
        cdc.flags = ProdFlags::VALIDATION;
        assert_eq!(conn.on_cdc(&cdc), Ok(RxEffects::default()));
        assert_eq!(conn.readable(), 10);
        cdc.seq = 6;
        assert_eq!(conn.on_cdc(&cdc), Err(PeerFault::LostMessages));
        Ok(())
    }
}
