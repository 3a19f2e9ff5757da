// SPDX-License-Identifier: GPL-2.0

//! Cursors: how positions in a ring are named on the wire.

use super::ring::{
    Pos,
    RingSize, //
};

/// A position in a ring: how often it was filled (modulo 2^16) and the offset in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Cursor {
    /// Wraps of the ring so far.
    pub(crate) wrap: u16,
    /// Offset in the ring.
    pub(crate) count: u32,
}

/// A cursor from the peer that no correct peer can send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CursorFault {
    /// The offset is outside the ring.
    Outside,
    /// It moved further than it could have.
    TooFar,
}

impl Cursor {
    /// The cursor that names `pos` in a ring of `size`.
    pub(crate) fn at(pos: Pos, size: RingSize) -> Self {
        Self {
            wrap: size.wraps(pos),
            count: size.offset(pos),
        }
    }

    /// By how many bytes this cursor moved on from `known`, at most `max`.
    ///
    /// An older cursor counts as no movement: after a change of links a peer may repeat one.
    pub(crate) fn advance(self, known: Pos, size: RingSize, max: u32) -> Result<u32, CursorFault> {
        if self.count >= size.bytes() {
            return Err(CursorFault::Outside);
        }
        let wraps = self.wrap.wrapping_sub(size.wraps(known));
        // The sign decides between a cursor ahead of `known` and an older one.
        let wraps = i64::from(i16::from_ne_bytes(wraps.to_ne_bytes()));
        // At most 2^15 wraps of at most 2^29 bytes: far from the limits of i64.
        let moved = wraps
            .saturating_mul(i64::from(size.bytes()))
            .saturating_add(i64::from(self.count))
            .saturating_sub(i64::from(size.offset(known)));
        if moved <= 0 {
            return Ok(0);
        }
        match u32::try_from(moved) {
            Ok(n) if n <= max => Ok(n),
            _ => Err(CursorFault::TooFar),
        }
    }
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_cursor))]
mod tests {
    use super::*;

    /// A cursor.
    fn cursor(wrap: u16, count: u32) -> Cursor {
        Cursor { wrap, count }
    }

    /// The smallest ring.
    fn ring() -> Option<RingSize> {
        RingSize::new(16384)
    }

    /// `advance` in the smallest ring.
    fn step(c: Cursor, known: u64, max: u32) -> Option<Result<u32, CursorFault>> {
        Some(c.advance(Pos::new(known), ring()?, max))
    }

    #[test]
    fn names() {
        let at = |pos| ring().map(|r| Cursor::at(Pos::new(pos), r));
        assert_eq!(at(0), Some(cursor(0, 0)));
        assert_eq!(at(16383), Some(cursor(0, 16383)));
        assert_eq!(at(16384), Some(cursor(1, 0)));
        assert_eq!(at(16384 * 65536 + 5), Some(cursor(0, 5)));
    }

    #[test]
    fn moves() {
        assert_eq!(step(cursor(0, 10), 0, 10), Some(Ok(10)));
        assert_eq!(step(cursor(0, 10), 10, 10), Some(Ok(0)));
        assert_eq!(step(cursor(1, 4), 16380, 16384), Some(Ok(8)));
        assert_eq!(step(cursor(1, 10), 10, 16384), Some(Ok(16384)));
        // The wrap count itself wraps.
        assert_eq!(step(cursor(0, 1), 16384 * 65536 - 1, 16384), Some(Ok(2)));
    }

    #[test]
    fn old_is_no_move() {
        assert_eq!(step(cursor(0, 9), 10, 16384), Some(Ok(0)));
        assert_eq!(step(cursor(2, 16383), 16384 * 3, 16384), Some(Ok(0)));
        assert_eq!(step(cursor(65535, 9), 16384 * 65536, 16384), Some(Ok(0)));
    }

    #[test]
    fn hostile() {
        let outside = Some(Err(CursorFault::Outside));
        let far = Some(Err(CursorFault::TooFar));
        assert_eq!(step(cursor(0, 16384), 0, 16384), outside);
        assert_eq!(step(cursor(0, u32::MAX), 0, 16384), outside);
        assert_eq!(step(cursor(0, 11), 0, 10), far);
        assert_eq!(step(cursor(1, 1), 0, 16384), far);
        assert_eq!(step(cursor(32767, 16383), 0, 16384), far);
    }
}
