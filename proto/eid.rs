// SPDX-License-Identifier: GPL-2.0

//! Enterprise ids (EIDs): what two SMC-Rv2 peers must share in order to speak SMC.

/// An enterprise id: 32 bytes of ASCII, padded with blanks.
///
/// One that came from a peer may hold anything; it is only ever compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Eid(pub(crate) [u8; Eid::LEN]);

impl Eid {
    /// Length on the wire.
    pub(crate) const LEN: usize = 32;

    /// The EID that a fresh installation has by its module parameter.
    #[cfg(any(test, fuzzing, smc_rs_kunit))]
    pub(crate) const DEFAULT: Self = Self(*b"SMC-RS-DEFAULT                  ");

    /// All blanks: no EID (SMC-Rv1 messages have none).
    pub(crate) const BLANK: Self = Self([b' '; Self::LEN]);

    /// Reads a name as an administrator writes it: `A`-`Z`, `0`-`9`, `.` and `-`, not beginning
    /// with one of the latter two, at most 32 characters; trailing blanks don't count.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::from_ascii(name.as_bytes())
    }

    /// Like [`Eid::parse`], of bytes; they may be NUL-terminated.
    pub(crate) fn from_ascii(name: &[u8]) -> Option<Self> {
        let name = name.split(|&b| b == 0).next()?.trim_ascii_end();
        let (&first, _) = name.split_first()?;
        let alnum = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit();
        if !alnum(first) || !name.iter().all(|&b| alnum(b) || b == b'.' || b == b'-') {
            return None;
        }
        let mut eid = Self::BLANK;
        eid.0.get_mut(..name.len())?.copy_from_slice(name);
        Some(eid)
    }
}

/// Up to eight EIDs in the order of preference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EidSet {
    /// The EIDs; those from `len` on are blank.
    eids: [Eid; EidSet::MAX],
    /// How many there are.
    len: u8,
}

impl EidSet {
    /// The most that a proposal may carry; peers end a connection that offers more.
    pub(crate) const MAX: usize = 8;

    /// None yet.
    pub(crate) const fn new() -> Self {
        Self {
            eids: [Eid::BLANK; Self::MAX],
            len: 0,
        }
    }

    /// Adds one at the end; false if the set is full. One that is there already is not added.
    pub(crate) fn push(&mut self, eid: Eid) -> bool {
        if self.contains(&eid) {
            return true;
        }
        match self.eids.get_mut(usize::from(self.len)) {
            Some(slot) => {
                *slot = eid;
                self.len = self.len.saturating_add(1);
                true
            }
            None => false,
        }
    }

    /// Whether the set has this one.
    pub(crate) fn contains(&self, eid: &Eid) -> bool {
        self.iter().any(|other| other == eid)
    }

    /// All, most preferred first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Eid> {
        self.eids.iter().take(usize::from(self.len))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u8 {
        self.len
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first of `self` that `known` has too: the offering side's preference rules.
    pub(crate) fn first_known(&self, known: &EidSet) -> Option<Eid> {
        self.iter().find(|eid| known.contains(eid)).copied()
    }
}

impl Default for EidSet {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_eid))]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_and_padded() {
        assert_eq!(Eid::parse("SMC-RS-DEFAULT"), Some(Eid::DEFAULT));
        assert_eq!(Eid::parse("SMC-RS-DEFAULT  "), Some(Eid::DEFAULT));
        assert_eq!(Eid::from_ascii(b"SMC-RS-DEFAULT\0x"), Some(Eid::DEFAULT));
        for bad in ["", " ", "lower", ".A", "-A", "A B", "A_B"] {
            assert_eq!(Eid::parse(bad), None);
        }
        assert!(Eid::parse("A1234567890123456789012345678901").is_some());
        assert!(Eid::parse("A12345678901234567890123456789012").is_none());
    }

    #[test]
    fn a_set_holds_eight_in_order() {
        let mut set = EidSet::new();
        assert!(set.is_empty());
        for i in 0..8u8 {
            assert!(set.push(Eid([b'A'.wrapping_add(i); 32])));
        }
        assert!(!set.push(Eid::DEFAULT));
        assert!(set.push(Eid([b'A'; 32])));
        assert_eq!(set.len(), 8);
        assert_eq!(set.iter().nth(1), Some(&Eid([b'B'; 32])));
    }

    #[test]
    fn the_offering_side_prefers() {
        let (a, b, c) = (Eid([b'A'; 32]), Eid([b'B'; 32]), Eid([b'C'; 32]));
        let mut offer = EidSet::new();
        let mut known = EidSet::new();
        assert_eq!(offer.first_known(&known), None);
        offer.push(c);
        offer.push(b);
        offer.push(a);
        known.push(a);
        known.push(b);
        assert_eq!(offer.first_known(&known), Some(b));
    }
}
