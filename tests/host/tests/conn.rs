// SPDX-License-Identifier: GPL-2.0

//! Two-party simulation of the connection, and hostile peers.
#![allow(dead_code, unused_imports)]

#[path = "../../../proto/mod.rs"]
mod proto;

mod pair;

use pair::{
    How,
    Pair,
    Sizes, //
};
use proptest::prelude::*;
use proto::conn::{
    ConnConfig,
    Connection,
    PeerFault, //
};
use proto::cursor::Cursor;
use proto::ring::RingSize;
use proto::wire::cdc::{
    Cdc,
    ConnFlags,
    ProdFlags, //
};

/// So many cases, unless the environment says how many.
fn cases(n: u32) -> ProptestConfig {
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => config,
        None => ProptestConfig { cases: n, ..config },
    }
}

/// Small rings of three sizes, so that all inequalities happen.
fn sizes() -> impl Strategy<Value = Sizes> {
    let size = || (14u32..=16).prop_map(|order| 1 << order);
    let all = ([size(), size()], [size(), size()], any::<[bool; 2]>());
    all.prop_map(|(sndbuf, rmb, inline)| Sizes {
        sndbuf,
        rmb,
        inline,
    })
}

/// A small generator; the tests need no better one.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn any_operations(sizes in sizes(), ops in prop::collection::vec(any::<u8>(), 0..2000)) {
        pair::run(sizes, &ops);
    }
}

/// Many wraps of all rings in both directions, every combination of sizes.
#[test]
#[cfg_attr(miri, ignore = "hours")]
fn long_streams() {
    for case in 0..81u32 {
        let order = |i: u32| 1u32 << (14 + case / 3u32.pow(i) % 3);
        let mut pair = Pair::new(Sizes {
            sndbuf: [order(0), order(1)],
            rmb: [order(2), order(3)],
            inline: [case % 2 == 0, case % 4 < 2],
        });
        let mut rng = Rng(0x1234_5678 + u64::from(case));
        while pair.sides.iter().any(|s| s.received < 12 << 16) {
            let r = rng.next();
            // Everything but the ways to end.
            pair.step((r as u8) % 126, (r >> 8) as u8);
        }
        pair.read_all();
        pair.assert_complete();
        for side in &pair.sides {
            assert_eq!(side.conn.unsent(), 0);
            assert!(side.sent >= 12 << 16);
        }
        pair.finish();
    }
}

/// The 16-bit sequence number and wrap counts wrap.
#[test]
#[cfg_attr(miri, ignore = "hours")]
fn counters_wrap() {
    let small = 1 << 14;
    let mut pair = Pair::new(Sizes {
        sndbuf: [small; 2],
        rmb: [small; 2],
        inline: [false; 2],
    });
    for _ in 0..70_000 {
        for from in [0, 1] {
            assert_eq!(
                pair.send(from, small as usize, How::Plain),
                Ok(small as usize)
            );
        }
        pair.settle();
        for at in [0, 1] {
            assert_eq!(pair.recv(at, usize::MAX), small as usize);
        }
        pair.settle();
    }
    assert!(pair.sides.iter().all(|s| s.messages > 1 << 16));
    pair.read_all();
    pair.assert_complete();
    pair.finish();
}

/// A sender that is never read from stops at two full rings and no message storm follows.
#[test]
fn backpressure() {
    let mut pair = Pair::new(Sizes {
        sndbuf: [1 << 14; 2],
        rmb: [1 << 15; 2],
        inline: [false; 2],
    });
    let mut total = 0;
    for _ in 0..100 {
        total += pair.send(0, 5000, How::Plain).unwrap_or(0);
        pair.settle();
    }
    assert_eq!(total, (1 << 14) + (1 << 15));
    assert_eq!(pair.sides[1].conn.readable(), 1 << 15);
    assert_eq!(pair.sides[0].conn.unsent(), 1 << 14);
    let before = pair.sides[0].messages + pair.sides[1].messages;
    pair.settle();
    assert_eq!(before, pair.sides[0].messages + pair.sides[1].messages);
    pair.read_all();
    pair.assert_complete();
    pair.finish();
}

/// A streaming reader answers far less often than it is written to.
#[test]
fn acknowledgements_are_few() {
    let mut pair = Pair::new(Sizes {
        sndbuf: [1 << 16; 2],
        rmb: [1 << 16; 2],
        inline: [false; 2],
    });
    for _ in 0..1000 {
        assert_eq!(pair.send(0, 1000, How::Plain), Ok(1000));
        pair.settle();
        assert_eq!(pair.recv(1, usize::MAX), 1000);
        pair.settle();
    }
    assert_eq!(pair.sides[0].messages, 1000);
    assert!(pair.sides[1].messages <= 1_000_000 / (1 << 15) + 1);
}

/// Both sides fill everything, read nothing, close: nobody waits for anybody.
#[test]
fn close_against_close() {
    for (first, second) in [(0, 1), (1, 0)] {
        let mut pair = Pair::new(Sizes {
            sndbuf: [1 << 14, 1 << 15],
            rmb: [1 << 15, 1 << 14],
            inline: [false; 2],
        });
        for from in [0, 1] {
            while pair.send(from, 3000, How::Plain).is_ok() {
                pair.settle();
            }
        }
        pair.sides[first].conn.close();
        pair.sides[first].wanted = true;
        pair.settle();
        assert!(!pair.sides[first].conn.finished());
        pair.sides[second].conn.close();
        pair.sides[second].wanted = true;
        pair.settle();
        for side in &pair.sides {
            assert!(side.conn.finished());
            assert!(side.conn.peer_aborted());
        }
    }
}

proptest! {
    #![proptest_config(cases(200))]

    /// The link dies at any time: what was delivered can be read, nothing hangs.
    #[test]
    fn link_dies(sizes in sizes(), ops in prop::collection::vec(any::<u8>(), 0..1000)) {
        let mut pair = Pair::new(sizes);
        for op in ops.chunks_exact(2) {
            pair.step(op[0], op[1]);
        }
        pair.cut();
        for at in [0, 1] {
            pair.recv(at, usize::MAX);
            pair.recv(at, usize::MAX);
            prop_assert!(pair.sides[at].conn.finished());
            prop_assert!(pair.sides[at].conn.drained());
            prop_assert!(pair.send(at, 1, How::Plain).is_err());
            prop_assert_eq!(pair.sides[at].conn.readable(), 0);
        }
    }
}

/// A fresh connection with small rings.
fn connection() -> Connection {
    let size = RingSize::new(1 << 14).expect("size");
    Connection::new(ConnConfig {
        sndbuf: size,
        rmb: size,
        peer_rmb: RingSize::new(1 << 15).expect("size"),
        peer_token: 7,
        ack_floor: 2304,
    })
}

/// A cursor that is often near the truth.
fn cursor() -> impl Strategy<Value = Cursor> {
    let wrap = prop_oneof![4 => 0u16..3, 1 => any::<u16>()];
    let count = prop_oneof![
        6 => 0u32..40_000,
        1 => any::<u32>(),
        1 => prop::sample::select(vec![16383u32, 16384, 16385, 32767, 32768]),
    ];
    (wrap, count).prop_map(|(wrap, count)| Cursor { wrap, count })
}

/// A message that is often plausible.
fn message() -> impl Strategy<Value = Cdc> {
    let seq = prop_oneof![4 => 0u16..200, 1 => any::<u16>()];
    let state = prop_oneof![6 => Just(0u8), 1 => any::<u8>()];
    (seq, cursor(), cursor(), any::<u8>(), state).prop_map(|(seq, prod, cons, flags, state)| Cdc {
        seq,
        token: 7,
        prod,
        cons,
        flags: ProdFlags(flags),
        state: ConnFlags(state),
    })
}

proptest! {
    #![proptest_config(cases(3000))]

    /// Whatever a peer sends, nothing leaves its bounds.
    #[test]
    fn hostile_messages(steps in prop::collection::vec((message(), any::<u8>()), 1..60)) {
        let mut conn = connection();
        let mut outstanding = Vec::new();
        for (cdc, act) in steps {
            let faulted = conn.faulted();
            let result = conn.on_cdc(&cdc);
            prop_assert_eq!(conn.faulted(), faulted || result.is_err());
            prop_assert!(conn.readable() <= 1 << 14);
            prop_assert!(conn.peer_unread() <= 1 << 15);
            prop_assert!(conn.touched() <= 1 << 14);
            prop_assert!(conn.reserve_rx(usize::from(act), usize::MAX).len() <= 1 << 14);
            match act % 8 {
                0 | 1 => if let Ok(grant) = conn.reserve_tx(usize::from(act) * 50) {
                    let n = grant.len();
                    conn.commit_tx(grant, n);
                }
                2 | 3 => if let Some(plan) = conn.plan_tx() {
                    for w in plan.writes() {
                        prop_assert!(w.src + w.len <= 1 << 14);
                        prop_assert!(w.dst + w.len <= 1 << 15);
                    }
                    outstanding.push(plan.done);
                    conn.posted();
                }
                4 => if let Some(done) = outstanding.pop() {
                    let _ = conn.tx_complete(done);
                }
                5 => drop(conn.commit_rx(usize::from(act) * 100)),
                6 if act > 250 => conn.close(),
                7 if act > 250 => conn.abort(),
                _ => {}
            }
        }
        conn.abort();
        for _ in 0..3 {
            if conn.plan_tx().is_some() {
                conn.posted();
            }
        }
        conn.kill();
        prop_assert!(conn.plan_tx().is_none());
    }

    /// Parsing takes any bytes, and what it takes it gives back.
    #[test]
    fn parse_any(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(cdc) = Cdc::parse(&bytes) {
            prop_assert_eq!(Cdc::parse(&cdc.emit()), Ok(cdc));
        }
    }

    /// What is emitted is parsed.
    #[test]
    fn parse_emitted(cdc in message()) {
        prop_assert_eq!(Cdc::parse(&cdc.emit()), Ok(cdc));
    }
}
