// SPDX-License-Identifier: GPL-2.0

//! The way of data in: the peer writes, the application reads, the peer is told.
//!
//! `confirmed <= read <= received <= confirmed + ring` holds always.

use super::super::ring::{
    Pos,
    RingSize,
    Segments, //
};
use super::super::wire::cdc::ProdFlags;
use super::{
    amount,
    size,
    urgent::RxUrgent,
    Connection, //
};

/// Positions of the way in.
#[derive(Debug)]
pub(super) struct Rx {
    /// Our receive buffer.
    pub(super) ring: RingSize,
    /// Up to where the peer wrote.
    pub(super) received: Pos,
    /// Up to where the application read.
    pub(super) read: Pos,
    /// Up to where plans told the peer that we read.
    pub(super) confirmed: Pos,
    /// Sequence number of the last message.
    pub(super) seq: u16,
    /// Producer flags of the last message.
    pub(super) flags: ProdFlags,
    /// More read bytes than this may be worth a message.
    limit: u32,
    /// The peer must be told what we read, even if there is nothing else to say.
    pub(super) ack: bool,
    /// Urgent data.
    pub(super) urgent: RxUrgent,
}

/// Whether the peer should be told of read data at once.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AckDecision {
    /// Call [`Connection::plan_tx`].
    SendNow,
    /// The next message says it by the way.
    Later,
}

impl Rx {
    /// Nothing received yet.
    pub(super) fn new(ring: RingSize, floor: u32) -> Self {
        // Four messages a ring keep the peer writing; each one more is work for both ends.
        let quarter = ring.bytes() >> 2;
        Self {
            ring,
            received: Pos::START,
            read: Pos::START,
            confirmed: Pos::START,
            seq: 0,
            flags: ProdFlags::default(),
            // A limit near the size would let a full buffer go unacknowledged.
            limit: quarter.max(floor).min(ring.bytes() >> 1),
            ack: false,
            urgent: RxUrgent::default(),
        }
    }

    /// Bytes that the application could read.
    pub(super) fn readable(&self) -> u32 {
        let unread = self.received.since(self.read);
        unread.saturating_sub(self.urgent_hidden())
    }

    /// Read bytes of which the peer was not told.
    pub(super) fn unconfirmed(&self) -> u32 {
        self.read.since(self.confirmed)
    }

    /// Bytes that the peer may still write as far as it can know.
    pub(super) fn window(&self) -> u32 {
        let used = self.received.since(self.confirmed);
        self.ring.bytes().saturating_sub(used)
    }

    /// The application is done with `n` more bytes.
    pub(super) fn consume(&mut self, n: u32) {
        self.pass_urgent(self.read, n.min(self.readable()));
        self.ack |= self.should_ack();
    }

    /// Whether a peer may be waiting for what only a message can tell it.
    ///
    /// A peer without space sees `window() == 0`, so that reading the whole buffer always passes
    /// the test; so does the rest of the data when it said that it is blocked.
    fn should_ack(&self) -> bool {
        let unconfirmed = self.unconfirmed();
        let blocked = self.flags.has(ProdFlags::BLOCKED);
        if unconfirmed == 0 {
            return false;
        }
        if self.readable() == 0 && blocked {
            return true;
        }
        unconfirmed > self.limit && (blocked || self.window() <= self.ring.bytes() >> 1)
    }
}

impl Connection {
    /// Where up to `want` readable bytes lie, after the next `skip` ones; ends in front of an
    /// urgent byte.
    pub(crate) fn reserve_rx(&self, skip: usize, want: usize) -> Segments {
        let skip = amount(skip).min(self.rx.readable());
        let (start, most) = self.rx.urgent_window(skip);
        self.rx.ring.span(start, amount(want).min(most))
    }

    /// The application is done with the next `n` readable bytes.
    pub(crate) fn commit_rx(&mut self, n: usize) -> AckDecision {
        self.rx.consume(amount(n));
        if self.rx.ack && self.acks_matter() {
            AckDecision::SendNow
        } else {
            AckDecision::Later
        }
    }

    /// Readable bytes.
    pub(crate) fn readable(&self) -> usize {
        size(self.rx.readable())
    }

    /// How much of the receive buffer, from its start, the peer may ever have written.
    ///
    /// A peer announces what it wrote only afterwards, so that the answer is the whole buffer
    /// unless the connection ended in order.
    pub(crate) fn touched(&self) -> usize {
        let whole = self.rx.ring.bytes();
        if self.ended_in_order() {
            size(self.rx.received.since(Pos::START).min(whole))
        } else {
            size(whole)
        }
    }
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_conn_rx))]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn reads_what_arrived() -> Result<(), Oops> {
        let mut conn = connection()?;
        assert!(conn.reserve_rx(0, 10).is_empty());
        let effects = input(&mut conn, 1, 100, 0)?;
        assert!(effects.wake_reader);
        assert!(!effects.push);
        assert_eq!(conn.readable(), 100);
        assert_eq!(conn.reserve_rx(0, 1000).len(), 100);
        assert_eq!(conn.reserve_rx(60, 1000).len(), 40);
        assert!(conn.reserve_rx(1000, 1000).is_empty());
        assert_eq!(conn.commit_rx(30), AckDecision::Later);
        assert_eq!(conn.readable(), 70);
        assert_eq!(conn.commit_rx(1000), AckDecision::Later);
        assert_eq!(conn.readable(), 0);
        Ok(())
    }

    #[test]
    fn tells_when_half_is_used() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = input(&mut conn, 1, 8191, 0)?;
        assert_eq!(conn.commit_rx(8191), AckDecision::Later);
        let _ = input(&mut conn, 2, 8192, 0)?;
        assert_eq!(conn.commit_rx(1), AckDecision::SendNow);
        let plan = post(&mut conn)?;
        assert!(plan.writes().is_empty());
        assert_eq!(plan.cdc.cons.count, 8192);
        assert_eq!(conn.plan_tx(), None);
        Ok(())
    }

    #[test]
    fn small_reads_tell_nothing() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = input(&mut conn, 1, 16384, 0)?;
        assert_eq!(conn.commit_rx(4096), AckDecision::Later);
        assert_eq!(conn.commit_rx(1), AckDecision::SendNow);
        Ok(())
    }

    #[test]
    fn blocked_peer_is_told() -> Result<(), Oops> {
        let mut conn = connection()?;
        let mut cdc = message(1, 5000, 0)?;
        cdc.flags = ProdFlags::BLOCKED;
        let _ = conn.on_cdc(&cdc)?;
        assert_eq!(conn.commit_rx(4000), AckDecision::Later);
        assert_eq!(conn.commit_rx(100), AckDecision::SendNow);
        assert!(post(&mut conn)?.writes().is_empty());
        assert_eq!(conn.commit_rx(899), AckDecision::Later);
        assert_eq!(conn.commit_rx(1), AckDecision::SendNow);
        Ok(())
    }

    #[test]
    fn request_is_honoured() -> Result<(), Oops> {
        let mut conn = connection()?;
        let mut cdc = message(1, 0, 0)?;
        cdc.flags = ProdFlags::UPDATE_REQUESTED;
        assert!(conn.on_cdc(&cdc)?.push);
        let _ = post(&mut conn)?;
        assert_eq!(conn.plan_tx(), None);
        Ok(())
    }

    #[test]
    fn data_carries_the_cursor() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = input(&mut conn, 1, 100, 0)?;
        assert_eq!(conn.commit_rx(60), AckDecision::Later);
        assert_eq!(flush(&mut conn, 1)?.cdc.cons.count, 60);
        Ok(())
    }

    #[test]
    fn clears_what_was_touched() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = input(&mut conn, 1, 100, 0)?;
        // More may have been written and not announced.
        assert_eq!(conn.touched(), 16384);
        let mut cdc = message(2, 200, 0)?;
        cdc.state.0 = 0x40;
        let _ = conn.on_cdc(&cdc)?;
        assert_eq!(conn.touched(), 200);
        conn.kill();
        assert_eq!(conn.touched(), 16384);
        Ok(())
    }
}
