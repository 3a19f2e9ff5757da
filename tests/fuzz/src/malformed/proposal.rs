// SPDX-License-Identifier: GPL-2.0

//! PROPOSALs of all versions and offers, built by hand, and what can be wrong in them.

use super::{
    with,
    with_two,
    Broken, //
};
use crate::proto::wire::{
    clc_proposal::{
        Offer,
        Proposal, //
    },
    WireError,
};
use std::ops::Range;

/// What a PROPOSAL is made of. Offers are numbered as on the wire.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    version: u8,
    v1: u8,
    v2: u8,
    prefixes: u8,
    eids: u8,
    ism_gids: u8,
}

/// "SMCR" in EBCDIC.
const EYECATCHER: [u8; 4] = [0xe2, 0xd4, 0xc3, 0xd9];

impl Parts {
    /// One of each kind.
    pub(super) fn all() -> Vec<Self> {
        let v2 = Self {
            version: 2,
            v1: 2,
            v2: 0,
            prefixes: 0,
            eids: 1,
            ism_gids: 0,
        };
        let v1 = Self {
            version: 1,
            v1: 0,
            ..v2
        };
        vec![
            v2,
            Self { eids: 0, ..v2 },
            Self { eids: 8, ..v2 },
            Self { version: 7, ..v2 },
            // Nothing of version 2.
            Self { v2: 2, ..v2 },
            // SMC-Dv2 too.
            Self {
                v2: 3,
                ism_gids: 8,
                ..v2
            },
            Self { v2: 1, ..v2 },
            // Both versions, with all prefixes.
            Self {
                v1: 3,
                prefixes: 8,
                ..v2
            },
            Self {
                v1: 3,
                v2: 3,
                prefixes: 8,
                eids: 8,
                ism_gids: 8,
                ..v2
            },
            v1,
            Self { prefixes: 8, ..v1 },
            Self { v1: 1, ..v1 },
            Self {
                v1: 3,
                prefixes: 1,
                ..v1
            },
        ]
    }

    /// Whether the area with the ISM GID is there.
    fn ism_area(&self) -> bool {
        self.version > 1 || self.v1 & 1 != 0
    }

    /// Length of the IP area.
    fn ip_area(&self) -> usize {
        if self.v1 == 2 {
            0
        } else {
            8 + 17 * usize::from(self.prefixes)
        }
    }

    /// Where the v2 extension begins.
    fn extension(&self) -> usize {
        80 + self.ip_area()
    }

    /// Whether there is one.
    fn extended(&self) -> bool {
        self.version > 1 && self.v2 != 2
    }

    /// The message.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut msg = EYECATCHER.to_vec();
        msg.extend([1, 0, 0, (self.version << 4) | (self.v2 << 2) | self.v1]);
        if self.version == 1 {
            msg[7] &= 0xf3;
        }
        msg.extend([1; 8]);
        msg.extend([2; 16]);
        msg.extend([3; 6]);
        msg.extend([0, if self.ism_area() { 40 } else { 0 }]);
        if self.ism_area() {
            let mut area = [0; 40];
            area[11] = u8::try_from(self.extension() - 52).expect("small");
            msg.extend(area);
        }
        if self.v1 != 2 {
            msg.extend([10, 0, 0, 0, 8, 0, 0, self.prefixes]);
            msg.extend(vec![4; 17 * usize::from(self.prefixes)]);
        }
        if self.extended() {
            let mut ext = [0; 40];
            (ext[0], ext[1], ext[3]) = (self.eids, self.ism_gids, 0x10);
            let dv2 = 32 + 32 * u16::from(self.eids);
            ext[6..8].copy_from_slice(&dv2.to_be_bytes());
            ext[8..24].copy_from_slice(&[5; 16]);
            (ext[24], ext[25]) = (32, 2);
            msg.extend(ext);
            for i in 0..self.eids {
                msg.extend([b'A' + i; 32]);
            }
            if self.v2 & 1 != 0 {
                msg.extend(vec![6; 48 + 10 * usize::from(self.ism_gids)]);
            }
        }
        msg.extend(EYECATCHER);
        let length = u16::try_from(msg.len()).expect("short");
        msg[5..7].copy_from_slice(&length.to_be_bytes());
        msg
    }

    /// Bytes that mean nothing to us.
    pub(super) fn reserved(&self) -> Vec<Range<usize>> {
        let mut all = Vec::new();
        if self.ism_area() {
            all.extend([40..50, 52..80]);
        }
        if !self.extended() && self.version > 1 {
            all.push(50..52);
        }
        if self.v1 != 2 {
            let area = if self.ism_area() { 80 } else { 40 };
            all.extend([area..area + 7, area + 8..area + self.ip_area()]);
        }
        if self.extended() {
            let at = self.extension();
            all.extend([at + 2..at + 3, at + 4..at + 6, at + 28..at + 40]);
            if self.v2 & 1 == 0 {
                all.extend([at + 1..at + 2, at + 6..at + 8]);
            } else {
                let dv2 = at + 40 + 32 * usize::from(self.eids);
                all.push(dv2..dv2 + 48 + 10 * usize::from(self.ism_gids));
            }
        }
        all
    }

    /// Bits that mean nothing to us: those beside the release.
    pub(super) fn bits(&self) -> Vec<(usize, u8)> {
        let mut all = Vec::new();
        if self.extended() {
            all.push((self.extension() + 3, 0x0f));
        }
        if self.version == 1 {
            all.push((7, 0x0c));
        }
        all
    }
}

/// Every count and offset with every value.
pub(super) fn fields(broken: &mut Broken) {
    for parts in Parts::all() {
        let bytes = parts.bytes();
        let want = Proposal::parse(&bytes).expect("a good message");
        let mut parse = |bytes: &[u8]| {
            let result = Proposal::parse(bytes);
            broken.note(&result);
            result
        };
        check_read(&parts, &want);
        for offset in 0..=u16::MAX {
            let result = parse(&with_two(&bytes, 38, offset));
            // What it is, or (without an IP area) one that nobody follows.
            if offset > 40 {
                assert_eq!(result, Err(WireError::IpAreaOffset));
            } else if parts.version == 1 || parts.v1 & 1 != 0 {
                assert_eq!(result.is_ok(), bytes[39] == offset as u8);
            }
        }
        if parts.extended() {
            extension(&parts, &bytes, &want, &mut parse);
        }
        if parts.v1 != 2 {
            let at = if parts.ism_area() { 87 } else { 47 };
            for count in 0..=255 {
                let result = parse(&with(&bytes, at, count));
                assert_eq!(result.is_ok(), count == parts.prefixes);
                assert!(count <= 8 || result == Err(WireError::V6Prefixes));
            }
        }
        // Neither version of anything.
        if parts.version == 1 {
            let result = parse(&with(&bytes, 7, 0x12));
            assert_eq!(result, Err(WireError::V1NoOffer));
        }
    }
}

/// Offsets and counts of the v2 extension.
fn extension(
    parts: &Parts,
    bytes: &[u8],
    want: &Proposal,
    parse: &mut impl FnMut(&[u8]) -> Result<Proposal, WireError>,
) {
    let at = parts.extension();
    for offset in 0..=u16::MAX {
        let result = parse(&with_two(bytes, 50, offset));
        if usize::from(offset) == at - 52 {
            assert_eq!(result.as_ref(), Ok(want));
        } else if offset == 0 || offset > 172 {
            assert_eq!(result, Err(WireError::V2ExtOffset));
        }
        if parts.v2 & 1 != 0 {
            let result = parse(&with_two(bytes, at + 6, offset));
            let fits = usize::from(offset) + at + 56 <= bytes.len();
            let fits = fits && (1..=288).contains(&offset);
            assert_eq!(result.as_ref() == Ok(want), fits);
            assert!(fits || result == Err(WireError::DV2ExtOffset));
        }
    }
    for count in 0..=255 {
        let result = parse(&with(bytes, at, count));
        assert_eq!(result.as_ref() == Ok(want), count == parts.eids);
        assert!(count <= 8 || result == Err(WireError::EidCount));
        if parts.v2 & 1 != 0 {
            let result = parse(&with(bytes, at + 1, count));
            assert_eq!(result.as_ref() == Ok(want), count == parts.ism_gids);
            assert!(count <= 8 || result == Err(WireError::IsmGidCount));
        }
    }
}

/// What is read of a message is what it was made of.
fn check_read(parts: &Parts, read: &Proposal) {
    let offer = |bits| [Offer::R, Offer::D, Offer::Neither, Offer::Both][usize::from(bits)];
    assert_eq!(read.version, parts.version.min(2));
    assert_eq!(read.v1, offer(parts.v1));
    if parts.version > 1 {
        assert_eq!(read.v2, offer(parts.v2));
    } else {
        assert_eq!(read.v2, Offer::Neither);
    }
    assert_eq!(
        (read.peer_id, read.gid_v1, read.mac),
        ([1; 8], [2; 16], [3; 6])
    );
    if parts.extended() {
        assert_eq!(read.eids.len(), parts.eids);
        assert_eq!((read.release, read.gid_v2), (1, [5; 16]));
        assert_eq!((read.max_conns, read.max_links), (32, 2));
    } else {
        assert!(read.eids.is_empty());
    }
}
