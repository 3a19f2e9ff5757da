// SPDX-License-Identifier: GPL-2.0

//! One connection, whose peer sends any messages, true, nearly true and wild, while the
//! application does anything. What each message must do is computed here once more, in plain
//! arithmetic; nothing may leave the rings.

use super::Input;
use crate::proto::{
    conn::{
        ConnConfig,
        Connection,
        PeerFault,
        Snapshot,
        TxDone, //
    },
    cursor::{
        Cursor,
        CursorFault, //
    },
    ring::{
        RingSize,
        Segments, //
    },
    wire::cdc::{
        Cdc,
        CdcError,
        ConnFlags,
        ProdFlags, //
    },
};
use std::collections::VecDeque;

/// The connection's name at the peer.
const TOKEN: u32 = 0x0102_0304;

/// The connection and what is known of it.
struct Bench {
    conn: Connection,
    sndbuf: u64,
    rmb: u64,
    peer_rmb: u64,
    /// Posted and not completed.
    posted: VecDeque<TxDone>,
    /// The application left, so that received data may vanish.
    left: bool,
}

/// Bytes from one cursor of a ring to a later one.
fn distance(from: Cursor, to: Cursor, size: u64) -> u64 {
    let turn = size << 16;
    let at = |c: Cursor| u64::from(c.wrap) * size + u64::from(c.count);
    (at(to) + turn - at(from)) % turn
}

/// The cursor of a position.
fn cursor(pos: u64, size: u64) -> Cursor {
    Cursor {
        wrap: (pos / size % 65536) as u16,
        count: (pos % size) as u32,
    }
}

/// What a cursor of a message must do to a position: by how many bytes it moves.
fn movement(said: Cursor, known: Cursor, size: u64, most: u64) -> Result<u64, CursorFault> {
    if u64::from(said.count) >= size {
        return Err(CursorFault::Outside);
    }
    let turn = size << 16;
    let ahead = distance(known, said, size);
    // Half of all cursors are behind: those with a wrap count that is (as a difference) negative.
    let wraps = said.wrap.wrapping_sub(known.wrap);
    if wraps >= 0x8000 || (wraps == 0 && said.count <= known.count) {
        return Ok(0);
    }
    assert!(ahead > 0 && ahead < turn);
    if ahead <= most {
        Ok(ahead)
    } else {
        Err(CursorFault::TooFar)
    }
}

/// What a message must do: an error, or by how much both cursors move.
fn expected(b: &Bench, cdc: &Cdc, s: &Snapshot) -> Result<Option<(u64, u64)>, PeerFault> {
    let ahead = cdc.seq.wrapping_sub(s.rx_seq);
    if cdc.flags.has(ProdFlags::VALIDATION) {
        return if (1..=0x8000).contains(&ahead) {
            Err(PeerFault::LostMessages)
        } else {
            Ok(None)
        };
    }
    if ahead >= 0x8000 {
        return Ok(None);
    }
    let window = b.rmb - distance(s.rx_confirmed, s.rx_prod, b.rmb);
    let wrote = movement(cdc.prod, s.rx_prod, b.rmb, window).map_err(PeerFault::Producer)?;
    let unread = distance(s.peer_cons, s.peer_prod, b.peer_rmb);
    let read = movement(cdc.cons, s.peer_cons, b.peer_rmb, unread).map_err(PeerFault::Consumer)?;
    Ok(Some((wrote, read)))
}

impl Bench {
    /// A fresh connection; two bits each for the sizes.
    fn new(sizes: u8, flags: u8) -> Self {
        let order = |bits: u8| 14 + u32::from(bits & 3) % 3;
        // Now and then the largest ring, whose arithmetic has the largest numbers.
        let (a, b, c) = match flags & 0xc0 {
            0xc0 => (29, 29, 29),
            _ => (order(sizes), order(sizes >> 2), order(sizes >> 4)),
        };
        let size = |order: u32| RingSize::new(1u32 << order).expect("ring size");
        let mut conn = Connection::new(ConnConfig {
            sndbuf: size(a),
            rmb: size(b),
            peer_rmb: size(c),
            peer_token: TOKEN,
            ack_floor: 2304,
        });
        conn.set_urgent_inline(flags & 1 != 0);
        Self {
            conn,
            sndbuf: 1 << a,
            rmb: 1 << b,
            peer_rmb: 1 << c,
            posted: VecDeque::new(),
            left: false,
        }
    }

    /// What must hold always.
    fn check(&self) {
        let c = &self.conn;
        let s = c.snapshot();
        assert!(c.readable() as u64 <= self.rmb);
        assert!(c.touched() as u64 <= self.rmb);
        assert!(c.peer_unread() as u64 <= self.peer_rmb);
        assert_eq!(
            (c.tx_space() + c.unsent() + c.inflight()) as u64,
            self.sndbuf
        );
        assert!(s.read <= s.received);
        assert!(distance(s.rx_confirmed, s.rx_prod, self.rmb) <= self.rmb);
        assert!(c.finished() <= c.drained());
        assert_eq!(c.pending() as usize, self.posted.len());
    }

    /// Pieces of the receive ring.
    fn inside(&self, segments: Segments) {
        for s in segments.iter() {
            assert!(u64::from(s.offset) + u64::from(s.len) <= self.rmb);
        }
        assert!(segments.len() <= self.conn.readable());
    }

    /// A message comes.
    fn message(&mut self, bytes: &[u8]) {
        let cdc = match Cdc::parse(bytes) {
            Ok(cdc) => cdc,
            Err(error) => {
                assert_eq!(error == CdcError::Short, bytes.len() < 26);
                return;
            }
        };
        assert_eq!(Cdc::parse(&cdc.emit()), Ok(cdc));
        let before = self.conn.snapshot();
        if self.conn.faulted() {
            assert_eq!(self.conn.on_cdc(&cdc), Ok(Default::default()));
            assert_eq!(self.conn.snapshot(), before);
            return;
        }
        let want = expected(self, &cdc, &before);
        let got = self.conn.on_cdc(&cdc);
        let after = self.conn.snapshot();
        match want {
            Err(fault) => {
                assert_eq!(got, Err(fault));
                assert!(self.conn.faulted());
                assert_eq!(self.conn.unsent(), 0);
                assert_eq!((after.received, after.read), (before.received, before.read));
            }
            Ok(None) => {
                assert_eq!(got, Ok(Default::default()));
                assert_eq!(after, before);
            }
            Ok(Some((wrote, read))) => {
                let effects = got.expect("a correct message");
                assert_eq!(after.received.get() - before.received.get(), wrote);
                assert_eq!(
                    distance(before.peer_cons, after.peer_cons, self.peer_rmb),
                    read
                );
                assert_eq!(after.rx_seq, cdc.seq);
                assert!(wrote == 0 || effects.wake_reader);
                let known = cdc.state.only(ConnFlags::KNOWN);
                assert_eq!(after.peer_state, before.peer_state.and(known));
                if effects.urgent {
                    let offset = self.conn.urgent_offset().expect("urgent byte");
                    assert!(u64::from(offset) < self.rmb);
                    self.conn.store_urgent(bytes[0]);
                    assert!(self.conn.has_urgent());
                }
            }
        }
    }

    /// A message that is near the truth: each field by one byte of what could be.
    fn near(&mut self, input: &mut Input) {
        let s = self.conn.snapshot();
        let window = self.rmb - distance(s.rx_confirmed, s.rx_prod, self.rmb);
        let unread = distance(s.peer_cons, s.peer_prod, self.peer_rmb);
        let seq = input.or_zero();
        let prod = self.place(input.or_zero(), s.rx_prod, window, self.rmb);
        let cons = self.place(input.or_zero(), s.peer_cons, unread, self.peer_rmb);
        let cdc = Cdc {
            seq: match seq {
                0..=199 => s.rx_seq.wrapping_add(1),
                200..=229 => s.rx_seq.wrapping_add_signed(i16::from(seq as i8)),
                _ => u16::from(seq) << 8,
            },
            token: TOKEN,
            prod,
            cons,
            flags: ProdFlags(input.or_zero()),
            state: ConnFlags(input.or_zero()),
        };
        let bytes = cdc.emit();
        self.message(&bytes);
    }

    /// Where a cursor goes: some part of the way, just too far, back, outside.
    fn place(&self, how: u8, known: Cursor, most: u64, size: u64) -> Cursor {
        let at = u64::from(known.wrap) * size + u64::from(known.count);
        match how {
            0..=127 => cursor(at + most * u64::from(how) / 127, size),
            128..=191 => cursor(at + u64::from(how - 128).min(most), size),
            192..=199 => cursor(at + most + u64::from(how - 191), size),
            200..=229 => cursor(at.saturating_sub(u64::from(how - 199) * 777), size),
            230..=239 => cursor(at + size * (u64::from(how - 230) << 12), size),
            _ => Cursor {
                wrap: known.wrap,
                count: (size as u32).wrapping_add(u32::from(how - 240)) - 8,
            },
        }
    }

    /// The application sends.
    fn send(&mut self, len: usize, urgent: bool) {
        if let Ok(grant) = self.conn.reserve_tx(len) {
            assert!(grant.len() <= len);
            for s in grant.segments().iter() {
                assert!(u64::from(s.offset) + u64::from(s.len) <= self.sndbuf);
            }
            let n = grant.len();
            let accepted = if urgent {
                self.conn.commit_urgent(grant, n)
            } else {
                self.conn.commit_tx(grant, n)
            };
            assert_eq!(accepted, n);
            let _ = self.conn.should_push(false, 6000);
        }
    }

    /// A plan, checked.
    fn plan(&mut self, posted: bool) -> bool {
        let before = self.conn.snapshot();
        let Some(plan) = self.conn.plan_tx() else {
            return false;
        };
        let after = self.conn.snapshot();
        let total = after.sent.get() - before.sent.get();
        let mut at = before.sent.get();
        for w in plan.writes() {
            assert_eq!(u64::from(w.src), at % self.sndbuf);
            assert_eq!(u64::from(w.dst), at % self.peer_rmb);
            assert!(u64::from(w.src) + u64::from(w.len) <= self.sndbuf);
            assert!(u64::from(w.dst) + u64::from(w.len) <= self.peer_rmb);
            at += u64::from(w.len);
        }
        assert_eq!(at, after.sent.get());
        assert!(total == 0 || !(self.conn.faulted() || self.conn.peer_aborted()));
        assert_eq!(plan.cdc.token, TOKEN);
        assert_eq!(plan.cdc.seq, before.tx_seq.wrapping_add(1));
        assert_eq!(plan.cdc.prod, cursor(after.sent.get(), self.peer_rmb));
        assert_eq!(plan.cdc.cons, cursor(after.read.get(), self.rmb));
        assert!(!before.local_state.has(ConnFlags::ANY_CLOSE));
        if posted {
            self.posted.push_back(plan.done);
            let _ = self.conn.posted();
        } else {
            self.conn.post_failed();
            assert!(self.conn.is_dead());
        }
        true
    }

    /// The application reads.
    fn recv(&mut self, len: usize) {
        let segments = self.conn.reserve_rx(0, len);
        self.inside(segments);
        let (n, before) = (segments.len(), self.conn.readable());
        assert!(n > 0 || len == 0 || before == 0);
        let _ = self.conn.commit_rx(n);
        assert_eq!(self.conn.readable(), before - n);
    }

    /// One operation.
    fn step(&mut self, op: u8, input: &mut Input) {
        let mut len = || usize::from(input.or_zero()).pow(2) + 1;
        match op {
            0..=119 => self.near(input),
            120..=129 => {
                let bytes = input.take(44);
                self.message(bytes);
            }
            130..=134 => {
                let n = usize::from(input.or_zero() % 60);
                let bytes = input.take(n);
                self.message(bytes);
            }
            135..=159 => {
                let n = len();
                self.send(n, false);
            }
            160..=164 => {
                let n = len();
                self.send(n, true);
            }
            165..=189 => drop(self.plan(true)),
            190..=209 => self.complete(),
            210..=229 => {
                let n = len();
                self.recv(n);
            }
            230..=234 => {
                let (skip, n) = (len(), len());
                let segments = self.conn.reserve_rx(skip, n);
                self.inside(segments);
            }
            235..=239 => {
                let there = self.conn.has_urgent();
                let got = self.conn.recv_urgent(op & 1 != 0);
                assert!(there || got.is_err());
                let _ = self.conn.at_mark();
            }
            240..=242 => self.conn.set_urgent_inline(op & 1 != 0),
            243..=246 => self.conn.shutdown_write(),
            247..=249 => self.conn.close(),
            250 => self.conn.abort(),
            251 => self.conn.kill(),
            252 => drop(self.plan(false)),
            _ => drop(self.conn.commit_rx(len())),
        }
        self.left |= (247..=250).contains(&op);
        if self.left {
            assert_eq!(self.conn.readable(), 0);
        }
        self.check();
    }

    /// The oldest message is through, or it is known that it never will be.
    fn complete(&mut self) {
        if let Some(done) = self.posted.pop_front() {
            let effects = if self.conn.is_dead() {
                self.conn.tx_lost(done)
            } else {
                self.conn.tx_complete(done)
            };
            assert_eq!(effects.drained, self.conn.drained());
            assert!(!effects.push || !self.conn.is_dead());
        }
    }

    /// The application gives up; nothing may be left then.
    fn finish(&mut self) {
        self.conn.abort();
        assert_eq!((self.conn.readable(), self.conn.unsent()), (0, 0));
        // Whatever it was, one more message says it.
        let _ = self.plan(true);
        assert!(!self.plan(true));
        while !self.posted.is_empty() {
            self.complete();
        }
        assert!(self.conn.drained());
        let gone = self.conn.faulted() || self.conn.peer_closed() || self.conn.peer_aborted();
        assert_eq!(self.conn.finished(), gone || self.conn.is_dead());
        self.conn.kill();
        assert!(self.conn.finished());
    }
}

/// Byte 0: sizes of the rings. Byte 1: flags. Then operations with their arguments.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (sizes, flags) = (input.or_zero(), input.or_zero());
    let mut bench = Bench::new(sizes, flags);
    while let Some(op) = input.byte() {
        bench.step(op, &mut input);
    }
    bench.finish();
}
