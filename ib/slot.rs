// SPDX-License-Identifier: GPL-2.0

//! Which message slots are free.

/// A set of up to 32 slots.
pub(crate) struct Slots {
    /// Bit set: free.
    free: u32,
    /// Somebody found it empty and waits.
    wanted: bool,
}

impl Slots {
    /// `count` (at most 32) free slots starting at index 0.
    pub(crate) const fn new(count: u32) -> Self {
        let free = if count >= 32 {
            u32::MAX
        } else {
            (1 << count) - 1
        };
        Self {
            free,
            wanted: false,
        }
    }

    /// Takes the lowest free slot; if there is none, the next [`Slots::put`] will say so.
    pub(crate) fn take(&mut self) -> Option<u32> {
        if self.free == 0 {
            self.wanted = true;
            return None;
        }
        let index = self.free.trailing_zeros();
        self.free &= self.free - 1;
        Some(index)
    }

    /// Gives a slot back; true if somebody waits for one.
    #[must_use]
    pub(crate) fn put(&mut self, index: u32) -> bool {
        if let Some(bit) = 1u32.checked_shl(index) {
            self.free |= bit;
        }
        core::mem::take(&mut self.wanted)
    }
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_slot))]
mod tests {
    use super::*;

    #[test]
    fn takes_all_once() {
        let mut s = Slots::new(2);
        assert_eq!(s.take(), Some(0));
        assert_eq!(s.take(), Some(1));
        assert_eq!(s.take(), None);
    }

    #[test]
    fn wakes_only_waiters() {
        let mut s = Slots::new(2);
        assert_eq!(s.take(), Some(0));
        assert!(!s.put(0));
        assert_eq!(s.take(), Some(0));
        assert_eq!(s.take(), Some(1));
        assert_eq!(s.take(), None);
        assert!(s.put(1));
        assert!(!s.put(0));
        assert_eq!(s.take(), Some(0));
    }
}
