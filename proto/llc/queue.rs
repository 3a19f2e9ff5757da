// SPDX-License-Identifier: GPL-2.0

//! A queue of fixed size.

/// First in, first out; at most `N` values.
#[derive(Debug)]
pub(super) struct Queue<T, const N: usize> {
    /// The values, beginning at `head` and going round.
    slots: [Option<T>; N],
    /// Where the oldest value is.
    head: usize,
    /// How many values there are.
    len: usize,
}

impl<T: Copy, const N: usize> Queue<T, N> {
    /// An empty queue.
    pub(super) const fn new() -> Self {
        Self {
            slots: [None; N],
            head: 0,
            len: 0,
        }
    }

    /// How many values more it can take.
    pub(super) fn room(&self) -> usize {
        N.saturating_sub(self.len)
    }

    /// Adds a value; false if there is no room.
    pub(super) fn push(&mut self, value: T) -> bool {
        if self.room() == 0 {
            return false;
        }
        let at = self.head.wrapping_add(self.len).checked_rem(N);
        let Some(slot) = at.and_then(|at| self.slots.get_mut(at)) else {
            return false;
        };
        *slot = Some(value);
        self.len = self.len.saturating_add(1);
        true
    }

    /// Takes the oldest value.
    pub(super) fn pop(&mut self) -> Option<T> {
        let value = self.slots.get_mut(self.head)?.take()?;
        self.head = self.head.wrapping_add(1).checked_rem(N).unwrap_or(0);
        self.len = self.len.saturating_sub(1);
        Some(value)
    }
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_llc_queue))]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out_going_round() {
        let mut q: Queue<u8, 3> = Queue::new();
        assert_eq!(q.pop(), None);
        for round in 0..5u8 {
            assert!(q.push(round));
            assert!(q.push(round.wrapping_add(100)));
            assert_eq!(q.room(), 1);
            assert_eq!(q.pop(), Some(round));
            assert_eq!(q.pop(), Some(round.wrapping_add(100)));
        }
        assert!(q.push(1) && q.push(2) && q.push(3));
        assert!(!q.push(4));
        assert_eq!(q.pop(), Some(1));
        assert!(q.push(4));
        assert_eq!(
            (q.pop(), q.pop(), q.pop(), q.pop()),
            (Some(2), Some(3), Some(4), None)
        );
    }
}
