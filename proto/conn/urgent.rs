// SPDX-License-Identifier: GPL-2.0

//! Urgent data (MSG_OOB): one byte of the stream that may be read out of turn.
//!
//! A sender announces it with P and, in the message whose producer cursor lies just behind it,
//! marks it with U. Standard peers can't handle data behind an urgent byte that they have not
//! passed, so nothing behind it is posted until they have; the application may go on sending into
//! the send buffer, and a later urgent byte replaces one that was not posted yet.
//!
//! A receiver lifts the byte out of the stream (or leaves it in with SO_OOBINLINE); reads end in
//! front of it.

use super::super::ring::Pos;
use super::super::wire::cdc::ProdFlags;
use super::rx::Rx;
use super::tx::{
    Tx,
    TxGrant, //
};
use super::Connection;

/// The urgent byte of the way out.
#[derive(Debug, Default)]
pub(super) struct TxUrgent {
    /// Just behind an urgent byte that no plan covers yet.
    next: Option<Pos>,
    /// The peer was told that it will come.
    told: bool,
    /// Just behind the last urgent byte planned.
    last: Pos,
}

/// The urgent byte of the way in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mark {
    /// Just behind the byte.
    end: Pos,
    /// The byte, once the caller copied it.
    byte: Option<u8>,
    /// The application took it.
    taken: bool,
}

/// The urgent bytes of the way in.
#[derive(Debug, Default)]
pub(super) struct RxUrgent {
    /// The last one that arrived, until reads pass it.
    mark: Option<Mark>,
    /// The peer said that one will come.
    announced: bool,
    /// It stays in the stream.
    inline: bool,
}

/// Why there is no urgent byte to take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoUrgent {
    /// There is none, it was taken, or it stays in the stream.
    Invalid,
    /// It was announced and has not arrived.
    NotYet,
}

impl Tx {
    /// How far plans may go: to the next urgent byte; not behind one the peer has not passed.
    pub(super) fn urgent_limit(&self) -> u32 {
        if self.urgent.last > self.acked {
            return 0;
        }
        match self.urgent.next {
            Some(end) => end.since(self.sent),
            None => u32::MAX,
        }
    }

    /// Whether the peer should be told now that an urgent byte will come.
    pub(super) fn urgent_news(&self) -> bool {
        self.urgent.next.is_some() && !self.urgent.told
    }

    /// Flags for a plan that covers all up to `sent`.
    pub(super) fn plan_urgent(&mut self) -> ProdFlags {
        let Some(end) = self.urgent.next else {
            return ProdFlags::default();
        };
        let present = end == self.sent;
        self.urgent.told = true;
        if present {
            self.urgent = TxUrgent {
                last: end,
                ..TxUrgent::default()
            };
        }
        ProdFlags::URGENT_PENDING.with(ProdFlags::URGENT_PRESENT, present)
    }

    /// Forgets an urgent byte that no plan covers.
    pub(super) fn discard_urgent(&mut self) {
        self.urgent.next = None;
    }
}

impl Rx {
    /// A message brought data, or not, with these flags. True if an urgent byte arrived.
    pub(super) fn take_urgent(&mut self, flags: ProdFlags, wrote: bool) -> bool {
        self.urgent.announced = flags.has(ProdFlags::URGENT_PENDING);
        if !wrote || !flags.has(ProdFlags::URGENT_PRESENT) {
            return false;
        }
        self.urgent.announced = false;
        self.urgent.mark = Some(Mark {
            end: self.received,
            byte: None,
            taken: false,
        });
        self.pass_urgent(self.read, 0);
        true
    }

    /// Just behind the urgent byte if that is still to be read or passed.
    fn urgent_end(&self) -> Option<Pos> {
        let end = self.urgent.mark?.end;
        (end > self.read).then_some(end)
    }

    /// Just behind the urgent byte if reads will leave it out.
    fn urgent_gap(&self) -> Option<Pos> {
        self.urgent_end().filter(|_| !self.urgent.inline)
    }

    /// Unread bytes that no read returns.
    pub(super) fn urgent_hidden(&self) -> u32 {
        u32::from(self.urgent_gap().is_some())
    }

    /// Where the bytes after `skip` readable ones begin, and how many a read may return there.
    pub(super) fn urgent_window(&self, skip: u32) -> (Pos, u32) {
        let start = self.read.plus(skip);
        let Some(end) = self.urgent_end() else {
            return (start, self.received.since(start));
        };
        // Bytes between the start and the urgent one.
        let ahead = end.since(start.plus(1));
        if ahead > 0 {
            return (start, ahead);
        }
        // At the byte or behind it: it is the next to read, or counts as not there.
        let start = start.plus(u32::from(!self.urgent.inline));
        (start, self.received.since(start))
    }

    /// Reads went from `from` over `n` readable bytes: passes an urgent byte that is next now.
    pub(super) fn pass_urgent(&mut self, from: Pos, n: u32) {
        let Some(mark) = self.urgent.mark else {
            self.read = from.plus(n);
            return;
        };
        let to = from.plus(n);
        if from >= mark.end {
            // Behind the mark already; any further read ends it.
            self.read = to;
            if n > 0 {
                self.urgent.mark = None;
            }
        } else if self.urgent.inline {
            self.read = to;
            if to >= mark.end {
                self.urgent.mark = None;
                self.ack = true;
            }
        } else if to.plus(1) >= mark.end {
            self.read = to.plus(1);
            self.ack = true;
            if self.read > mark.end {
                self.urgent.mark = None;
            }
        } else {
            self.read = to;
        }
    }

    /// All that arrived counts as read.
    pub(super) fn pass_all(&mut self) {
        self.ack |= self.urgent_end().is_some();
        self.read = self.received;
        self.urgent.mark = None;
    }
}

impl Connection {
    /// As [`Connection::commit_tx`]; the last of the copied bytes is urgent.
    pub(crate) fn commit_urgent(&mut self, grant: TxGrant, copied: usize) -> usize {
        let accepted = self.commit_tx(grant, copied);
        if accepted > 0 {
            self.tx.urgent.next = Some(self.tx.prep);
        }
        accepted
    }

    /// Whether the urgent byte stays in the stream (SO_OOBINLINE).
    pub(crate) fn set_urgent_inline(&mut self, inline: bool) {
        self.rx.urgent.inline = inline;
    }

    /// Where in the receive buffer the urgent byte lies that the last message brought. The caller
    /// copies it and calls [`Connection::store_urgent`] before any other call.
    pub(crate) fn urgent_offset(&self) -> Option<u32> {
        let mark = self.rx.urgent.mark.filter(|m| m.byte.is_none())?;
        let before = mark.end.get().checked_sub(1)?;
        Some(self.rx.ring.offset(Pos::new(before)))
    }

    /// The byte found at [`Connection::urgent_offset`].
    pub(crate) fn store_urgent(&mut self, byte: u8) {
        if let Some(mark) = &mut self.rx.urgent.mark {
            mark.byte.get_or_insert(byte);
        }
    }

    /// The urgent byte for recv(MSG_OOB); it can be taken once, or looked at.
    pub(crate) fn recv_urgent(&mut self, peek: bool) -> Result<u8, NoUrgent> {
        let urgent = &mut self.rx.urgent;
        if urgent.inline {
            return Err(NoUrgent::Invalid);
        }
        match &mut urgent.mark {
            Some(mark) if !mark.taken => {
                let byte = mark.byte.ok_or(NoUrgent::NotYet)?;
                mark.taken = !peek;
                Ok(byte)
            }
            _ if urgent.announced => Err(NoUrgent::NotYet),
            _ => Err(NoUrgent::Invalid),
        }
    }

    /// An urgent byte is there to be taken (EPOLLPRI).
    pub(crate) fn has_urgent(&self) -> bool {
        self.rx.urgent.mark.is_some_and(|m| !m.taken)
    }

    /// The next byte to read is the urgent one, or the one behind it (SIOCATMARK); a read that
    /// has returned something ends here.
    pub(crate) fn at_mark(&self) -> bool {
        let Some(mark) = self.rx.urgent.mark else {
            return false;
        };
        let before = u32::from(self.rx.urgent.inline);
        self.rx.read.plus(before) == mark.end
    }
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_conn_urgent))]
mod tests {
    use super::super::super::wire::cdc::ConnFlags;
    use super::super::testing::*;
    use super::super::AckDecision;
    use super::*;

    /// Commits `n` bytes, the last one urgent.
    fn urge(conn: &mut Connection, n: usize) -> Result<(), Oops> {
        let grant = conn.reserve_tx(n)?;
        assert_eq!(conn.commit_urgent(grant, n), n);
        Ok(())
    }

    /// The peer wrote `wrote` bytes since the beginning, the last one urgent.
    fn arrive(conn: &mut Connection, seq: u16, wrote: u64) -> Result<(), Oops> {
        let mut cdc = message(seq, wrote, 0)?;
        cdc.flags = ProdFlags::URGENT_PENDING.with(ProdFlags::URGENT_PRESENT, true);
        assert!(conn.on_cdc(&cdc)?.urgent);
        let offset = conn.urgent_offset().ok_or(Oops)?;
        assert_eq!(Some(u64::from(offset)), wrote.checked_sub(1));
        conn.store_urgent(b'!');
        assert_eq!(conn.urgent_offset(), None);
        Ok(())
    }

    #[test]
    fn marks_the_last_byte() -> Result<(), Oops> {
        let mut conn = connection()?;
        urge(&mut conn, 5)?;
        assert!(conn.should_push(true, 1000));
        send(&mut conn, 3)?;
        let plan = post(&mut conn)?;
        assert_eq!(plan.cdc.prod.count, 5);
        assert!(plan.cdc.flags.has(ProdFlags::URGENT_PRESENT));
        assert!(plan.cdc.flags.has(ProdFlags::URGENT_PENDING));
        // The rest follows when the peer has passed it.
        assert_eq!(conn.plan_tx(), None);
        assert!(!input(&mut conn, 1, 0, 4)?.push);
        assert!(input(&mut conn, 2, 0, 5)?.push);
        let plan = post(&mut conn)?;
        assert_eq!(plan.cdc.prod.count, 8);
        assert_eq!(plan.cdc.flags, ProdFlags::default());
        Ok(())
    }

    #[test]
    fn latest_wins() -> Result<(), Oops> {
        let mut conn = connection()?;
        urge(&mut conn, 5)?;
        urge(&mut conn, 5)?;
        let plan = post(&mut conn)?;
        assert_eq!(plan.cdc.prod.count, 10);
        assert!(plan.cdc.flags.has(ProdFlags::URGENT_PRESENT));
        Ok(())
    }

    #[test]
    fn announced_to_a_full_peer() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = flush(&mut conn, 16384)?;
        let _ = flush(&mut conn, 16384)?;
        urge(&mut conn, 5)?;
        let plan = post(&mut conn)?;
        assert!(plan.writes().is_empty());
        assert!(plan.cdc.flags.has(ProdFlags::URGENT_PENDING));
        assert!(!plan.cdc.flags.has(ProdFlags::URGENT_PRESENT));
        assert_eq!(conn.plan_tx(), None);
        assert!(input(&mut conn, 1, 0, 5)?.push);
        assert!(post(&mut conn)?.cdc.flags.has(ProdFlags::URGENT_PRESENT));
        Ok(())
    }

    #[test]
    fn out_of_the_stream() -> Result<(), Oops> {
        let mut conn = connection()?;
        assert_eq!(conn.recv_urgent(false), Err(NoUrgent::Invalid));
        arrive(&mut conn, 1, 5)?;
        let _ = input(&mut conn, 2, 9, 0)?;
        assert_eq!(conn.readable(), 8);
        assert!(conn.has_urgent());
        assert_eq!(conn.recv_urgent(true), Ok(b'!'));
        assert_eq!(conn.recv_urgent(false), Ok(b'!'));
        assert_eq!(conn.recv_urgent(false), Err(NoUrgent::Invalid));
        assert!(!conn.has_urgent());
        // A read ends in front of it, a peek may begin behind it.
        assert_eq!(conn.reserve_rx(0, 100).len(), 4);
        assert_eq!(conn.reserve_rx(4, 100).len(), 4);
        assert_eq!(conn.reserve_rx(6, 100).len(), 2);
        assert!(!conn.at_mark());
        assert_eq!(conn.commit_rx(4), AckDecision::SendNow);
        assert!(conn.at_mark());
        let first = conn.reserve_rx(0, 100).iter().next();
        assert_eq!(first.map(|s| (s.offset, s.len)), Some((5, 4)));
        assert_eq!(conn.commit_rx(1), AckDecision::SendNow);
        assert!(!conn.at_mark());
        assert_eq!(conn.readable(), 3);
        Ok(())
    }

    #[test]
    fn alone() -> Result<(), Oops> {
        let mut conn = connection()?;
        arrive(&mut conn, 1, 1)?;
        // Nothing to read, but the peer may be waiting for it to be passed.
        assert_eq!(conn.readable(), 0);
        assert_eq!(post(&mut conn)?.cdc.cons.count, 1);
        assert!(conn.at_mark());
        assert_eq!(conn.recv_urgent(false), Ok(b'!'));
        Ok(())
    }

    #[test]
    fn thrown_away() -> Result<(), Oops> {
        let mut conn = connection()?;
        let _ = flush(&mut conn, 16384)?;
        let _ = flush(&mut conn, 16384)?;
        send(&mut conn, 1)?;
        arrive(&mut conn, 1, 5)?;
        conn.close();
        // The close has to wait; that the urgent byte was passed must not.
        let plan = post(&mut conn)?;
        assert_eq!(plan.cdc.cons.count, 5);
        assert!(!plan.cdc.state.has(ConnFlags::ANY_CLOSE));
        Ok(())
    }

    #[test]
    fn in_the_stream() -> Result<(), Oops> {
        let mut conn = connection()?;
        conn.set_urgent_inline(true);
        arrive(&mut conn, 1, 5)?;
        let _ = input(&mut conn, 2, 9, 0)?;
        assert_eq!(conn.recv_urgent(false), Err(NoUrgent::Invalid));
        assert_eq!(conn.readable(), 9);
        assert_eq!(conn.reserve_rx(0, 100).len(), 4);
        assert_eq!(conn.commit_rx(4), AckDecision::Later);
        assert!(conn.at_mark());
        assert_eq!(conn.reserve_rx(0, 100).len(), 5);
        assert_eq!(conn.commit_rx(1), AckDecision::SendNow);
        assert!(!conn.at_mark());
        assert!(!conn.has_urgent());
        Ok(())
    }

    #[test]
    fn announced_to_us() -> Result<(), Oops> {
        let mut conn = connection()?;
        let mut cdc = message(1, 5, 0)?;
        cdc.flags = ProdFlags::URGENT_PENDING;
        assert!(!conn.on_cdc(&cdc)?.urgent);
        assert_eq!(conn.recv_urgent(false), Err(NoUrgent::NotYet));
        // A mark without data means nothing.
        cdc.flags = ProdFlags::URGENT_PRESENT;
        assert!(!conn.on_cdc(&cdc)?.urgent);
        assert_eq!(conn.readable(), 5);
        Ok(())
    }
}
