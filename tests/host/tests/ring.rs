// SPDX-License-Identifier: GPL-2.0

//! Rings and cursors against plain counting.
#![allow(dead_code, unused_imports)]

#[path = "../../../proto/mod.rs"]
mod proto;

use proptest::prelude::*;
use proto::cursor::{
    Cursor,
    CursorFault, //
};
use proto::ring::{
    Pos,
    RingSize, //
};

/// Any ring size.
fn size() -> impl Strategy<Value = RingSize> {
    (14u32..=29).prop_map(|order| RingSize::new(1 << order).expect("size"))
}

/// Positions up to far beyond one turn of the wrap count of the largest ring.
fn position() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..1 << 20, 0u64..1 << 47]
}

/// So many cases, unless the environment says how many.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(5_000);
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..Default::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn only_powers_of_two(bytes in any::<u32>()) {
        let valid = bytes.is_power_of_two() && (1 << 14..=1 << 29).contains(&bytes);
        prop_assert_eq!(RingSize::new(bytes).map(RingSize::bytes), valid.then_some(bytes));
    }

    /// Segments name exactly the bytes they should, in order.
    #[test]
    fn segments(size in size(), pos in position(), len in any::<u32>()) {
        let bytes = u64::from(size.bytes());
        let segments = size.span(Pos::new(pos), len);
        prop_assert_eq!(segments.len() as u64, u64::from(len).min(bytes));
        let mut at = pos;
        for s in segments.iter() {
            prop_assert!(s.len > 0);
            prop_assert_eq!(u64::from(s.offset), at % bytes);
            prop_assert!(u64::from(s.offset) + u64::from(s.len) <= bytes);
            at += u64::from(s.len);
        }
        prop_assert_eq!(at - pos, segments.len() as u64);
    }

    /// A cursor says by how much a position moved, as long as that is less than half the wraps.
    #[test]
    fn cursor_moves(size in size(), pos in position(), moved in any::<u32>(), max in any::<u32>()) {
        let moved = moved % (size.bytes() + 1);
        let cursor = Cursor::at(Pos::new(pos).plus(moved), size);
        let expected = if moved <= max { Ok(moved) } else { Err(CursorFault::TooFar) };
        prop_assert_eq!(cursor.advance(Pos::new(pos), size, max), expected);
    }

    /// An older cursor is no movement.
    #[test]
    fn cursor_back(size in size(), pos in position(), back in any::<u32>(), max in any::<u32>()) {
        let old = Cursor::at(Pos::new(pos.saturating_sub(u64::from(back))), size);
        prop_assume!(u64::from(back) < u64::from(size.bytes()) << 15);
        prop_assert_eq!(old.advance(Pos::new(pos), size, max), Ok(0));
    }

    /// Nothing a peer sends moves anything beyond what it may.
    #[test]
    fn cursor_hostile(
        size in size(), pos in position(), max in any::<u32>(),
        wrap in any::<u16>(), count in any::<u32>(),
    ) {
        let max = max % (size.bytes() + 1);
        match (Cursor { wrap, count }).advance(Pos::new(pos), size, max) {
            Ok(n) => prop_assert!(n <= max && count < size.bytes()),
            Err(CursorFault::Outside) => prop_assert!(count >= size.bytes()),
            Err(CursorFault::TooFar) => prop_assert!(count < size.bytes()),
        }
    }
}
