// SPDX-License-Identifier: GPL-2.0

//! Plans: which bytes are written where, and what the message after them says.

use super::super::cursor::Cursor;
use super::super::ring::{
    Pos,
    RingSize, //
};
use super::super::wire::cdc::{
    Cdc,
    ConnFlags,
    ProdFlags, //
};
use super::Connection;

/// Most writes of one plan. Both rings begin with the stream and their sizes are powers of two, so
/// that wherever the larger one ends the smaller one does too; and a plan is not longer than the
/// smaller one, so that it passes at most one end.
pub(crate) const MAX_WRITES: usize = 2;

/// One contiguous write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Write {
    /// Offset in the send buffer.
    pub(crate) src: u32,
    /// Offset in the peer's receive buffer.
    pub(crate) dst: u32,
    /// Bytes.
    pub(crate) len: u32,
}

/// What a plan's completion frees; goes along with the posted message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TxDone {
    /// Data up to here is covered.
    upto: Pos,
}

impl TxDone {
    /// Up to where data is covered.
    pub(super) fn upto(self) -> Pos {
        self.upto
    }
}

/// Writes, then one message; both go out in this order on one link.
#[must_use]
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct TxPlan {
    /// The writes; the ones in use come first.
    writes: [Write; MAX_WRITES],
    /// The message.
    pub(crate) cdc: Cdc,
    /// For [`Connection::tx_complete`] when the message completes.
    pub(crate) done: TxDone,
}

impl TxPlan {
    /// The writes, in order.
    pub(crate) fn writes(&self) -> &[Write] {
        let used = self.writes.iter().take_while(|w| w.len > 0).count();
        self.writes.get(..used).unwrap_or(&[])
    }
}

/// Splits `len` bytes from `pos` on where either ring ends.
fn split(pos: Pos, len: u32, src: RingSize, dst: RingSize) -> [Write; MAX_WRITES] {
    let mut writes = [Write::default(); MAX_WRITES];
    let (mut pos, mut left) = (pos, len);
    for write in &mut writes {
        let (s, d) = (src.offset(pos), dst.offset(pos));
        let n = left
            .min(src.bytes().saturating_sub(s))
            .min(dst.bytes().saturating_sub(d));
        if n > 0 {
            *write = Write {
                src: s,
                dst: d,
                len: n,
            };
        }
        pos = pos.plus(n);
        left = left.saturating_sub(n);
    }
    writes
}

impl Connection {
    /// Data that a plan could carry now; none once nobody reads it.
    fn plan_data(&self) -> u32 {
        if self.acks_matter() {
            self.tx.sendable()
        } else {
            0
        }
    }

    /// The close flag that a plan with `data` bytes could carry now.
    fn plan_flag(&self, data: u32) -> Option<ConnFlags> {
        let drained = self.tx.unsent() == data;
        self.close_flag(drained)
    }

    /// Whether a plan would have something to say.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        // Most often there is nothing at all.
        let quiet = self.tx.prep == self.tx.sent && self.is_open() && !self.rx.ack;
        if quiet && !self.tx.urgent_news() {
            return false;
        }
        let data = self.plan_data();
        self.is_work(data, self.plan_flag(data))
    }

    /// Whether it would, with these data and this flag.
    fn is_work(&self, data: u32, flag: Option<ConnFlags>) -> bool {
        if data > 0 {
            return true;
        }
        let tell = self.acks_matter() && (self.rx.ack || self.tx.urgent_news());
        self.can_plan() && (tell || flag.is_some())
    }

    /// The next plan to post, if there is anything to say: data, a close flag, or how far we read.
    ///
    /// While another plan is being posted the answer is no, and [`Connection::posted`] will ask
    /// for another call.
    pub(crate) fn plan_tx(&mut self) -> Option<TxPlan> {
        if self.tx.posting {
            self.tx.again = true;
            return None;
        }
        let data = self.plan_data();
        let flag = self.plan_flag(data);
        if !self.is_work(data, flag) {
            return None;
        }
        let flag = flag.unwrap_or_default();
        let writes = split(self.tx.sent, data, self.tx.ring, self.tx.peer);
        self.tx.sent = self.tx.sent.plus(data);
        self.tx.seq = self.tx.seq.wrapping_add(1);
        self.tx.pending = self.tx.pending.saturating_add(1);
        self.tx.posting = true;
        self.rx.confirmed = self.rx.read;
        self.rx.ack = false;
        self.close.sent = self.close.sent.and(flag);
        let urgent = self.tx.plan_urgent();
        let cdc = Cdc {
            seq: self.tx.seq,
            token: self.peer_token,
            prod: Cursor::at(self.tx.sent, self.tx.peer),
            cons: Cursor::at(self.rx.confirmed, self.rx.ring),
            // With the ring full there is nothing more to post that could say so later.
            flags: urgent.with(ProdFlags::BLOCKED, self.tx.window() == 0),
            state: self.close.sent,
        };
        let done = TxDone { upto: self.tx.sent };
        Some(TxPlan { writes, cdc, done })
    }

    /// The last plan was posted. If the answer is yes, call [`Connection::plan_tx`] again.
    pub(crate) fn posted(&mut self) -> bool {
        self.tx.posting = false;
        core::mem::take(&mut self.tx.again)
    }

    /// The last plan could not be posted, so no completion will come: the connection is dead.
    pub(crate) fn post_failed(&mut self) {
        self.tx.posting = false;
        self.tx.pending = self.tx.pending.saturating_sub(1);
        self.kill();
    }
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_conn_plan))]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn nothing_to_say() -> Result<(), Oops> {
        let mut conn = connection()?;
        assert_eq!(conn.plan_tx(), None);
        Ok(())
    }

    #[test]
    fn first_message() -> Result<(), Oops> {
        let mut conn = connection()?;
        send(&mut conn, 100)?;
        let plan = post(&mut conn)?;
        let write = Write {
            src: 0,
            dst: 0,
            len: 100,
        };
        assert_eq!(plan.writes(), &[write][..]);
        assert_eq!(plan.cdc.seq, 1);
        assert_eq!(plan.cdc.token, 7);
        assert_eq!(
            plan.cdc.prod,
            Cursor {
                wrap: 0,
                count: 100
            }
        );
        assert_eq!(plan.cdc.cons, Cursor { wrap: 0, count: 0 });
        assert_eq!(plan.cdc.flags, ProdFlags::default());
        assert_eq!(plan.cdc.state, ConnFlags::default());
        assert_eq!(conn.plan_tx(), None);
        Ok(())
    }

    #[test]
    fn one_poster_at_a_time() -> Result<(), Oops> {
        let mut conn = connection()?;
        send(&mut conn, 1)?;
        assert!(conn.plan_tx().is_some());
        send(&mut conn, 1)?;
        assert_eq!(conn.plan_tx(), None);
        assert!(conn.posted());
        assert!(conn.plan_tx().is_some());
        assert!(!conn.posted());
        Ok(())
    }

    #[test]
    fn splits_at_both_ends() -> Result<(), Oops> {
        let mut conn = connection()?;
        // The send buffer ends at 16384, the peer's at 32768.
        for (seq, read) in [(1, 10000), (2, 20000), (3, 30000)] {
            let _ = flush(&mut conn, 10000)?;
            let _ = input(&mut conn, seq, 0, read)?;
        }
        send(&mut conn, 16384)?;
        let plan = post(&mut conn)?;
        let mut writes = plan.writes().iter();
        let write = |src, dst, len| Some(Write { src, dst, len });
        assert_eq!(writes.next().copied(), write(13616, 30000, 2768));
        assert_eq!(writes.next().copied(), write(0, 0, 13616));
        assert_eq!(writes.next(), None);
        assert_eq!(
            plan.cdc.prod,
            Cursor {
                wrap: 1,
                count: 13616
            }
        );
        Ok(())
    }

    #[test]
    fn splits_at_the_end_of_the_smaller() -> Result<(), Oops> {
        let src = RingSize::new(16384).ok_or(Oops)?;
        let dst = RingSize::new(32768).ok_or(Oops)?;
        for (pos, len, pieces) in [
            (0, 16384, 1),
            (1, 16384, 2),
            (16384 + 1, 16384, 2),
            (32767, 16384, 2),
            (32767, 0, 0),
        ] {
            let writes = split(Pos::new(pos), len, src, dst);
            assert_eq!(writes.iter().filter(|w| w.len > 0).count(), pieces);
            assert_eq!(writes.iter().map(|w| w.len).sum::<u32>(), len);
        }
        Ok(())
    }

    #[test]
    fn blocked_flag_says_full() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = flush(&mut conn, 16384)?;
        let plan = flush(&mut conn, 16384)?;
        assert!(plan.cdc.flags.has(ProdFlags::BLOCKED));
        send(&mut conn, 16384)?;
        assert_eq!(conn.plan_tx(), None);
        assert!(!conn.drained());
        let effects = input(&mut conn, 1, 0, 10000)?;
        assert!(effects.push);
        let plan = post(&mut conn)?;
        assert_eq!(plan.writes().iter().map(|w| w.len).sum::<u32>(), 10000);
        assert!(plan.cdc.flags.has(ProdFlags::BLOCKED));
        assert_eq!(conn.unsent(), 6384);
        assert!(input(&mut conn, 2, 0, 32768)?.push);
        let plan = post(&mut conn)?;
        assert!(!plan.cdc.flags.has(ProdFlags::BLOCKED));
        Ok(())
    }

    #[test]
    fn failed_post_is_the_end() -> Result<(), Oops> {
        let mut conn = connection()?;
        send(&mut conn, 1)?;
        assert!(conn.plan_tx().is_some());
        conn.post_failed();
        assert_eq!(conn.plan_tx(), None);
        assert!(conn.finished());
        assert!(conn.drained());
        Ok(())
    }
}
