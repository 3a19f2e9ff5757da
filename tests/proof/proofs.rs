// SPDX-License-Identifier: GPL-2.0

//! What must hold of the arithmetic of rings, cursors and size codes, for all values of all
//! arguments. Each function is a theorem: `prove.py` proves of the compiled code that it returns
//! true and cannot panic. The argument `order` goes through all sizes of rings.
#![allow(dead_code, unused_imports)]

#[path = "../../proto/cursor.rs"]
mod cursor;
#[path = "../../proto/ring.rs"]
mod ring;
#[path = "../../proto/size.rs"]
mod size;

use cursor::{
    Cursor,
    CursorFault, //
};
use ring::{
    Pos,
    RingSize,
    Segment, //
};
use size::SizeCode;

/// Positions beyond this don't come up: no connection carries 2^63 bytes.
const FAR: u64 = 1 << 63;

/// A ring. The proof fails if there is none of this order.
fn ring_of(order: u8) -> RingSize {
    RingSize::new(1u32 << order).unwrap()
}

/// Exactly the powers of two from 2^14 to 2^29 are sizes of rings, and none is changed.
#[no_mangle]
pub extern "C" fn proof_sizes_of_rings(bytes: u32) -> bool {
    let valid = bytes & bytes.wrapping_sub(1) == 0 && bytes >= 1 << 14 && bytes <= 1 << 29;
    match RingSize::new(bytes) {
        Some(size) => valid && size.bytes() == bytes,
        None => !valid,
    }
}

/// Offset and wraps are quotient and remainder of the position.
#[no_mangle]
pub extern "C" fn proof_places(order: u8, pos: u64) -> bool {
    let size = ring_of(order);
    let (offset, wraps) = (size.offset(Pos::new(pos)), size.wraps(Pos::new(pos)));
    let again = (u64::from(wraps) << order) + u64::from(offset);
    offset < size.bytes() && again == pos & ((1 << (16 + order)) - 1)
}

/// A span is what was asked for, cut to the ring; its pieces are in the ring, in order, and
/// don't overlap.
#[no_mangle]
pub extern "C" fn proof_spans(order: u8, pos: u64, len: u32) -> bool {
    let size = ring_of(order);
    let span = size.span(Pos::new(pos), len);
    let (want, offset) = (len.min(size.bytes()), size.offset(Pos::new(pos)));
    let mut pieces = span.iter();
    let (one, two, three) = (pieces.next(), pieces.next(), pieces.next());
    let (a, b) = (one.unwrap_or_default(), two.unwrap_or_default());
    let whole = span.len() == want as usize && a.len + b.len == want;
    let first = want == 0 || (a.offset == offset && a.len > 0);
    let inside = a.offset + a.len <= size.bytes() && b.len <= offset && b.offset == 0;
    // There is a second piece only if the first one goes up to the end.
    let joint = b.len == 0 || a.offset + a.len == size.bytes();
    whole && first && inside && joint && two.is_some() == (b.len > 0) && three.is_none()
}

/// Distances of positions are what they are, as far as 32 bits go, and never negative.
#[no_mangle]
pub extern "C" fn proof_distances(a: u64, b: u64, n: u32) -> bool {
    let since = u64::from(Pos::new(a).since(Pos::new(b)));
    let real = if a > b { a - b } else { 0 };
    let cut = if real > u64::from(u32::MAX) {
        u64::from(u32::MAX)
    } else {
        real
    };
    let plus = Pos::new(a).plus(n);
    since == cut && (a >= FAR || (plus.get() == a + u64::from(n) && plus.since(Pos::new(a)) == n))
}

/// Whatever a peer says, a position moves by at most what it may, and a fault is a fault.
#[no_mangle]
pub extern "C" fn proof_hostile_cursors(
    order: u8,
    wrap: u16,
    count: u32,
    known: u64,
    max: u32,
) -> bool {
    let size = ring_of(order);
    let outside = count >= size.bytes();
    match (Cursor { wrap, count }).advance(Pos::new(known), size, max) {
        Ok(n) => n <= max && !outside,
        Err(CursorFault::Outside) => outside,
        Err(CursorFault::TooFar) => !outside,
    }
}

/// If a position moves, then exactly to the place that the cursor names.
#[no_mangle]
pub extern "C" fn proof_moves_to_the_cursor(
    order: u8,
    wrap: u16,
    count: u32,
    known: u64,
    max: u32,
) -> bool {
    let (size, cursor) = (ring_of(order), Cursor { wrap, count });
    match cursor.advance(Pos::new(known), size, max) {
        Ok(n) if n > 0 && known < FAR => Cursor::at(Pos::new(known).plus(n), size) == cursor,
        _ => true,
    }
}

/// A true cursor ahead moves the position by as much as it is ahead, if that is allowed.
#[no_mangle]
pub extern "C" fn proof_true_cursors_move(order: u8, known: u64, moved: u32, max: u32) -> bool {
    let size = ring_of(order);
    if known >= FAR || moved > size.bytes() {
        return true;
    }
    let cursor = Cursor::at(Pos::new(known).plus(moved), size);
    let want = if moved <= max {
        Ok(moved)
    } else {
        Err(CursorFault::TooFar)
    };
    cursor.advance(Pos::new(known), size, max) == want
}

/// An old cursor, up to 2^15 wraps back, moves nothing.
#[no_mangle]
pub extern "C" fn proof_old_cursors_do_not_move(
    order: u8,
    known: u64,
    back: u64,
    max: u32,
) -> bool {
    let size = ring_of(order);
    if back > known || back >= 1 << (15 + order) {
        return true;
    }
    let cursor = Cursor::at(Pos::new(known - back), size);
    cursor.advance(Pos::new(known), size, max) == Ok(0)
}

/// Each byte of the wire is a size code, and its size that of a ring.
#[no_mangle]
pub extern "C" fn proof_size_codes(byte: u8) -> bool {
    let code = SizeCode::from_high_nibble(byte);
    let bytes = code.bytes();
    let ring = RingSize::new(bytes as u32).map(RingSize::bytes);
    let smaller = match code.smaller() {
        Some(smaller) => smaller.bytes() * 2 == bytes,
        None => bytes == 16384,
    };
    code.code() == byte >> 4
        && bytes == 16384 << (byte >> 4)
        && ring == Some(bytes as u32)
        && smaller
}

/// The code of a size is the smallest that holds it, or the largest if none does; the code of a
/// code's size is that code.
#[no_mangle]
pub extern "C" fn proof_codes_of_sizes(bytes: usize) -> bool {
    let code = SizeCode::from_size(bytes);
    let enough = code.bytes() >= bytes || code == SizeCode::MAX;
    let least = match code.smaller() {
        Some(smaller) => smaller.bytes() < bytes,
        None => true,
    };
    enough && least && code.code() <= 15
}

/// False: a span is cut to the ring.
#[no_mangle]
pub extern "C" fn wrong_spans_have_any_length(order: u8, pos: u64, len: u32) -> bool {
    ring_of(order).span(Pos::new(pos), len).len() == len as usize
}

/// False: a cursor from 2^15 wraps back looks like one ahead.
#[no_mangle]
pub extern "C" fn wrong_cursors_are_old_for_ever(order: u8, known: u64, back: u64) -> bool {
    let size = ring_of(order);
    if back > known || known >= FAR {
        return true;
    }
    let cursor = Cursor::at(Pos::new(known - back), size);
    cursor.advance(Pos::new(known), size, 0) == Ok(0)
}

/// False: a position is at most one byte too far for this.
#[no_mangle]
pub extern "C" fn wrong_positions_never_overflow(pos: u64, n: u32) -> bool {
    Pos::new(pos).plus(n).get() == pos.wrapping_add(u64::from(n))
}

/// False: it panics for one value.
#[no_mangle]
pub extern "C" fn wrong_panics_once(bytes: u32) -> bool {
    assert!(bytes != 0x1234_5678);
    true
}
