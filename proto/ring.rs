// SPDX-License-Identifier: GPL-2.0

//! Power-of-two rings and positions in the byte stream that passes through them.
//!
//! All bookkeeping counts bytes since the connection began ([`Pos`]); a ring only says where a
//! position lies in memory. The same position therefore works for the send buffer and for the
//! peer's receive buffer, whatever their sizes.

/// Number of bytes of a stream before some point of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Pos(u64);

impl Pos {
    /// The beginning of the stream.
    pub(crate) const START: Self = Self(0);

    /// The position after `bytes` bytes.
    pub(crate) const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Bytes before this position.
    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// `n` bytes further on. 2^64 bytes never pass through one connection.
    pub(crate) fn plus(self, n: u32) -> Self {
        Self(self.0.saturating_add(u64::from(n)))
    }

    /// Bytes between `earlier` and here; 0 when `earlier` is later.
    pub(crate) fn since(self, earlier: Self) -> u32 {
        u32::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(u32::MAX)
    }
}

/// Size of a ring: a power of two from 16 KiB to 512 MiB, kept as its binary logarithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RingSize(u8);

impl RingSize {
    /// Logarithm of the smallest size the wire format can name.
    const MIN_ORDER: u8 = 14;
    /// Logarithm of the largest size the wire format can name.
    const MAX_ORDER: u8 = 29;

    /// The size of `bytes` bytes, if it is one a ring can have.
    pub(crate) fn new(bytes: u32) -> Option<Self> {
        if !bytes.is_power_of_two() {
            return None;
        }
        let order = u8::try_from(bytes.trailing_zeros()).ok()?;
        (Self::MIN_ORDER..=Self::MAX_ORDER)
            .contains(&order)
            .then_some(Self(order))
    }

    /// Bytes in the ring.
    pub(crate) const fn bytes(self) -> u32 {
        // The order is at most MAX_ORDER by construction, so the shift is in range.
        1 << self.0
    }

    /// Where in the ring a position lies.
    pub(crate) fn offset(self, pos: Pos) -> u32 {
        let mask = u64::from(self.bytes().wrapping_sub(1));
        u32::try_from(pos.0 & mask).unwrap_or(0)
    }

    /// How often the ring was filled completely before a position, modulo 2^16.
    pub(crate) fn wraps(self, pos: Pos) -> u16 {
        u16::try_from((pos.0 >> self.0) & u64::from(u16::MAX)).unwrap_or(0)
    }

    /// The pieces of the ring that hold `len` bytes from `pos` on; `len` is cut to the ring.
    pub(crate) fn span(self, pos: Pos, len: u32) -> Segments {
        let len = len.min(self.bytes());
        let offset = self.offset(pos);
        let first = len.min(self.bytes().saturating_sub(offset));
        Segments([
            Segment { offset, len: first },
            Segment {
                offset: 0,
                len: len.saturating_sub(first),
            },
        ])
    }
}

/// A contiguous piece of a ring: `offset + len` is within the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Segment {
    /// Distance from the start of the ring.
    pub(crate) offset: u32,
    /// Bytes in the piece.
    pub(crate) len: u32,
}

/// Up to two pieces of a ring, in stream order; the second one begins at offset 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Segments([Segment; 2]);

impl Segments {
    /// Bytes in all pieces together.
    pub(crate) fn len(&self) -> usize {
        let [a, b] = self.0;
        // Together they fit the ring, whose size is far below 2^32.
        usize::try_from(a.len.saturating_add(b.len)).unwrap_or(usize::MAX)
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces that are not empty, in stream order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Segment> {
        self.0.into_iter().filter(|s| s.len > 0)
    }
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_ring))]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(RingSize::new(0), None);
        assert_eq!(RingSize::new(8 << 10), None);
        assert_eq!(RingSize::new((16 << 10) + 1), None);
        assert_eq!(RingSize::new(48 << 10), None);
        assert_eq!(RingSize::new(1 << 30), None);
        assert_eq!(RingSize::new(16 << 10).map(RingSize::bytes), Some(16 << 10));
        assert_eq!(
            RingSize::new(512 << 20).map(RingSize::bytes),
            Some(512 << 20)
        );
    }

    #[test]
    fn positions() {
        assert_eq!(Pos::new(5).since(Pos::new(3)), 2);
        assert_eq!(Pos::new(3).since(Pos::new(5)), 0);
        assert_eq!(Pos::new(u64::MAX).since(Pos::START), u32::MAX);
        assert_eq!(Pos::new(u64::MAX).plus(9), Pos::new(u64::MAX));
    }

    #[test]
    fn places() {
        let ring = RingSize(14);
        assert_eq!(ring.offset(Pos::new(16384)), 0);
        assert_eq!(ring.offset(Pos::new(16383)), 16383);
        assert_eq!(ring.wraps(Pos::new(16383)), 0);
        assert_eq!(ring.wraps(Pos::new(16384)), 1);
        assert_eq!(ring.wraps(Pos::new(16384 * 65536)), 0);
        assert_eq!(ring.wraps(Pos::new(16384 * 65537)), 1);
    }

    #[test]
    fn spans() {
        let ring = RingSize(14);
        let one = ring.span(Pos::new(10), 20);
        assert_eq!(one.len(), 20);
        assert_eq!(one.iter().count(), 1);
        assert_eq!(
            one.iter().next(),
            Some(Segment {
                offset: 10,
                len: 20
            })
        );

        let two = ring.span(Pos::new(16384 * 3 - 4), 9);
        let first = Segment {
            offset: 16380,
            len: 4,
        };
        assert_eq!(two.len(), 9);
        assert_eq!(two.iter().next(), Some(first));
        assert_eq!(two.iter().nth(1), Some(Segment { offset: 0, len: 5 }));

        assert!(ring.span(Pos::new(7), 0).is_empty());
        assert_eq!(ring.span(Pos::new(7), u32::MAX).len(), 16384);
    }
}
