// SPDX-License-Identifier: GPL-2.0

//! Time as the protocol core sees it: milliseconds of a monotonic clock, passed in.

/// A point in time or a duration, in milliseconds of a monotonic clock.
pub(crate) type Ms = u64;

/// A point in time at which something has to happen, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deadline(Option<Ms>);

impl Deadline {
    /// No deadline.
    pub(crate) const NONE: Self = Self(None);

    /// A deadline `delay` after `now`.
    pub(crate) fn after(now: Ms, delay: Ms) -> Self {
        Self(Some(now.saturating_add(delay)))
    }

    /// A deadline at `at`.
    pub(crate) fn at(at: Ms) -> Self {
        Self(Some(at))
    }

    /// When it is, for a timer.
    pub(crate) fn get(self) -> Option<Ms> {
        self.0
    }

    /// Whether the deadline has come.
    pub(crate) fn expired(self, now: Ms) -> bool {
        self.0.is_some_and(|at| now >= at)
    }

    /// The earlier of two deadlines.
    pub(crate) fn earlier(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(a), Some(b)) => Self(Some(a.min(b))),
            (a, b) => Self(a.or(b)),
        }
    }
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_time))]
mod tests {
    use super::*;

    #[test]
    fn deadline_expires_at_its_time() {
        let d = Deadline::after(10, 5);
        assert!(!d.expired(14));
        assert!(d.expired(15));
        assert!(!Deadline::NONE.expired(u64::MAX));
        assert_eq!(Deadline::after(u64::MAX, 5).get(), Some(u64::MAX));
    }

    #[test]
    fn earlier_of_two() {
        assert_eq!(Deadline::at(3).earlier(Deadline::at(2)).get(), Some(2));
        assert_eq!(Deadline::NONE.earlier(Deadline::at(2)).get(), Some(2));
        assert_eq!(Deadline::at(3).earlier(Deadline::NONE).get(), Some(3));
        assert_eq!(Deadline::NONE.earlier(Deadline::NONE).get(), None);
    }
}
