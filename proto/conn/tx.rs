// SPDX-License-Identifier: GPL-2.0

//! The way of data out: application, send buffer, peer's receive buffer, acknowledgement.
//!
//! `done <= sent <= prep <= done + ring` and `acked <= sent <= acked + peer` hold always.

use super::super::ring::{
    Pos,
    RingSize,
    Segments, //
};
use super::{
    amount,
    plan::TxDone,
    size,
    urgent::TxUrgent,
    Connection, //
};

/// Positions and counters of the way out.
#[derive(Debug)]
pub(super) struct Tx {
    /// Send buffer.
    pub(super) ring: RingSize,
    /// The peer's receive buffer.
    pub(super) peer: RingSize,
    /// Up to where the application wrote.
    pub(super) prep: Pos,
    /// Up to where plans cover the data.
    pub(super) sent: Pos,
    /// Up to where posts completed; what lies before is free.
    pub(super) done: Pos,
    /// Up to where the peer read.
    pub(super) acked: Pos,
    /// Sequence number of the last planned message.
    pub(super) seq: u16,
    /// Messages planned and not completed.
    pub(super) pending: u32,
    /// A plan is being posted.
    pub(super) posting: bool,
    /// Another plan was asked for meanwhile.
    pub(super) again: bool,
    /// Urgent data.
    pub(super) urgent: TxUrgent,
}

/// Room in the send buffer for one sender to fill; worth nothing until committed.
#[must_use = "room must be committed, even with nothing in it"]
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct TxGrant {
    /// Where in the stream it begins.
    start: Pos,
    /// Where in the send buffer it lies.
    segments: Segments,
}

impl TxGrant {
    /// Where in the send buffer the bytes go.
    pub(crate) fn segments(&self) -> Segments {
        self.segments
    }

    /// Bytes that fit.
    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }
}

/// Why nothing can be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TxBlocked {
    /// The send buffer is full; `wake_writer` will tell when to try again.
    Full,
    /// We shut writing down, or closed.
    Shut,
    /// The peer closed and will read nothing more.
    PeerClosed,
    /// The peer aborted the connection.
    PeerAborted,
    /// The connection was cut off.
    Dead,
}

/// What a completion changed.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct TxEffects {
    /// The send buffer has more room.
    pub(crate) wake_writer: bool,
    /// Nothing is left to send or to complete, see [`Connection::drained`].
    pub(crate) drained: bool,
    /// Call [`Connection::plan_tx`].
    pub(crate) push: bool,
}

impl Tx {
    /// Nothing written yet.
    pub(super) fn new(ring: RingSize, peer: RingSize) -> Self {
        Self {
            ring,
            peer,
            prep: Pos::START,
            sent: Pos::START,
            done: Pos::START,
            acked: Pos::START,
            seq: 0,
            pending: 0,
            posting: false,
            again: false,
            urgent: TxUrgent::default(),
        }
    }

    /// Free bytes of the send buffer.
    pub(super) fn space(&self) -> u32 {
        self.ring.bytes().saturating_sub(self.prep.since(self.done))
    }

    /// Written bytes that no plan covers.
    pub(super) fn unsent(&self) -> u32 {
        self.prep.since(self.sent)
    }

    /// Planned bytes that the peer has not read.
    pub(super) fn unread(&self) -> u32 {
        self.sent.since(self.acked)
    }

    /// Free bytes of the peer's receive buffer.
    pub(super) fn window(&self) -> u32 {
        self.peer.bytes().saturating_sub(self.unread())
    }

    /// Bytes that a plan could carry now.
    pub(super) fn sendable(&self) -> u32 {
        self.unsent().min(self.window()).min(self.urgent_limit())
    }

    /// Forgets written bytes that no plan covers.
    pub(super) fn discard(&mut self) {
        self.prep = self.sent;
        self.discard_urgent();
    }

    /// A message completed, and with it all data up to `upto`. Returns the bytes that got free.
    fn complete(&mut self, upto: Pos) -> u32 {
        let upto = upto.min(self.sent).max(self.done);
        let freed = upto.since(self.done);
        self.done = upto;
        freed
    }
}

impl Connection {
    /// Room for up to `want` bytes in the send buffer. Of several grants that are out at a time
    /// only the first one committed counts.
    pub(crate) fn reserve_tx(&mut self, want: usize) -> Result<TxGrant, TxBlocked> {
        self.tx_allowed()?;
        let space = self.tx.space();
        if space == 0 && want > 0 {
            return Err(TxBlocked::Full);
        }
        Ok(TxGrant {
            start: self.tx.prep,
            segments: self.tx.ring.span(self.tx.prep, amount(want).min(space)),
        })
    }

    /// The first `copied` bytes of the grant are filled. Returns how many count as sent: all, or
    /// none when sending was shut down meanwhile (or the grant is stale).
    pub(crate) fn commit_tx(&mut self, grant: TxGrant, copied: usize) -> usize {
        if self.tx_allowed().is_err() || grant.start != self.tx.prep {
            return 0;
        }
        // The free space only grows between reserve and commit.
        let copied = amount(copied.min(grant.len())).min(self.tx.space());
        self.tx.prep = self.tx.prep.plus(copied);
        size(copied)
    }

    /// Whether committed data should go out now rather than wait for more.
    ///
    /// Data waits while a message is on its way and at most `autocork_limit` bytes (and half the
    /// send buffer) wait: its completion pushes. It also waits if `more` is promised, as long as
    /// there is room. Urgent data never waits.
    pub(crate) fn should_push(&self, more: bool, autocork_limit: u32) -> bool {
        let unsent = self.tx.unsent();
        if self.tx.urgent_news() {
            return true;
        }
        let small = unsent <= autocork_limit.min(self.tx.ring.bytes() >> 1);
        unsent > 0 && !(self.tx.pending > 0 && small) && !(more && self.tx.space() > 0)
    }

    /// The message of a plan was sent and acknowledged by the peer's hardware; so were all data
    /// and messages before it.
    pub(crate) fn tx_complete(&mut self, done: TxDone) -> TxEffects {
        let freed = self.tx.complete(done.upto());
        self.completed(freed)
    }

    /// The message of a posted plan ended in an error; whether data arrived is unknown.
    pub(crate) fn tx_lost(&mut self, _done: TxDone) -> TxEffects {
        self.completed(0)
    }

    /// One message less is on its way.
    fn completed(&mut self, freed: u32) -> TxEffects {
        self.tx.pending = self.tx.pending.saturating_sub(1);
        TxEffects {
            wake_writer: freed > 0,
            drained: self.drained(),
            push: self.tx.pending == 0 && self.has_work(),
        }
    }

    /// Free bytes of the send buffer.
    pub(crate) fn tx_space(&self) -> usize {
        size(self.tx.space())
    }

    /// Bytes in the send buffer that have not been planned.
    pub(crate) fn unsent(&self) -> usize {
        size(self.tx.unsent())
    }

    /// Bytes in the send buffer that have been planned and not completed.
    pub(crate) fn inflight(&self) -> usize {
        size(self.tx.sent.since(self.tx.done))
    }

    /// Bytes in the peer's receive buffer, or on the way there, that it has not read.
    pub(crate) fn peer_unread(&self) -> usize {
        size(self.tx.unread())
    }

    /// Messages planned and not completed.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn pending(&self) -> u32 {
        self.tx.pending
    }

    /// Nothing is left to do for the wire: all data and the flag of a requested shutdown or close
    /// were posted and completed (or never will be).
    pub(crate) fn drained(&self) -> bool {
        if self.tx.pending > 0 || self.tx.posting {
            return false;
        }
        self.is_dead() || (self.tx.unsent() == 0 && self.close_flag(true).is_none())
    }
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_conn_tx))]
mod tests {
    use super::super::testing::*;
    use super::super::AckDecision;
    use super::*;

    #[test]
    fn fills_the_buffer() -> Result<(), Oops> {
        let mut conn = connection()?;
        assert_eq!(conn.tx_space(), 16384);
        assert_eq!(send(&mut conn, 16000)?, 16000);
        let grant = conn.reserve_tx(1000)?;
        assert_eq!(grant.len(), 384);
        assert_eq!(conn.commit_tx(grant, 1000), 384);
        assert_eq!(conn.reserve_tx(1), Err(TxBlocked::Full));
        assert_eq!(conn.reserve_tx(0)?.len(), 0);
        assert_eq!(conn.unsent(), 16384);
        Ok(())
    }

    #[test]
    fn completion_frees() -> Result<(), Oops> {
        let mut conn = connection()?;
        send(&mut conn, 100)?;
        let first = post(&mut conn)?;
        send(&mut conn, 50)?;
        let second = post(&mut conn)?;
        assert_eq!(conn.inflight(), 150);
        let effects = conn.tx_complete(first.done);
        assert!(effects.wake_writer);
        assert!(!effects.drained);
        assert_eq!(conn.inflight(), 50);
        let effects = conn.tx_complete(second.done);
        assert!(effects.drained);
        assert_eq!(conn.tx_space(), 16384);
        // Out of order or twice: nothing breaks.
        let effects = conn.tx_complete(first.done);
        assert!(!effects.wake_writer);
        assert_eq!(conn.tx_space(), 16384);
        Ok(())
    }

    #[test]
    fn grant_is_two_pieces_at_the_end() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = flush(&mut conn, 16000)?;
        let grant = conn.reserve_tx(500)?;
        assert_eq!(grant.segments().iter().map(|s| s.len).next(), Some(384));
        assert_eq!(grant.segments().iter().map(|s| s.len).nth(1), Some(116));
        assert_eq!(conn.commit_tx(grant, 0), 0);
        assert_eq!(conn.unsent(), 0);
        Ok(())
    }

    #[test]
    fn stale_grants_count_nothing() -> Result<(), Oops> {
        let mut conn = connection()?;
        let first = conn.reserve_tx(10)?;
        let second = conn.reserve_tx(10)?;
        assert_eq!(conn.commit_tx(first, 10), 10);
        assert_eq!(conn.commit_tx(second, 10), 0);
        let third = conn.reserve_tx(10)?;
        conn.shutdown_write();
        assert_eq!(conn.commit_tx(third, 10), 0);
        assert_eq!(conn.unsent(), 10);
        Ok(())
    }

    #[test]
    fn corks() -> Result<(), Oops> {
        let mut conn = connection()?;
        assert!(!conn.should_push(false, 1000));
        send(&mut conn, 10)?;
        assert!(conn.should_push(false, 1000));
        assert!(!conn.should_push(true, 1000));
        let plan = post(&mut conn)?;
        // A message is on its way: little data waits, much does not.
        send(&mut conn, 1000)?;
        assert!(!conn.should_push(false, 1000));
        send(&mut conn, 1)?;
        assert!(conn.should_push(false, 1000));
        assert!(!conn.should_push(true, 1000));
        // More than half of the send buffer never waits.
        send(&mut conn, 8000)?;
        assert!(conn.should_push(false, u32::MAX));
        // A full one does not wait for more.
        send(&mut conn, 16384)?;
        assert!(conn.should_push(true, 1000));
        assert!(conn.tx_complete(plan.done).push);
        Ok(())
    }

    #[test]
    fn completion_pushes_last() -> Result<(), Oops> {
        let mut conn = connection()?;
        send(&mut conn, 10)?;
        let first = post(&mut conn)?;
        send(&mut conn, 10)?;
        let second = post(&mut conn)?;
        send(&mut conn, 10)?;
        assert!(!conn.tx_complete(first.done).push);
        assert!(conn.tx_complete(second.done).push);
        Ok(())
    }

    #[test]
    fn lost_messages_free_nothing() -> Result<(), Oops> {
        let mut conn = connection()?;
        send(&mut conn, 10)?;
        let plan = post(&mut conn)?;
        conn.kill();
        let effects = conn.tx_lost(plan.done);
        assert!(effects.drained);
        assert!(!effects.wake_writer);
        assert!(!effects.push);
        assert!(conn.finished());
        assert_eq!(conn.reserve_tx(1), Err(TxBlocked::Dead));
        assert_eq!(conn.commit_rx(0), AckDecision::Later);
        Ok(())
    }
}
