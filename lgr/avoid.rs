// SPDX-License-Identifier: GPL-2.0

//! Pairs of GIDs between which a link could not be confirmed lately.
//!
//! Where RoCE traffic is filtered each first contact costs seconds before it falls back; the next
//! connections between the same ports don't try for a while. A full table forgets the oldest.

use crate::ext::{
    static_mutex::StaticMutex,
    timer, //
};
use kernel::static_lock_class;

/// How long a pair is left alone.
const AVOID_MS: u64 = 60_000;
/// How many pairs are remembered.
const PAIRS: usize = 32;

/// The local and the peer's GID.
type Pair = ([u8; 16], [u8; 16]);

/// The pairs, and until when they are left alone.
struct Avoided([Option<(Pair, u64)>; PAIRS]);

impl Avoided {
    /// Remembers a pair.
    fn note(&mut self, pair: Pair, until: u64) {
        self.forget(pair);
        let oldest = |place: &Option<(Pair, u64)>| place.map_or(0, |(_, until)| until);
        if let Some(place) = self.0.iter_mut().min_by_key(|place| oldest(place)) {
            *place = Some((pair, until));
        }
    }

    /// Forgets a pair.
    fn forget(&mut self, pair: Pair) {
        for place in &mut self.0 {
            if place.is_some_and(|(p, _)| p == pair) {
                *place = None;
            }
        }
    }

    /// Whether a pair is to be left alone.
    fn has(&self, pair: Pair, now: u64) -> bool {
        let mut entries = self.0.iter().flatten();
        entries.any(|(p, until)| *p == pair && *until > now)
    }
}

/// The module's table.
static AVOIDED: StaticMutex<Avoided> = StaticMutex::new(
    Avoided([None; PAIRS]),
    c"smc_rs_avoided",
    static_lock_class!(),
);

/// A link between these GIDs could not be confirmed. May sleep.
pub(crate) fn note(local: [u8; 16], peer: [u8; 16]) {
    let until = timer::now_ms() + AVOID_MS;
    AVOIDED.lock().note((local, peer), until);
}

/// A link between these GIDs works. May sleep.
pub(crate) fn forget(local: [u8; 16], peer: [u8; 16]) {
    AVOIDED.lock().forget((local, peer));
}

/// Whether to leave these GIDs alone. May sleep.
pub(crate) fn is_avoided(local: [u8; 16], peer: [u8; 16]) -> bool {
    AVOIDED.lock().has((local, peer), timer::now_ms())
}

#[cfg(smc_rs_kunit)]
#[kernel::macros::kunit_tests(smc_rs_avoid)]
mod tests {
    use super::*;

    /// A pair that ends in `n`.
    fn pair(n: u8) -> Pair {
        ([1; 16], [n; 16])
    }

    #[test]
    fn remembers_for_a_while() {
        let mut table = Avoided([None; PAIRS]);
        table.note(pair(1), 100);
        assert!(table.has(pair(1), 99));
        assert!(!table.has(pair(1), 100));
        assert!(!table.has(pair(2), 50));
        table.forget(pair(1));
        assert!(!table.has(pair(1), 50));
    }

    #[test]
    fn a_full_table_forgets_the_oldest() {
        let mut table = Avoided([None; PAIRS]);
        for n in 0..=32u8 {
            table.note(pair(n), 100 + u64::from(n));
        }
        assert!(!table.has(pair(0), 50));
        assert!(table.has(pair(1), 50));
        assert!(table.has(pair(32), 50));
    }
}
