// SPDX-License-Identifier: GPL-2.0

//! ACCEPT and CONFIRM of SMC-R (RFC 7609, A.2 and A.3; SMC version 2), which are alike, and the
//! extension that they have when two hosts meet for the first time.

use zerocopy::big_endian::{
    U16,
    U32,
    U64, //
};
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
        TYPEV2_FLAG, //
    },
    WireError,
    OS_LINUX, //
};
use crate::proto::{
    eid::Eid,
    size::SizeCode, //
};

/// Length of a version 1 message.
const V1_LEN: u16 = 68;
/// Length of a version 2 message without first contact extension.
const V2_LEN: u16 = 108;
/// Where EID and the first contact extension are in version 2.
const EID_OFFSET: usize = 64;
/// Where the first contact extension is.
const FCE_OFFSET: usize = 104;
/// Length of an ACCEPT with first contact extension.
const ACCEPT_FCE_LEN: u16 = 160;
/// Length of a CONFIRM with first contact extension and one GID.
const CONFIRM_FCE_LEN: u16 = 180;

/// What follows the header.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawBody {
    /// Sender's system id.
    peer_id: [u8; 8],
    /// GID of the link.
    gid: [u8; 16],
    /// MAC of the port.
    mac: [u8; 6],
    /// Queue pair number.
    qpn: [u8; 3],
    /// Key of the ring buffer.
    rkey: U32,
    /// Index of the element in the buffer.
    rmbe_index: u8,
    /// The sender's token for the connection.
    token: U32,
    /// Bits 7-4 size code, bits 3-0 MTU.
    size_mtu: u8,
    /// Reserved.
    reserved1: u8,
    /// Address of the ring buffer.
    vaddr: U64,
    /// Reserved.
    reserved2: u8,
    /// Initial packet sequence number.
    psn: [u8; 3],
}

/// The first contact extension.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawFce {
    /// Bit 7: same subnet.
    direct: u8,
    /// Bits 7-4 type of operating system, bits 3-0 release.
    os_release: u8,
    /// Reserved.
    reserved1: [u8; 2],
    /// Host name.
    host: [u8; 32],
    /// The most connections in the link group (v2.1).
    max_conns: u8,
    /// The most links in the link group (v2.1).
    max_links: u8,
    /// Features.
    features: U16,
    /// Vendor options and reserved.
    reserved2: [u8; 12],
}

/// What two hosts tell each other when a link group begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FirstContact {
    /// The queue pairs are in the same subnet: no gateway in between.
    pub(crate) direct: bool,
    /// Type of operating system, 4 bits; 2 is Linux.
    pub(crate) os: u8,
    /// Release of version 2 that both speak, 4 bits.
    pub(crate) release: u8,
    /// Host name, padded with blanks.
    pub(crate) host: [u8; 32],
    /// The most connections in the link group; meaningless if `release` is 0.
    pub(crate) max_conns: u8,
    /// The most links in the link group; meaningless if `release` is 0.
    pub(crate) max_links: u8,
    /// Features; meaningless if `release` is 0.
    pub(crate) features: u16,
}

impl FirstContact {
    /// One to send. With release 0 the limits are not told.
    pub(crate) fn new(
        direct: bool,
        release: u8,
        host: &[u8],
        max_conns: u8,
        max_links: u8,
    ) -> Self {
        let mut name = [b' '; 32];
        let host = host.split(|&b| b == 0).next().unwrap_or_default();
        for (to, from) in name.iter_mut().zip(host) {
            *to = if from.is_ascii() { *from } else { b'?' };
        }
        let told = release != 0;
        Self {
            direct,
            os: OS_LINUX,
            release,
            host: name,
            max_conns: if told { max_conns } else { 0 },
            max_links: if told { max_links } else { 0 },
            features: 0,
        }
    }

    /// Reads it at its place in a message.
    fn parse(msg: &[u8]) -> Option<Self> {
        let raw: RawFce = read_at(msg, FCE_OFFSET)?;
        Some(Self {
            direct: raw.direct & 0x80 != 0,
            os: raw.os_release >> 4,
            release: raw.os_release & 0xf,
            host: raw.host,
            max_conns: raw.max_conns,
            max_links: raw.max_links,
            features: raw.features.get(),
        })
    }

    /// Writes it.
    fn emit(&self, buf: &mut ClcBuf) {
        buf.put(&RawFce {
            direct: if self.direct { 0x80 } else { 0 },
            os_release: (self.os << 4) | (self.release & 0xf),
            reserved1: [0; 2],
            host: self.host,
            max_conns: self.max_conns,
            max_links: self.max_links,
            features: U16::new(self.features),
            reserved2: [0; 12],
        });
    }
}

/// An ACCEPT or a CONFIRM of SMC-R.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accept {
    /// Protocol version, 1 or 2.
    pub(crate) version: u8,
    /// The connection begins a new link group.
    pub(crate) first_contact: bool,
    /// Sender's system id.
    pub(crate) peer_id: [u8; 8],
    /// GID of the sender's end of the link.
    pub(crate) gid: [u8; 16],
    /// MAC of the sender's port.
    pub(crate) mac: [u8; 6],
    /// Number of the sender's queue pair, 24 bits.
    pub(crate) qpn: u32,
    /// Key of the sender's ring buffer.
    pub(crate) rkey: u32,
    /// Index of the element in the sender's ring buffer, from 1 on.
    pub(crate) rmbe_index: u8,
    /// The sender's token for the connection.
    pub(crate) token: u32,
    /// Size of the sender's ring buffer.
    pub(crate) rmbe_size: SizeCode,
    /// MTU of the queue pair as `ib_mtu` numbers it, 4 bits: 1 to 5 if it is right.
    pub(crate) mtu: u8,
    /// Address of the sender's ring buffer.
    pub(crate) vaddr: u64,
    /// The sender's initial packet sequence number, 24 bits.
    pub(crate) psn: u32,
    /// The negotiated EID; blank in version 1.
    pub(crate) eid: Eid,
    /// The extension of first contact in version 2.
    pub(crate) fce: Option<FirstContact>,
}

impl Accept {
    /// Whether the MTU is one that exists.
    pub(crate) fn mtu_valid(&self) -> bool {
        (1..=5).contains(&self.mtu)
    }

    /// Reads a whole ACCEPT or CONFIRM. What later versions may have added is not looked at.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let (header, msg) = Header::parse_whole(bytes, &[Kind::Accept, Kind::Confirm])?;
        if header.ism || header.typev1 != 0 {
            return Err(WireError::NotSmcR);
        }
        let version = header.version.min(2);
        let first_contact = header.typev2 & TYPEV2_FLAG != 0;
        let mut eid = Eid::BLANK;
        let mut fce = None;
        if version == 1 {
            if header.length != usize::from(V1_LEN) {
                return Err(WireError::AcceptV1Length);
            }
        } else {
            if header.length < usize::from(V2_LEN) {
                return Err(WireError::AcceptV2Length);
            }
            if first_contact && header.length < usize::from(ACCEPT_FCE_LEN) {
                return Err(WireError::FirstContactLength);
            }
            eid = Eid(read_at(msg, EID_OFFSET).ok_or(WireError::AcceptV2Length)?);
            if first_contact {
                fce = Some(FirstContact::parse(msg).ok_or(WireError::FirstContactLength)?);
            }
        }
        let raw: RawBody = read_at(msg, HEADER_LEN).ok_or(WireError::AcceptV1Length)?;
        check_trailer(msg)?;
        Ok(Self {
            version,
            first_contact,
            peer_id: raw.peer_id,
            gid: raw.gid,
            mac: raw.mac,
            qpn: from_u24(raw.qpn),
            rkey: raw.rkey.get(),
            rmbe_index: raw.rmbe_index,
            token: raw.token.get(),
            rmbe_size: SizeCode::from_high_nibble(raw.size_mtu),
            mtu: raw.size_mtu & 0xf,
            vaddr: raw.vaddr.get(),
            psn: from_u24(raw.psn),
            eid,
            fce,
        })
    }

    /// Writes it as ACCEPT.
    pub(crate) fn emit_accept(&self, buf: &mut ClcBuf) {
        self.emit(Kind::Accept, buf);
    }

    /// Writes it as CONFIRM; a first contact one lists the GID of the link as the only one.
    pub(crate) fn emit_confirm(&self, buf: &mut ClcBuf) {
        self.emit(Kind::Confirm, buf);
    }

    /// Writes it.
    fn emit(&self, kind: Kind, buf: &mut ClcBuf) {
        let fce = self.fce.filter(|_| self.version != 1 && self.first_contact);
        let length = match (self.version, fce, kind) {
            (1, _, _) => V1_LEN,
            (_, None, _) => V2_LEN,
            (_, Some(_), Kind::Confirm) => CONFIRM_FCE_LEN,
            (_, Some(_), _) => ACCEPT_FCE_LEN,
        };
        let flag = if self.first_contact { TYPEV2_FLAG } else { 0 };
        buf.clear();
        buf.put(&RawHeader::new(kind, length, self.version, 0, flag));
        buf.put(&RawBody {
            peer_id: self.peer_id,
            gid: self.gid,
            mac: self.mac,
            qpn: to_u24(self.qpn),
            rkey: U32::new(self.rkey),
            rmbe_index: self.rmbe_index,
            token: U32::new(self.token),
            size_mtu: (self.rmbe_size.code() << 4) | (self.mtu & 0xf),
            reserved1: 0,
            vaddr: U64::new(self.vaddr),
            reserved2: 0,
            psn: to_u24(self.psn),
        });
        if self.version != 1 {
            buf.push(&self.eid.0);
            buf.push(&[0; 8]);
        }
        if let Some(fce) = fce {
            fce.emit(buf);
            if kind == Kind::Confirm {
                buf.push(&[1, 0, 0, 0]);
                buf.push(&self.gid);
            }
        }
        buf.push(&EYECATCHER_R);
    }
}

/// Reads a 24-bit number.
pub(super) fn from_u24([a, b, c]: [u8; 3]) -> u32 {
    u32::from_be_bytes([0, a, b, c])
}

/// Writes the lower 24 bits of a number.
pub(super) fn to_u24(value: u32) -> [u8; 3] {
    let [_, a, b, c] = value.to_be_bytes();
    [a, b, c]
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_clc_accept))]
mod tests {
    use super::*;

    /// The part of an ACCEPT that is the same in all, offsets 8 to 63.
    #[rustfmt::skip]
    const BODY: [u8; 56] = [
        0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
        // 16: GID
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3,
        // 32: MAC
        0x02, 0x22, 0x23, 0x24, 0x25, 0x26,
        // 38: queue pair number
        0x01, 0x02, 0x03,
        // 41: rkey
        0x04, 0x05, 0x06, 0x07,
        // 45: index, token
        1, 0x08, 0x09, 0x0a, 0x0b,
        // 50: size code 5, MTU 3
        0x53, 0,
        // 52: address
        0xff, 0xff, 0x88, 0x80, 0x12, 0x34, 0x56, 0x78,
        // 60: PSN
        0, 0xab, 0xcd, 0xef,
    ];

    /// The first contact extension, offsets 104 to 155.
    #[rustfmt::skip]
    const FCE: [u8; 52] = [
        0x80, 0x21, 0, 0,
        b'n', b'o', b'd', b'e', b'1', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ',
        b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ',
        32, 1, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    /// What the bytes above say, on first contact.
    fn first() -> Accept {
        Accept {
            version: 2,
            first_contact: true,
            peer_id: [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18],
            gid: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3],
            mac: [2, 0x22, 0x23, 0x24, 0x25, 0x26],
            qpn: 0x010203,
            rkey: 0x04050607,
            rmbe_index: 1,
            token: 0x08090a0b,
            rmbe_size: SizeCode::from_size(512 << 10),
            mtu: 3,
            vaddr: 0xffff_8880_1234_5678,
            psn: 0xabcdef,
            eid: Eid::DEFAULT,
            fce: Some(FirstContact::new(true, 1, b"node1", 32, 1)),
        }
    }

    /// A message from its parts.
    fn message(kind: u8, flags: u8, parts: &[&[u8]]) -> ClcBuf {
        let mut buf = ClcBuf::new();
        let parts_len = sum_len(parts);
        buf.push(&[0xe2, 0xd4, 0xc3, 0xd9, kind, 0, parts_len, flags]);
        for part in parts {
            buf.push(part);
        }
        buf.push(&EYECATCHER_R);
        buf
    }

    /// The length of a message with these parts.
    fn sum_len(parts: &[&[u8]]) -> u8 {
        let len = parts.iter().map(|part| part.len()).sum::<usize>();
        u8::try_from(len.saturating_add(12)).unwrap_or(0)
    }

    /// What is wrong with a message if these bytes are changed.
    fn broken(msg: &ClcBuf, changes: &[(usize, u8)]) -> Option<WireError> {
        let mut bytes = [0; 200];
        let msg = msg.as_slice();
        for (to, from) in bytes.iter_mut().zip(msg) {
            *to = *from;
        }
        for &(at, value) in changes {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        Accept::parse(bytes.get(..msg.len()).unwrap_or_default()).err()
    }

    /// A version 2 message without extension.
    fn later_bytes() -> ClcBuf {
        message(2, 0x20, &[&BODY, &Eid::DEFAULT.0, &[0; 8]])
    }

    /// A version 2 ACCEPT of first contact.
    fn first_bytes() -> ClcBuf {
        message(2, 0x28, &[&BODY, &Eid::DEFAULT.0, &[0; 8], &FCE])
    }

    #[test]
    fn first_contact_to_the_byte() -> Result<(), WireError> {
        let accept = first_bytes();
        assert_eq!(accept.as_slice().len(), 160);
        let mut buf = ClcBuf::new();
        first().emit_accept(&mut buf);
        assert_eq!(buf.as_slice(), accept.as_slice());
        assert_eq!(Accept::parse(buf.as_slice())?, first());
        let gids = [1, 0, 0, 0];
        let confirm = message(
            3,
            0x28,
            &[&BODY, &Eid::DEFAULT.0, &[0; 8], &FCE, &gids, &first().gid],
        );
        assert_eq!(confirm.as_slice().len(), 180);
        first().emit_confirm(&mut buf);
        assert_eq!(buf.as_slice(), confirm.as_slice());
        assert_eq!(Accept::parse(buf.as_slice())?, first());
        Ok(())
    }

    #[test]
    fn later_contact_to_the_byte() -> Result<(), WireError> {
        let later = Accept {
            first_contact: false,
            fce: None,
            ..first()
        };
        let bytes = later_bytes();
        assert_eq!(bytes.as_slice().len(), 108);
        let mut buf = ClcBuf::new();
        later.emit_accept(&mut buf);
        assert_eq!(buf.as_slice(), bytes.as_slice());
        assert_eq!(Accept::parse(buf.as_slice())?, later);
        later.emit_confirm(&mut buf);
        assert_eq!(buf.as_slice().get(4), Some(&3));
        assert_eq!(Accept::parse(buf.as_slice())?, later);
        Ok(())
    }

    #[test]
    fn version_1_to_the_byte() -> Result<(), WireError> {
        let v1 = Accept {
            version: 1,
            eid: Eid::BLANK,
            fce: None,
            ..first()
        };
        let bytes = message(2, 0x18, &[&BODY]);
        assert_eq!(bytes.as_slice().len(), 68);
        let mut buf = ClcBuf::new();
        v1.emit_accept(&mut buf);
        assert_eq!(buf.as_slice(), bytes.as_slice());
        assert_eq!(Accept::parse(buf.as_slice())?, v1);
        Ok(())
    }

    #[test]
    fn release_0_does_not_tell_limits() -> Result<(), WireError> {
        let fce = FirstContact::new(false, 0, b"a\xffb\0c", 32, 2);
        assert_eq!((fce.max_conns, fce.max_links), (0, 0));
        assert_eq!(fce.host.trim_ascii_end(), b"a?b");
        let accept = Accept {
            fce: Some(fce),
            ..first()
        };
        let mut buf = ClcBuf::new();
        accept.emit_accept(&mut buf);
        assert_eq!(buf.as_slice().get(104..106), Some(&[0, 0x20][..]));
        assert_eq!(Accept::parse(buf.as_slice())?, accept);
        Ok(())
    }

    #[test]
    fn longer_messages_are_read() {
        // A CONFIRM with two GIDs, 196 bytes.
        let bytes = message(
            3,
            0x28,
            &[
                &BODY,
                &Eid::DEFAULT.0,
                &[0; 8],
                &FCE,
                &[2, 0, 0, 0],
                &[7; 32],
            ],
        );
        assert_eq!(bytes.as_slice().len(), 196);
        assert_eq!(Accept::parse(bytes.as_slice()), Ok(first()));
        // No first contact, yet longer; a version above 2.
        let bytes = message(2, 0x40, &[&BODY, &Eid::DEFAULT.0, &[0; 8], &[9; 13]]);
        assert!(Accept::parse(bytes.as_slice()).is_ok_and(|a| a.fce.is_none() && a.version == 2));
    }

    #[test]
    fn each_broken_rule_has_its_error() {
        use WireError::*;
        let v1 = message(2, 0x10, &[&BODY]);
        let (later, first) = (later_bytes(), first_bytes());
        assert_eq!(broken(&later, &[]), None);
        assert_eq!(broken(&later, &[(7, 0x21)]), Some(NotSmcR));
        assert_eq!(broken(&later, &[(3, 0xc4)]), Some(NotSmcR));
        assert_eq!(broken(&later, &[(7, 0x10)]), Some(AcceptV1Length));
        assert_eq!(broken(&v1, &[(7, 0x20)]), Some(AcceptV2Length));
        assert_eq!(broken(&v1, &[(6, 48)]), Some(AcceptV1Length));
        assert_eq!(broken(&later, &[(6, 107)]), Some(AcceptV2Length));
        assert_eq!(broken(&later, &[(7, 0x28)]), Some(FirstContactLength));
        assert_eq!(broken(&first, &[(6, 159)]), Some(FirstContactLength));
        assert_eq!(broken(&first, &[(156, 0)]), Some(TailEyecatcher));
        assert_eq!(broken(&v1, &[(67, 0)]), Some(TailEyecatcher));
        assert_eq!(broken(&first, &[(6, 161)]), Some(Truncated));
        assert_eq!(broken(&first, &[(6, 47)]), Some(Length));
        assert_eq!(broken(&first, &[(5, 4), (6, 1)]), Some(Length));
        assert_eq!(broken(&first, &[(5, 4), (6, 0)]), Some(Truncated));
        assert_eq!(broken(&first, &[(4, 1)]), Some(Unexpected));
        assert_eq!(broken(&first, &[(4, 4)]), Some(Length));
        assert_eq!(broken(&first, &[(7, 0x08)]), Some(Version));
    }

    #[test]
    fn the_mtu_is_a_number_that_exists() {
        let mtu = |mtu| Accept { mtu, ..first() }.mtu_valid();
        assert!(mtu(1) && mtu(5));
        assert!(!mtu(0) && !mtu(6) && !mtu(15));
    }
}
