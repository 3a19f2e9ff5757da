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

    /// The host name for people, without padding; empty if it is not ASCII.
    pub(crate) fn host_name(&self) -> &str {
        if !self.host.is_ascii() {
            return "";
        }
        core::str::from_utf8(self.host.trim_ascii_end()).unwrap_or("")
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
