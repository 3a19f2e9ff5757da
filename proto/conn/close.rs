// SPDX-License-Identifier: GPL-2.0

//! Who closed how (RFC 7609 4.8): shutdown, close, abort, of both sides, in any order.
//!
//! A local request is carried out by a flag in a message: D or C once all committed data is
//! posted, A at once if the application aborts. After C or A nothing more is sent. What arrives
//! after a local close is thrown away, so that two closing sides can never wait for each other's
//! space; having thrown data away turns C into A.

use super::super::wire::cdc::ConnFlags;
use super::tx::TxBlocked;
use super::Connection;

/// What the application asked for; later ones replace earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Phase {
    /// Nothing yet.
    Open,
    /// To write no more.
    WriteShut,
    /// To close when all data is posted.
    Closed,
    /// To give up at once.
    Aborted,
}

/// State of both sides.
#[derive(Debug)]
pub(super) struct Close {
    /// What the application asked for.
    pub(super) phase: Phase,
    /// Received data was thrown away unread.
    pub(super) unread: bool,
    /// Flags that plans carried.
    pub(super) sent: ConnFlags,
    /// Flags that the peer sent.
    pub(super) peer: ConnFlags,
    /// The peer broke the protocol: what it says counts no more.
    pub(super) faulted: bool,
    /// No message can be sent any more.
    dead: bool,
}

impl Close {
    /// Both sides open.
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Open,
            unread: false,
            sent: ConnFlags::default(),
            peer: ConnFlags::default(),
            faulted: false,
            dead: false,
        }
    }

    /// Whether the peer will read nothing more.
    fn peer_gone(&self) -> bool {
        self.faulted || self.peer.has(ConnFlags::ANY_CLOSE)
    }
}

impl Connection {
    /// The application will write no more; the peer is told after all committed data.
    /// Call [`Connection::plan_tx`] afterwards.
    pub(crate) fn shutdown_write(&mut self) {
        self.advance(Phase::WriteShut);
    }

    /// The application closed: it will neither read nor write. Unread data is thrown away.
    /// Call [`Connection::plan_tx`] afterwards.
    pub(crate) fn close(&mut self) {
        self.advance(Phase::Closed);
        self.discard_rx();
    }

    /// The application gives the connection up; unsent and unread data is thrown away.
    /// Call [`Connection::plan_tx`] afterwards.
    pub(crate) fn abort(&mut self) {
        self.advance(Phase::Aborted);
        self.discard_rx();
        self.tx.discard();
    }

    /// No message can be sent or received any more: the link is gone. Nothing is planned from
    /// now on; received data can still be read.
    pub(crate) fn kill(&mut self) {
        self.close.dead = true;
        self.tx.discard();
        self.tx.again = false;
    }

    /// Enters a later phase.
    fn advance(&mut self, phase: Phase) {
        self.close.phase = self.close.phase.max(phase);
    }

    /// Throws away readable data if nobody will read it.
    pub(super) fn discard_rx(&mut self) {
        if self.close.phase >= Phase::Closed {
            self.close.unread |= self.rx.readable() > 0;
            self.rx.pass_all();
            self.rx.consume(0);
        }
    }

    /// Whether data may be put into the send buffer.
    pub(super) fn tx_allowed(&self) -> Result<(), TxBlocked> {
        let close = &self.close;
        if close.phase >= Phase::WriteShut {
            Err(TxBlocked::Shut)
        } else if close.dead {
            Err(TxBlocked::Dead)
        } else if close.faulted || close.peer.has(ConnFlags::ABORTED) {
            Err(TxBlocked::PeerAborted)
        } else if close.peer.has(ConnFlags::CLOSED) {
            Err(TxBlocked::PeerClosed)
        } else {
            Ok(())
        }
    }

    /// Whether nothing can be put into the send buffer any more.
    pub(crate) fn tx_over(&self) -> bool {
        self.tx_allowed().is_err()
    }

    /// Whether the application asked for no end yet.
    pub(super) fn is_open(&self) -> bool {
        self.close.phase == Phase::Open
    }

    /// Whether any message may still be planned.
    pub(super) fn can_plan(&self) -> bool {
        !self.close.dead && !self.close.sent.has(ConnFlags::ANY_CLOSE)
    }

    /// Whether the peer still cares about what we read.
    pub(super) fn acks_matter(&self) -> bool {
        self.can_plan() && !self.close.peer_gone()
    }

    /// The flag that the next plan should carry for the current phase, if not carried already;
    /// `drained` says whether all committed data is or will be covered by plans.
    pub(super) fn close_flag(&self, drained: bool) -> Option<ConnFlags> {
        let flag = match self.close.phase {
            Phase::Open => return None,
            Phase::Aborted => ConnFlags::ABORTED,
            _ if !drained => return None,
            Phase::WriteShut => ConnFlags::DONE,
            Phase::Closed if self.close.unread => ConnFlags::ABORTED,
            Phase::Closed => ConnFlags::CLOSED,
        };
        let news = !self.close.sent.has(flag.and(ConnFlags::ANY_CLOSE));
        // Nobody is left to be told that we write no more.
        let heard = flag != ConnFlags::DONE || !self.close.peer_gone();
        (news && heard).then_some(flag)
    }

    /// What the application asked for so far.
    #[cfg(any(test, fuzzing, smc_rs_kunit))]
    pub(crate) fn phase(&self) -> Phase {
        self.close.phase
    }

    /// We write no more.
    pub(crate) fn write_shut(&self) -> bool {
        self.close.phase >= Phase::WriteShut
    }

    /// The peer writes no more: after the readable data comes the end (or an error, see
    /// [`Connection::peer_aborted`]).
    pub(crate) fn peer_done(&self) -> bool {
        self.close.peer.has(ConnFlags::KNOWN)
    }

    /// The peer closed in order; it reads no more either.
    pub(crate) fn peer_closed(&self) -> bool {
        self.close.peer.has(ConnFlags::CLOSED)
    }

    /// The peer aborted: after the readable data comes ECONNRESET.
    pub(crate) fn peer_aborted(&self) -> bool {
        self.close.peer.has(ConnFlags::ABORTED)
    }

    /// The peer broke the protocol.
    pub(crate) fn faulted(&self) -> bool {
        self.close.faulted
    }

    /// No message can be sent any more.
    pub(crate) fn is_dead(&self) -> bool {
        self.close.dead
    }

    /// The peer's close arrived and nothing was lost on the way.
    pub(super) fn ended_in_order(&self) -> bool {
        self.close.peer.has(ConnFlags::ANY_CLOSE) && !self.close.faulted && !self.close.dead
    }

    /// Both sides closed (or the peer can't), and no message is on its way: nothing will happen
    /// any more, and the peer has no business left in our receive buffer.
    pub(crate) fn finished(&self) -> bool {
        let ours = self.close.sent.has(ConnFlags::ANY_CLOSE);
        let quiet = self.tx.pending == 0 && !self.tx.posting;
        quiet && (self.close.dead || (ours && self.close.peer_gone()))
    }
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_conn_close))]
mod tests {
    use super::super::testing::*;
    use super::super::RxEffects;
    use super::*;

    /// The peer's message number `seq` with state flags, `wrote` bytes and all of ours read.
    fn flagged(
        conn: &mut Connection,
        seq: u16,
        wrote: u64,
        state: ConnFlags,
    ) -> Result<RxEffects, Oops> {
        let mut cdc = message(seq, wrote, 0)?;
        cdc.state = state;
        Ok(conn.on_cdc(&cdc)?)
    }

    #[test]
    fn shutdown_goes_with_the_last_data() -> Result<(), Oops> {
        let mut conn = connection()?;
        send(&mut conn, 10)?;
        conn.shutdown_write();
        assert!(conn.write_shut());
        assert_eq!(conn.reserve_tx(1), Err(TxBlocked::Shut));
        let plan = post(&mut conn)?;
        assert_eq!(plan.writes().len(), 1);
        assert_eq!(plan.cdc.state, ConnFlags::DONE);
        assert!(!conn.drained());
        assert!(conn.tx_complete(plan.done).drained);
        conn.shutdown_write();
        assert_eq!(conn.plan_tx(), None);
        // Reading goes on.
        assert!(flagged(&mut conn, 1, 50, ConnFlags::default())?.wake_reader);
        assert_eq!(conn.readable(), 50);
        Ok(())
    }

    #[test]
    fn flags_wait_for_space() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = flush(&mut conn, 16384)?;
        let _ = flush(&mut conn, 16384)?;
        send(&mut conn, 10)?;
        conn.shutdown_write();
        assert_eq!(conn.plan_tx(), None);
        conn.close();
        assert_eq!(conn.plan_tx(), None);
        assert!(input(&mut conn, 1, 0, 10000)?.push);
        let plan = post(&mut conn)?;
        assert_eq!(plan.cdc.state, ConnFlags::CLOSED);
        Ok(())
    }

    #[test]
    fn close_both_ways() -> Result<(), Oops> {
        let mut conn = connection()?;
        conn.shutdown_write();
        let plan = post(&mut conn)?;
        let _ = conn.tx_complete(plan.done);
        conn.close();
        let plan = post(&mut conn)?;
        assert_eq!(plan.cdc.state, ConnFlags::DONE.and(ConnFlags::CLOSED));
        let _ = conn.tx_complete(plan.done);
        assert!(conn.drained());
        assert!(!conn.finished());
        let effects = flagged(&mut conn, 1, 0, ConnFlags::CLOSED)?;
        assert!(effects.peer_done);
        assert!(effects.peer_closed);
        assert!(!effects.peer_aborted);
        assert!(!effects.push);
        assert!(conn.finished());
        Ok(())
    }

    #[test]
    fn peer_first() -> Result<(), Oops> {
        let mut conn = connection()?;
        let effects = flagged(&mut conn, 1, 0, ConnFlags::DONE)?;
        assert!(effects.peer_done);
        assert!(effects.wake_reader);
        assert!(!effects.wake_writer);
        assert!(conn.peer_done());
        assert!(!conn.peer_closed());
        send(&mut conn, 5)?;
        let effects = flagged(&mut conn, 2, 0, ConnFlags::DONE.and(ConnFlags::CLOSED))?;
        assert!(!effects.peer_done);
        assert!(effects.peer_closed);
        assert!(effects.wake_writer);
        assert_eq!(conn.reserve_tx(1), Err(TxBlocked::PeerClosed));
        // Nobody would read the data; our close still goes out.
        assert_eq!(conn.plan_tx(), None);
        conn.close();
        let plan = post(&mut conn)?;
        assert!(plan.writes().is_empty());
        assert!(!conn.finished());
        let _ = conn.tx_complete(plan.done);
        assert!(conn.finished());
        Ok(())
    }

    #[test]
    fn unread_data_means_abort() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = input(&mut conn, 1, 10, 0)?;
        conn.close();
        assert_eq!(conn.readable(), 0);
        assert_eq!(post(&mut conn)?.cdc.state, ConnFlags::ABORTED);
        Ok(())
    }

    #[test]
    fn data_after_close_is_dropped() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = flush(&mut conn, 16384)?;
        let _ = flush(&mut conn, 16384)?;
        send(&mut conn, 10)?;
        conn.close();
        assert_eq!(conn.plan_tx(), None);
        // It is acknowledged all the same: the peer's own close may wait for space.
        assert!(input(&mut conn, 1, 16384, 0)?.push);
        let plan = post(&mut conn)?;
        assert_eq!(plan.cdc.cons.wrap, 1);
        assert_eq!(plan.cdc.state, ConnFlags::default());
        assert!(input(&mut conn, 2, 16384, 10000)?.push);
        assert_eq!(post(&mut conn)?.cdc.state, ConnFlags::ABORTED);
        Ok(())
    }

    #[test]
    fn abort_waits_for_nothing() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = flush(&mut conn, 16384)?;
        let _ = flush(&mut conn, 16384)?;
        send(&mut conn, 10)?;
        conn.abort();
        assert_eq!(conn.unsent(), 0);
        let plan = post(&mut conn)?;
        assert!(plan.writes().is_empty());
        assert_eq!(plan.cdc.state, ConnFlags::ABORTED);
        assert_eq!(conn.plan_tx(), None);
        Ok(())
    }

    #[test]
    fn peer_aborts() -> Result<(), Oops> {
        let mut conn = connection()?;
        send(&mut conn, 10)?;
        let effects = flagged(&mut conn, 1, 20, ConnFlags::ABORTED)?;
        assert!(effects.peer_aborted);
        assert!(effects.peer_done);
        assert!(effects.wake_reader);
        assert!(effects.wake_writer);
        assert_eq!(conn.reserve_tx(1), Err(TxBlocked::PeerAborted));
        // What was delivered can still be read.
        assert_eq!(conn.readable(), 20);
        assert_eq!(conn.commit_rx(20), super::super::AckDecision::Later);
        assert_eq!(conn.plan_tx(), None);
        conn.close();
        let plan = post(&mut conn)?;
        assert_eq!(plan.cdc.state, ConnFlags::CLOSED);
        let _ = conn.tx_complete(plan.done);
        assert!(conn.finished());
        Ok(())
    }

    #[test]
    fn nothing_follows_a_close() -> Result<(), Oops> {
        let mut conn = connection()?;
        conn.close();
        assert_eq!(post(&mut conn)?.cdc.state, ConnFlags::CLOSED);
        let mut cdc = message(1, 16384, 0)?;
        cdc.flags.0 = 0x90;
        assert!(!conn.on_cdc(&cdc)?.push);
        conn.abort();
        assert_eq!(conn.plan_tx(), None);
        Ok(())
    }

    #[test]
    fn peer_close_ends_the_wait_for_space() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = flush(&mut conn, 16384)?;
        let _ = flush(&mut conn, 16384)?;
        send(&mut conn, 10)?;
        conn.close();
        assert_eq!(conn.plan_tx(), None);
        assert!(flagged(&mut conn, 1, 0, ConnFlags::CLOSED)?.push);
        assert_eq!(post(&mut conn)?.cdc.state, ConnFlags::CLOSED);
        Ok(())
    }

    #[test]
    fn shutdown_after_peer_close_says_nothing() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = flagged(&mut conn, 1, 0, ConnFlags::CLOSED)?;
        conn.shutdown_write();
        assert_eq!(conn.plan_tx(), None);
        assert!(conn.drained());
        assert!(!conn.finished());
        Ok(())
    }

    #[test]
    fn close_then_abort() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = flush(&mut conn, 16384)?;
        let _ = flush(&mut conn, 16384)?;
        send(&mut conn, 10)?;
        conn.close();
        conn.abort();
        conn.close();
        assert_eq!(conn.phase(), Phase::Aborted);
        assert_eq!(post(&mut conn)?.cdc.state, ConnFlags::ABORTED);
        Ok(())
    }
}
