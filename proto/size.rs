// SPDX-License-Identifier: GPL-2.0

//! The 4-bit size code of a ring buffer (RMBE) as CLC messages carry it.

/// Size of a ring buffer: 16 KiB << code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SizeCode(u8);

impl SizeCode {
    /// The smallest size, 16 KiB.
    pub(crate) const MIN: Self = Self(0);
    /// The largest size that the code can express, 512 MiB.
    pub(crate) const MAX: Self = Self(15);

    /// The size of code 0 as a power of two: 16 KiB.
    const SHIFT: u32 = 14;

    /// Takes the code out of the upper four bits of a wire byte.
    pub(crate) fn from_high_nibble(byte: u8) -> Self {
        Self(byte >> 4)
    }

    /// The smallest code whose size is at least `bytes`; the largest code if there is none.
    pub(crate) fn from_size(bytes: usize) -> Self {
        let mut code = Self::MIN;
        while code < Self::MAX && code.bytes() < bytes {
            code = Self(code.0.saturating_add(1));
        }
        code
    }

    /// The code itself, 0 to 15.
    pub(crate) fn code(self) -> u8 {
        self.0
    }

    /// The size in bytes.
    pub(crate) fn bytes(self) -> usize {
        // At most 2^29: fits every usize that Linux has.
        1 << (Self::SHIFT.saturating_add(u32::from(self.0)))
    }

    /// The next smaller size, to be tried when memory for this one is not there.
    pub(crate) fn smaller(self) -> Option<Self> {
        self.0.checked_sub(1).map(Self)
    }
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_size))]
mod tests {
    use super::*;

    #[test]
    fn rounds_up_to_the_next_code() {
        assert_eq!(SizeCode::from_size(0).code(), 0);
        assert_eq!(SizeCode::from_size(16384).code(), 0);
        assert_eq!(SizeCode::from_size(16385).code(), 1);
        assert_eq!(SizeCode::from_size(65536).code(), 2);
        assert_eq!(SizeCode::from_size(65537).code(), 3);
        assert_eq!(SizeCode::from_size(usize::MAX).code(), 15);
    }

    #[test]
    fn sizes_are_powers_of_two() {
        assert_eq!(SizeCode::MIN.bytes(), 16384);
        assert_eq!(SizeCode::MAX.bytes(), 512 << 20);
        assert_eq!(SizeCode::from_high_nibble(0x53).bytes(), 512 << 10);
        assert_eq!(SizeCode::MIN.smaller(), None);
        assert_eq!(SizeCode::from_size(32768).smaller(), Some(SizeCode::MIN));
    }
}
