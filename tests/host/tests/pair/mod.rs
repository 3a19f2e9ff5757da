// SPDX-License-Identifier: GPL-2.0

//! Two connections, real byte rings and a wire between them; driven by bytes.
//!
//! A plan may wait before it is posted, its writes and message before they are transmitted, the
//! message before the receiver looks at it, the completion before the sender does. What a real
//! link keeps in order stays in order; everything else is up to the operations. A write reads the
//! send ring when it is transmitted, as hardware does.

use crate::proto::conn::{
    AckDecision,
    ConnConfig,
    Connection,
    NoUrgent,
    Phase,
    TxBlocked,
    TxDone,
    TxGrant,
    TxPlan,
    Write, //
};
use crate::proto::ring::{
    RingSize,
    Segments, //
};
use crate::proto::wire::cdc::{
    Cdc,
    ProdFlags, //
};
use std::collections::VecDeque;

/// Messages that may be on their way, per side.
const SLOTS: u32 = 5;
/// Autocork limit of both sides.
const AUTOCORK: u32 = 6000;

/// Ring sizes of one direction and the other.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Send buffers of sides 0 and 1.
    pub sndbuf: [u32; 2],
    /// Receive buffers of sides 0 and 1.
    pub rmb: [u32; 2],
    /// Whether sides 0 and 1 leave urgent bytes in the stream.
    pub inline: [bool; 2],
}

/// How to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// As it comes.
    Plain,
    /// More will follow.
    More,
    /// The last byte is urgent.
    Urgent,
}

/// What a link carries.
enum Packet {
    /// A piece of the send ring.
    Write(Write),
    /// The message after it.
    Message([u8; 44], TxDone),
}

/// One end.
pub struct Side {
    /// The connection under test.
    pub conn: Connection,
    /// Send ring.
    sndbuf: Vec<u8>,
    /// Receive ring.
    rmb: Vec<u8>,
    /// Room that a sender holds.
    grant: Option<TxGrant>,
    /// A plan that was made and not posted.
    plan: Option<TxPlan>,
    /// Somebody asked for a plan.
    pub wanted: bool,
    /// Posted, in order.
    wire: VecDeque<Packet>,
    /// Arrived, not looked at.
    inbox: VecDeque<[u8; 44]>,
    /// The last messages looked at, for repeats.
    seen: VecDeque<[u8; 44]>,
    /// Completed, not looked at.
    completions: VecDeque<TxDone>,
    /// Just behind the bytes that went out as urgent, in order.
    marks: Vec<u64>,
    /// Bytes accepted from the application.
    pub sent: u64,
    /// Bytes given to the application in their turn.
    pub received: u64,
    /// Urgent bytes stay in the stream.
    inline: bool,
    /// The application promised more and data waits for that.
    corked: bool,
    /// Messages planned.
    pub messages: u64,
    /// Messages that carried data.
    pub data_messages: u64,
}

/// Both ends; side 0 and side 1.
pub struct Pair {
    /// The ends.
    pub sides: [Side; 2],
}

/// Byte number `pos` of what side `from` sends.
fn pattern(from: usize, pos: u64) -> u8 {
    let mixed = (pos + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8 ^ (from as u8).wrapping_mul(0x5a)
}

impl Side {
    fn new(sizes: Sizes, at: usize) -> Self {
        let size = |n| RingSize::new(n).expect("ring size");
        let (sndbuf, rmb) = (sizes.sndbuf[at], sizes.rmb[at]);
        let mut conn = Connection::new(ConnConfig {
            sndbuf: size(sndbuf),
            rmb: size(rmb),
            peer_rmb: size(sizes.rmb[1 - at]),
            peer_token: 11,
            ack_floor: 2304,
        });
        conn.set_urgent_inline(sizes.inline[at]);
        Self {
            conn,
            inline: sizes.inline[at],
            corked: false,
            sndbuf: vec![0; sndbuf as usize],
            rmb: vec![0; rmb as usize],
            grant: None,
            plan: None,
            wanted: false,
            wire: VecDeque::new(),
            inbox: VecDeque::new(),
            seen: VecDeque::new(),
            completions: VecDeque::new(),
            marks: Vec::new(),
            sent: 0,
            received: 0,
            messages: 0,
            data_messages: 0,
        }
    }

    /// What must hold whenever nobody is inside.
    fn check(&self) {
        let (c, snd, rmb) = (&self.conn, self.sndbuf.len(), self.rmb.len());
        assert!(c.readable() <= rmb);
        assert!(c.touched() <= rmb);
        assert_eq!(c.tx_space() + c.unsent() + c.inflight(), snd);
        assert!(c.pending() <= SLOTS);
        if c.pending() == 0 && !c.is_dead() {
            assert_eq!(c.inflight(), 0);
        }
        if c.finished() {
            assert!(c.drained());
        }
    }
}

impl Pair {
    /// Two fresh ends.
    pub fn new(sizes: Sizes) -> Self {
        Self {
            sides: [Side::new(sizes, 0), Side::new(sizes, 1)],
        }
    }

    /// Fills as much of `grant` as `len` says.
    fn fill(&mut self, from: usize, grant: TxGrant, len: usize, how: How) -> usize {
        let side = &mut self.sides[from];
        let mut pos = side.sent;
        let mut left = len;
        for s in grant.segments().iter() {
            let n = left.min(s.len as usize);
            for byte in &mut side.sndbuf[s.offset as usize..][..n] {
                *byte = pattern(from, pos);
                pos += 1;
            }
            left -= n;
        }
        let asked = len.min(grant.len());
        let accepted = match how {
            How::Urgent => side.conn.commit_urgent(grant, asked),
            _ => side.conn.commit_tx(grant, asked),
        };
        assert!(accepted == 0 || accepted == asked);
        side.sent += accepted as u64;
        let push = side.conn.should_push(how == How::More, AUTOCORK);
        side.corked = !push && how == How::More;
        side.wanted |= push;
        accepted
    }

    /// The application sends up to `len` bytes; one sender at a time.
    pub fn send(&mut self, from: usize, len: usize, how: How) -> Result<usize, TxBlocked> {
        if self.sides[from].grant.is_some() {
            return Ok(0);
        }
        let grant = self.sides[from].conn.reserve_tx(len)?;
        assert!(grant.len() <= len);
        Ok(self.fill(from, grant, len, how))
    }

    /// Begins a send that ends later.
    fn reserve(&mut self, from: usize, len: usize) {
        let side = &mut self.sides[from];
        if side.grant.is_none() {
            side.grant = side.conn.reserve_tx(len).ok();
        }
    }

    /// Ends it.
    fn commit(&mut self, from: usize, len: usize) {
        if let Some(grant) = self.sides[from].grant.take() {
            self.fill(from, grant, len, How::Plain);
        }
    }

    /// Compares readable bytes with what the peer sent, from the application's position on.
    fn verify(&self, at: usize, skip: usize, segments: Segments) {
        let side = &self.sides[at];
        let marks = &self.sides[1 - at].marks;
        let urgent = |pos: u64| marks.binary_search(&(pos + 1)).is_ok();
        let mut pos = side.conn.snapshot().read.get();
        let mut skip = skip as u64;
        let mut start = true;
        for s in segments.iter() {
            for &byte in &side.rmb[s.offset as usize..][..s.len as usize] {
                while skip > 0 || (urgent(pos) && !side.inline) {
                    skip -= u64::from(!urgent(pos) || side.inline);
                    pos += 1;
                }
                assert_eq!(byte, pattern(1 - at, pos), "side {at} byte {pos}");
                // Reads end in front of an urgent byte.
                assert!(start || !urgent(pos));
                start = false;
                pos += 1;
            }
        }
        assert!(pos <= self.sides[1 - at].sent);
    }

    /// The application reads up to `len` bytes.
    pub fn recv(&mut self, at: usize, len: usize) -> usize {
        let segments = self.sides[at].conn.reserve_rx(0, len);
        self.verify(at, 0, segments);
        let side = &mut self.sides[at];
        let n = segments.len();
        side.received += n as u64;
        let left = side.conn.readable() - n;
        side.wanted |= side.conn.commit_rx(n) == AckDecision::SendNow;
        assert_eq!(side.conn.readable(), left);
        n
    }

    /// The application looks at bytes ahead.
    fn peek(&mut self, at: usize, skip: usize, len: usize) {
        let readable = self.sides[at].conn.readable();
        let segments = self.sides[at].conn.reserve_rx(skip, len);
        let most = len.min(readable.saturating_sub(skip));
        assert!(segments.len() <= most && segments.is_empty() == (most == 0));
        self.verify(at, skip.min(readable), segments);
    }

    /// Somebody who was told to push makes a plan, if there is a slot.
    fn kick(&mut self, at: usize) -> bool {
        let side = &mut self.sides[at];
        if !side.wanted || side.conn.pending() >= SLOTS {
            return false;
        }
        side.wanted = false;
        if let Some(plan) = side.conn.plan_tx() {
            assert!(side.plan.is_none(), "two plans at a time");
            side.messages += 1;
            if plan.cdc.flags.has(ProdFlags::URGENT_PRESENT) {
                side.marks.push(side.conn.snapshot().sent.get());
            }
            side.data_messages += u64::from(!plan.writes().is_empty());
            side.plan = Some(plan);
        }
        true
    }

    /// The plan is posted.
    fn post(&mut self, at: usize) -> bool {
        let side = &mut self.sides[at];
        let Some(plan) = side.plan.take() else {
            return false;
        };
        for w in plan.writes() {
            assert!(w.src as usize + w.len as usize <= side.sndbuf.len());
            side.wire.push_back(Packet::Write(*w));
        }
        let packet = Packet::Message(plan.cdc.emit(), plan.done);
        side.wire.push_back(packet);
        side.wanted |= side.conn.posted();
        true
    }

    /// The next packet crosses the wire.
    fn transmit(&mut self, from: usize) -> bool {
        let [a, b] = &mut self.sides;
        let (side, peer) = if from == 0 { (a, b) } else { (b, a) };
        match side.wire.pop_front() {
            None => return false,
            Some(Packet::Write(w)) => {
                let src = &side.sndbuf[w.src as usize..][..w.len as usize];
                peer.rmb[w.dst as usize..][..w.len as usize].copy_from_slice(src);
            }
            Some(Packet::Message(bytes, done)) => {
                peer.inbox.push_back(bytes);
                side.completions.push_back(done);
            }
        }
        true
    }

    /// The next message is looked at.
    fn deliver(&mut self, at: usize) -> bool {
        let side = &mut self.sides[at];
        let Some(bytes) = side.inbox.pop_front() else {
            return false;
        };
        side.seen.push_back(bytes);
        if side.seen.len() > 4 {
            side.seen.pop_front();
        }
        self.input(at, &bytes);
        true
    }

    /// A message is looked at.
    fn input(&mut self, at: usize, bytes: &[u8; 44]) {
        let side = &mut self.sides[at];
        let cdc = Cdc::parse(bytes).expect("own message");
        let before = side.conn.readable();
        let effects = side.conn.on_cdc(&cdc).expect("correct peer");
        if effects.urgent {
            let offset = side.conn.urgent_offset().expect("urgent byte");
            let byte = side.rmb[offset as usize];
            side.conn.store_urgent(byte);
            assert!(side.conn.has_urgent());
            let pos = side.conn.snapshot().received.get() - 1;
            assert_eq!(byte, pattern(1 - at, pos));
            if side.inline {
                assert_eq!(side.conn.recv_urgent(true), Err(NoUrgent::Invalid));
            } else {
                assert_eq!(side.conn.recv_urgent(true), Ok(byte));
            }
        }
        side.wanted |= effects.push;
        if side.conn.readable() > before {
            assert!(effects.wake_reader);
        }
    }

    /// An old message comes again.
    fn repeat(&mut self, at: usize, which: usize) {
        let seen = &self.sides[at].seen;
        if let Some(bytes) = seen.get(which).copied() {
            let before = self.sides[at].conn.snapshot();
            self.input(at, &bytes);
            assert_eq!(before, self.sides[at].conn.snapshot());
        }
    }

    /// The next completion is looked at.
    fn complete(&mut self, at: usize) -> bool {
        let side = &mut self.sides[at];
        let Some(done) = side.completions.pop_front() else {
            return false;
        };
        let space = side.conn.tx_space();
        let effects = side.conn.tx_complete(done);
        side.wanted |= effects.push;
        assert_eq!(effects.wake_writer, side.conn.tx_space() > space);
        assert_eq!(effects.drained, side.conn.drained());
        true
    }

    /// The link dies: what was not transmitted is lost, what arrived is looked at.
    pub fn cut(&mut self) {
        for at in [0, 1] {
            while self.deliver(at) || self.complete(at) {}
            let side = &mut self.sides[at];
            side.grant = None;
            if side.plan.take().is_some() {
                side.conn.post_failed();
            }
            side.conn.kill();
            for packet in std::mem::take(&mut side.wire) {
                if let Packet::Message(_, done) = packet {
                    let effects = side.conn.tx_lost(done);
                    assert!(!effects.push);
                }
            }
            assert!(side.conn.plan_tx().is_none());
        }
    }

    /// Runs everything but the applications until nothing happens any more.
    pub fn settle(&mut self) {
        loop {
            let mut busy = false;
            for at in [0, 1] {
                busy |= self.kick(at);
                busy |= self.post(at);
                busy |= self.transmit(at);
                busy |= self.deliver(at);
                busy |= self.complete(at);
                self.sides[at].check();
            }
            if !busy {
                return;
            }
        }
    }

    /// A corked application lets go.
    fn uncork(&mut self) {
        for side in &mut self.sides {
            side.wanted |= side.corked;
            side.corked = false;
        }
    }

    /// With everything delivered, data waits only for a reader.
    pub fn assert_no_deadlock(&mut self) {
        self.commit(0, 0);
        self.commit(1, 0);
        self.uncork();
        self.settle();
        for at in [0, 1] {
            let (c, peer) = (&self.sides[at].conn, &self.sides[1 - at].conn);
            assert!(c.unsent() == 0 || peer.readable() > 0, "side {at} stuck");
            if c.phase() == Phase::Aborted || c.peer_aborted() || c.peer_closed() {
                assert!(c.drained());
            }
        }
    }

    /// Both applications read all there is, until nothing comes any more.
    pub fn read_all(&mut self) {
        loop {
            self.assert_no_deadlock();
            if self.recv(0, usize::MAX) + self.recv(1, usize::MAX) == 0 {
                return;
            }
        }
    }

    /// After [`Pair::read_all`]: what was accepted arrived, unless somebody didn't want it.
    pub fn assert_complete(&self) {
        for at in [0, 1] {
            let (tx, rx) = (&self.sides[at], &self.sides[1 - at]);
            assert!(rx.received <= tx.sent);
            let hidden = if rx.inline { 0 } else { tx.marks.len() as u64 };
            let lossy = |c: &Connection| c.phase() >= Phase::Closed || c.peer_aborted();
            if tx.conn.phase() != Phase::Aborted && !lossy(&rx.conn) {
                assert_eq!(rx.received + hidden, tx.sent);
            }
            if rx.conn.phase() < Phase::Closed && tx.conn.phase() == Phase::Closed {
                // Closing loses nothing either as long as the other side reads.
                assert!(rx.conn.peer_done());
                assert_eq!(rx.received + hidden, tx.sent);
            }
        }
    }

    /// Both sides close; then nothing may be left.
    pub fn finish(&mut self) {
        for at in [0, 1] {
            self.sides[at].conn.close();
            self.sides[at].wanted = true;
        }
        self.settle();
        for side in &self.sides {
            assert!(side.conn.drained());
            assert!(side.conn.finished());
            assert_eq!(side.conn.readable(), 0);
        }
    }

    /// One operation from two bytes.
    pub fn step(&mut self, op: u8, arg: u8) {
        let at = usize::from(op & 1);
        let len = usize::from(arg) * usize::from(arg) / 2 + 1;
        let how = match arg % 32 {
            0..=7 => How::More,
            8 => How::Urgent,
            _ => How::Plain,
        };
        match (op >> 1) % 64 {
            0..=9 => drop(self.send(at, len, how)),
            10..=11 => self.reserve(at, len),
            12..=14 => self.commit(at, len),
            15..=24 => drop(self.recv(at, len)),
            25..=26 => self.peek(at, len / 2, len),
            27..=34 => drop(self.kick(at)),
            35..=41 => drop(self.post(at)),
            42..=48 => drop(self.transmit(at)),
            49..=54 => drop(self.deliver(at)),
            55..=60 => drop(self.complete(at)),
            61 => self.repeat(at, usize::from(arg) % 4),
            62 => self.sides[at].wanted = true,
            _ => self.ending(at, arg),
        }
        self.sides[0].check();
        self.sides[1].check();
    }

    /// A rare operation: some way to end, or nothing.
    fn ending(&mut self, at: usize, arg: u8) {
        match arg {
            0..=7 => self.sides[at].conn.shutdown_write(),
            8..=11 => self.sides[at].conn.close(),
            12 => self.sides[at].conn.abort(),
            _ => {}
        }
        self.sides[at].wanted = true;
    }
}

/// Runs operations, two bytes each, then lets both sides read, checks, closes, checks. Any bytes
/// are valid, so that a fuzzer can call this.
pub fn run(sizes: Sizes, ops: &[u8]) {
    let mut pair = Pair::new(sizes);
    for op in ops.chunks_exact(2) {
        pair.step(op[0], op[1]);
    }
    pair.assert_no_deadlock();
    pair.read_all();
    pair.assert_complete();
    pair.finish();
}
