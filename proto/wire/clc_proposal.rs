// SPDX-License-Identifier: GPL-2.0

//! PROPOSAL: what the client could do (RFC 7609, A.1; SMC version 2).
//!
//! Version 2 messages offering SMC-R only are sent; all versions and offers are read.

use zerocopy::big_endian::U16;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::{
    clc::{
        check_trailer,
        read_at,
        ClcBuf,
        Header,
        Kind,
        RawHeader,
        EYECATCHER_R,
        HEADER_LEN,
        TRAILER_LEN, //
    },
    WireError,
};
use crate::proto::eid::{
    Eid,
    EidSet, //
};

/// The longest proposal that anybody can build or read.
pub(crate) const PROPOSAL_MAX: usize = 652;
/// The release of version 2 that is spoken here: v2.1.
pub(crate) const RELEASE: u8 = 1;

/// Length of header, peer id, GID, MAC, and offset of the IP area.
const FIXED_LEN: usize = 40;
/// Length of the area with the ISM GID and the offset of the v2 extension.
const ISM_AREA_LEN: usize = 40;
/// Where the offset of the v2 extension counts from.
const V2_BASE: usize = 52;
/// The largest offset of the v2 extension.
const V2_OFFSET_MAX: u16 = 172;
/// Length of the area that holds the number of IPv6 prefixes.
const PREFIX_AREA_LEN: usize = 8;
/// Length of an IPv6 prefix.
const V6_PREFIX_LEN: usize = 17;
/// The most IPv6 prefixes.
const V6_PREFIX_MAX: u8 = 8;
/// Length of the v2 extension without EIDs.
const V2_EXT_LEN: usize = 40;
/// Where in the v2 extension the offset of the SMC-Dv2 extension counts from.
const DV2_BASE: usize = 8;
/// Length of the SMC-Dv2 extension without GIDs.
const DV2_EXT_LEN: usize = 48;
/// The largest offset of the SMC-Dv2 extension.
const DV2_OFFSET_MAX: u16 = 288;
/// Length of an ISM GID with its CHID.
const ISM_GID_LEN: usize = 10;
/// The most ISM GIDs.
const ISM_GID_MAX: u8 = 8;

/// What follows the header.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawBody {
    /// Sender's system id.
    peer_id: [u8; 8],
    /// RoCEv1 GID.
    gid: [u8; 16],
    /// MAC of the port.
    mac: [u8; 6],
    /// Where the IP area begins, from the end of this field.
    iparea_offset: U16,
}

/// The ISM area of version 2 (and of SMC-Dv1).
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawIsmArea {
    /// GID and CHID of an ISM device.
    ism: [u8; 10],
    /// Where the v2 extension begins, from the end of this field.
    v2_ext_offset: U16,
    /// Vendor id and options, reserved.
    reserved: [u8; 28],
}

/// The begin of the IP area of version 1.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawPrefixArea {
    /// IPv4 subnet.
    subnet: [u8; 4],
    /// Length of the IPv4 prefix.
    prefix_len: u8,
    /// Reserved.
    reserved: [u8; 2],
    /// How many IPv6 prefixes follow.
    v6_prefixes: u8,
}

/// The extension of version 2.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawV2Ext {
    /// How many EIDs follow.
    eid_count: u8,
    /// How many ISM GIDs the SMC-Dv2 extension has.
    ism_gid_count: u8,
    /// Reserved.
    reserved1: u8,
    /// Bits 7-4 release, bit 0 SEID valid.
    release: u8,
    /// Reserved.
    reserved2: [u8; 2],
    /// Where the SMC-Dv2 extension begins, from the end of this field.
    dv2_offset: U16,
    /// RoCEv2 GID of the client.
    gid: [u8; 16],
    /// The most connections in a link group.
    max_conns: u8,
    /// The most links in a link group.
    max_links: u8,
    /// Features.
    features: U16,
    /// Reserved.
    reserved3: [u8; 12],
}

/// Which of the two kinds of SMC a version is offered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// SMC-R.
    R,
    /// SMC-D.
    D,
    /// Neither.
    Neither,
    /// Both.
    Both,
}

impl Offer {
    /// From the two bits in the header.
    fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::R,
            1 => Self::D,
            2 => Self::Neither,
            _ => Self::Both,
        }
    }

    /// As the two bits in the header.
    fn bits(self) -> u8 {
        match self {
            Self::R => 0,
            Self::D => 1,
            Self::Neither => 2,
            Self::Both => 3,
        }
    }

    /// Whether SMC-R is offered.
    pub(crate) fn has_r(self) -> bool {
        matches!(self, Self::R | Self::Both)
    }

    /// Whether SMC-D is offered.
    pub(crate) fn has_d(self) -> bool {
        matches!(self, Self::D | Self::Both)
    }

    /// Whether anything is offered.
    pub(crate) fn any(self) -> bool {
        self != Self::Neither
    }
}

/// A PROPOSAL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    /// Protocol version, 1 or 2.
    pub(crate) version: u8,
    /// What is offered of version 1.
    pub(crate) v1: Offer,
    /// What is offered of version 2.
    pub(crate) v2: Offer,
    /// The client's system id; other implementations leave it zero without an offer of SMC-Rv1.
    pub(crate) peer_id: [u8; 8],
    /// RoCEv1 GID of the client; zero without an offer of SMC-Rv1.
    pub(crate) gid_v1: [u8; 16],
    /// MAC of the client's port; other implementations leave it zero like `peer_id`.
    pub(crate) mac: [u8; 6],
    /// RoCEv2 GID of the client.
    pub(crate) gid_v2: [u8; 16],
    /// The client's EIDs.
    pub(crate) eids: EidSet,
    /// Release of version 2: 0 is v2.0, 1 is v2.1; may be more.
    pub(crate) release: u8,
    /// The most connections that the client wants in a link group (v2.1).
    pub(crate) max_conns: u8,
    /// The most links that the client wants in a link group (v2.1).
    pub(crate) max_links: u8,
    /// Features of the client.
    pub(crate) features: u16,
}

impl Proposal {
    /// A proposal to send: SMC-Rv2 only, release v2.1.
    pub(crate) fn new(
        peer_id: [u8; 8],
        gid: [u8; 16],
        mac: [u8; 6],
        eids: EidSet,
        max_conns: u8,
        max_links: u8,
    ) -> Self {
        Self {
            version: 2,
            v1: Offer::Neither,
            v2: Offer::R,
            peer_id,
            gid_v1: [0; 16],
            mac,
            gid_v2: gid,
            eids,
            release: RELEASE,
            max_conns,
            max_links,
            features: 0,
        }
    }

    /// Reads a whole message.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let (header, msg) = Header::parse_whole(bytes, &[Kind::Proposal])?;
        let body: RawBody = read_at(msg, HEADER_LEN).ok_or(WireError::ProposalLength)?;
        let version = header.version.min(2);
        let v1 = Offer::from_bits(header.typev1);
        let mut proposal = Self {
            version,
            v1,
            v2: Offer::Neither,
            peer_id: body.peer_id,
            gid_v1: body.gid,
            mac: body.mac,
            gid_v2: [0; 16],
            eids: EidSet::new(),
            release: 0,
            max_conns: 0,
            max_links: 0,
            features: 0,
        };
        let prefixes = prefix_area(msg, v1, body.iparea_offset.get())?;
        if version == 1 {
            if !v1.any() {
                return Err(WireError::V1NoOffer);
            }
            let length = sum(&[
                FIXED_LEN,
                usize::from(body.iparea_offset.get()),
                prefixes,
                TRAILER_LEN,
            ]);
            if header.length != length {
                return Err(WireError::ProposalLength);
            }
        } else {
            proposal.v2 = Offer::from_bits(header.typev2);
            let extension = proposal.parse_v2(msg)?;
            let length = sum(&[FIXED_LEN, ISM_AREA_LEN, prefixes, extension, TRAILER_LEN]);
            if header.length != length {
                return Err(WireError::ProposalLength);
            }
        }
        check_trailer(msg)?;
        Ok(proposal)
    }

    /// Reads what version 2 adds; gives the length of the extensions.
    fn parse_v2(&mut self, msg: &[u8]) -> Result<usize, WireError> {
        let area: RawIsmArea = read_at(msg, FIXED_LEN).ok_or(WireError::ProposalLength)?;
        if !self.v2.any() {
            return Ok(0);
        }
        let offset = area.v2_ext_offset.get();
        if offset == 0 || offset > V2_OFFSET_MAX {
            return Err(WireError::V2ExtOffset);
        }
        let at = sum(&[V2_BASE, usize::from(offset)]);
        let ext: RawV2Ext = read_at(msg, at).ok_or(WireError::V2ExtOffset)?;
        if usize::from(ext.eid_count) > EidSet::MAX {
            return Err(WireError::EidCount);
        }
        let eids = at.saturating_add(V2_EXT_LEN);
        for i in 0..usize::from(ext.eid_count) {
            let eid = eids.saturating_add(i.saturating_mul(Eid::LEN));
            self.eids
                .push(Eid(read_at(msg, eid).ok_or(WireError::ProposalLength)?));
        }
        self.gid_v2 = ext.gid;
        self.release = ext.release >> 4;
        self.max_conns = ext.max_conns;
        self.max_links = ext.max_links;
        self.features = ext.features.get();
        let length = V2_EXT_LEN.saturating_add(usize::from(ext.eid_count).saturating_mul(Eid::LEN));
        if !self.v2.has_d() {
            return Ok(length);
        }
        if ext.ism_gid_count > ISM_GID_MAX {
            return Err(WireError::IsmGidCount);
        }
        let dv2 = usize::from(ext.dv2_offset.get());
        let end = sum(&[at, DV2_BASE, dv2, DV2_EXT_LEN]);
        if !(1..=DV2_OFFSET_MAX).contains(&ext.dv2_offset.get()) || end > msg.len() {
            return Err(WireError::DV2ExtOffset);
        }
        let gids = usize::from(ext.ism_gid_count).saturating_mul(ISM_GID_LEN);
        Ok(sum(&[length, DV2_EXT_LEN, gids]))
    }

    /// Writes the message; only what [`Proposal::new`] builds can be told.
    pub(crate) fn emit(&self, buf: &mut ClcBuf) {
        let eids = usize::from(self.eids.len()).saturating_mul(Eid::LEN);
        let length = sum(&[FIXED_LEN, ISM_AREA_LEN, V2_EXT_LEN, eids, TRAILER_LEN]);
        // 380 at most.
        let length = u16::try_from(length).unwrap_or(u16::MAX);
        buf.clear();
        buf.put(&RawHeader::new(
            Kind::Proposal,
            length,
            2,
            Offer::Neither.bits(),
            Offer::R.bits(),
        ));
        buf.put(&RawBody {
            peer_id: self.peer_id,
            gid: [0; 16],
            mac: self.mac,
            iparea_offset: U16::ZERO,
        });
        buf.put(&RawIsmArea {
            ism: [0; 10],
            v2_ext_offset: U16::new(28),
            reserved: [0; 28],
        });
        buf.put(&RawV2Ext {
            eid_count: self.eids.len(),
            ism_gid_count: 0,
            reserved1: 0,
            release: self.release << 4,
            reserved2: [0; 2],
            dv2_offset: U16::ZERO,
            gid: self.gid_v2,
            max_conns: self.max_conns,
            max_links: self.max_links,
            features: U16::new(self.features),
            reserved3: [0; 12],
        });
        for eid in self.eids.iter() {
            buf.push(&eid.0);
        }
        buf.push(&EYECATCHER_R);
    }
}

/// Checks the IP area; gives its length, which is 0 if version 1 is not offered.
fn prefix_area(msg: &[u8], v1: Offer, offset: u16) -> Result<usize, WireError> {
    let offset = usize::from(offset);
    if offset > ISM_AREA_LEN {
        return Err(WireError::IpAreaOffset);
    }
    if !v1.any() {
        return Ok(0);
    }
    if v1.has_d() && offset != ISM_AREA_LEN {
        return Err(WireError::IpAreaNoIsm);
    }
    let area: RawPrefixArea =
        read_at(msg, FIXED_LEN.saturating_add(offset)).ok_or(WireError::ProposalLength)?;
    if area.v6_prefixes > V6_PREFIX_MAX {
        return Err(WireError::V6Prefixes);
    }
    let prefixes = usize::from(area.v6_prefixes).saturating_mul(V6_PREFIX_LEN);
    Ok(PREFIX_AREA_LEN.saturating_add(prefixes))
}

/// The sum of a few lengths.
fn sum(parts: &[usize]) -> usize {
    parts.iter().fold(0, |sum, part| sum.saturating_add(*part))
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_clc_proposal))]
mod tests {
    use super::*;

    /// SMC-Rv2 only with one EID: 156 bytes.
    #[rustfmt::skip]
    const V2_ONLY: [u8; 156] = [
        0xe2, 0xd4, 0xc3, 0xd9, 1, 0, 156, 0x22,
        0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0x02, 0x22, 0x23, 0x24, 0x25, 0x26,
        0, 0,
        // 40: ISM area
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 28,
        0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        // 80: v2 extension
        1, 0, 0, 0x10, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3,
        32, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        // 120: EID
        b'S', b'M', b'C', b'-', b'R', b'S', b'-', b'D', b'E', b'F', b'A', b'U', b'L', b'T', b' ', b' ',
        b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ',
        0xe2, 0xd4, 0xc3, 0xd9,
    ];

    /// Version 1 as RFC 7609 has it: 52 bytes, IPv4 only, no ISM area.
    #[rustfmt::skip]
    const V1: [u8; 52] = [
        0xe2, 0xd4, 0xc3, 0xd9, 1, 0, 52, 0x10,
        0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
        0x02, 0x22, 0x23, 0x24, 0x25, 0x26,
        0, 0,
        10, 1, 2, 0, 24, 0, 0, 0,
        0xe2, 0xd4, 0xc3, 0xd9,
    ];

    /// Everything at once: both versions, R and D, one IPv6 prefix, one EID, one ISM GID.
    const ALL_LEN: usize = 40 + 40 + 8 + 17 + 40 + 32 + 48 + 10 + 4;

    /// Builds that proposal.
    #[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)]
    const fn all() -> [u8; ALL_LEN] {
        let mut m = [0; ALL_LEN];
        let mut i = 0;
        while i < 8 {
            m[i] = V2_ONLY[i];
            i += 1;
        }
        m[6] = 239;
        m[7] = 0x2f;
        m[39] = 40;
        m[51] = 28 + 8 + 17;
        m[87] = 1;
        // The v2 extension at 105.
        m[105] = 1;
        m[106] = 1;
        m[108] = 0x31;
        m[112] = 64;
        let mut i = 0;
        while i < 16 {
            m[113 + i] = 0x70;
            i += 1;
        }
        m[129] = 16;
        m[130] = 1;
        m[132] = 1;
        m[145] = b'X';
        (m[235], m[236], m[237], m[238]) = (0xe2, 0xd4, 0xc3, 0xd9);
        m
    }

    /// The proposal that `V2_ONLY` is.
    fn v2_only() -> Proposal {
        let mut eids = EidSet::new();
        eids.push(Eid::DEFAULT);
        Proposal::new(
            [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3],
            [2, 0x22, 0x23, 0x24, 0x25, 0x26],
            eids,
            32,
            2,
        )
    }

    /// What is wrong with a message if these bytes are changed.
    fn broken<const N: usize>(mut msg: [u8; N], changes: &[(usize, u8)]) -> Option<WireError> {
        for &(at, value) in changes {
            if let Some(byte) = msg.get_mut(at) {
                *byte = value;
            }
        }
        Proposal::parse(&msg).err()
    }

    #[test]
    fn v2_only_to_the_byte() -> Result<(), WireError> {
        let mut buf = ClcBuf::new();
        v2_only().emit(&mut buf);
        assert_eq!(buf.as_slice(), &V2_ONLY[..]);
        assert_eq!(Proposal::parse(&V2_ONLY)?, v2_only());
        Ok(())
    }

    #[test]
    fn eight_eids_fit() -> Result<(), WireError> {
        let mut proposal = v2_only();
        for i in 0..8 {
            proposal.eids.push(Eid([b'A'.saturating_add(i); 32]));
        }
        let mut buf = ClcBuf::new();
        proposal.emit(&mut buf);
        assert_eq!(buf.as_slice().len(), 380);
        assert_eq!(Proposal::parse(buf.as_slice())?, proposal);
        Ok(())
    }

    #[test]
    fn reads_version_1() -> Result<(), WireError> {
        let p = Proposal::parse(&V1)?;
        assert_eq!((p.version, p.v1, p.v2), (1, Offer::R, Offer::Neither));
        assert_eq!(p.gid_v1[15], 1);
        assert!(p.eids.is_empty());
        Ok(())
    }

    #[test]
    fn reads_everything_at_once() -> Result<(), WireError> {
        let p = Proposal::parse(&all())?;
        assert_eq!((p.version, p.v1, p.v2), (2, Offer::Both, Offer::Both));
        assert_eq!((p.release, p.max_conns, p.max_links), (3, 16, 1));
        assert_eq!((p.gid_v2, p.features), ([0x70; 16], 1));
        assert_eq!(p.eids.len(), 1);
        assert_eq!((p.peer_id, p.mac), ([0; 8], [0; 6]));
        // No version above 2 is known; it is read as 2.
        assert_eq!(broken(all(), &[(7, 0xff)]), None);
        // SMC-D's eyecatcher is as good.
        assert_eq!(broken(all(), &[(3, 0xc4), (238, 0xc4)]), None);
        Ok(())
    }

    #[test]
    fn offers_neither() {
        // 84 bytes: version 2 without any offer is valid but useless.
        let mut m = [0; 84];
        m[..8].copy_from_slice(&[0xe2, 0xd4, 0xc3, 0xd9, 1, 0, 84, 0x2a]);
        m[80..].copy_from_slice(&EYECATCHER_R);
        assert!(Proposal::parse(&m).is_ok_and(|p| !p.v1.any() && !p.v2.any()));
        // One byte more.
        assert_eq!(
            broken(V2_ONLY, &[(7, 0x2a)]),
            Some(WireError::ProposalLength)
        );
    }

    #[test]
    fn each_broken_rule_has_its_error() {
        use WireError::*;
        let all = all();
        assert_eq!(broken(V1, &[(39, 41)]), Some(IpAreaOffset));
        assert_eq!(broken(all, &[(39, 41)]), Some(IpAreaOffset));
        assert_eq!(broken(V1, &[(38, 255)]), Some(IpAreaOffset));
        assert_eq!(broken(V1, &[(47, 9)]), Some(V6Prefixes));
        assert_eq!(broken(all, &[(87, 9)]), Some(V6Prefixes));
        assert_eq!(broken(V1, &[(7, 0x12)]), Some(V1NoOffer));
        assert_eq!(broken(V1, &[(47, 1)]), Some(ProposalLength));
        assert_eq!(broken(V1, &[(39, 40)]), Some(ProposalLength));
        assert_eq!(broken(V1, &[(7, 0x11)]), Some(IpAreaNoIsm));
        assert_eq!(broken(all, &[(39, 39)]), Some(IpAreaNoIsm));
        assert_eq!(broken(all, &[(87, 2)]), Some(ProposalLength));
        assert_eq!(broken(V2_ONLY, &[(51, 0)]), Some(V2ExtOffset));
        assert_eq!(broken(V2_ONLY, &[(51, 173)]), Some(V2ExtOffset));
        assert_eq!(broken(V2_ONLY, &[(50, 255)]), Some(V2ExtOffset));
        assert_eq!(broken(V2_ONLY, &[(51, 65)]), Some(V2ExtOffset));
        assert_eq!(broken(V2_ONLY, &[(80, 9)]), Some(EidCount));
        assert_eq!(broken(V2_ONLY, &[(80, 0)]), Some(ProposalLength));
        assert_eq!(broken(V2_ONLY, &[(80, 2)]), Some(ProposalLength));
        assert_eq!(broken(all, &[(106, 9)]), Some(IsmGidCount));
        assert_eq!(broken(all, &[(106, 2)]), Some(ProposalLength));
        assert_eq!(broken(all, &[(112, 0)]), Some(DV2ExtOffset));
        assert_eq!(broken(all, &[(111, 1), (112, 33)]), Some(DV2ExtOffset));
        assert_eq!(broken(all, &[(111, 1), (112, 32)]), Some(DV2ExtOffset));
        assert_eq!(broken(V2_ONLY, &[(152, 0)]), Some(TailEyecatcher));
        assert_eq!(broken(V1, &[(51, 0)]), Some(TailEyecatcher));
        assert_eq!(broken(V1, &[(0, 0)]), Some(HeadEyecatcher));
        assert_eq!(broken(V1, &[(4, 2)]), Some(Unexpected));
        assert_eq!(broken(V1, &[(6, 53)]), Some(Truncated));
        assert_eq!(broken(V1, &[(6, 51)]), Some(Length));
        assert_eq!(broken(V1, &[(5, 2), (6, 141)]), Some(Length));
        assert_eq!(broken(V1, &[(5, 2), (6, 140)]), Some(Truncated));
        assert_eq!(broken(V1, &[(5, 255), (6, 255)]), Some(Length));
    }
}
