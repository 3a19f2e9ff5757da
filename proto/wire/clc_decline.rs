// SPDX-License-Identifier: GPL-2.0

//! DECLINE: no SMC for this connection (RFC 7609, A.4; SMC version 2).

use zerocopy::big_endian::U32;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::{
    clc::{
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
};
use crate::proto::reason::Reason;

/// Length in version 1.
const V1_LEN: u16 = 28;
/// Length from version 2 on.
const V2_LEN: u16 = 44;

/// What both versions have behind the header.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawDecline {
    /// Sender's system id, or zero.
    peer_id: [u8; 8],
    /// Diagnosis code.
    reason: U32,
    /// Bits 7-4 type of operating system (version 2).
    os: u8,
    /// Reserved.
    reserved: [u8; 3],
}

/// A DECLINE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decline {
    /// Protocol version, 1 or 2.
    pub(crate) version: u8,
    /// The link group that the peer wanted to use is not known to the sender.
    pub(crate) out_of_sync: bool,
    /// Sender's system id, or zero.
    pub(crate) peer_id: [u8; 8],
    /// Why.
    pub(crate) reason: Reason,
    /// Type of the sender's operating system; 2 is Linux, 0 is not told.
    pub(crate) os: u8,
}

impl Decline {
    /// A DECLINE to send.
    pub(crate) fn new(version: u8, peer_id: [u8; 8], reason: Reason) -> Self {
        let version = version.clamp(1, 2);
        Self {
            version,
            out_of_sync: reason == Reason::SYNCERR,
            peer_id,
            reason,
            os: if version == 1 { 0 } else { super::OS_LINUX },
        }
    }

    /// Reads a whole message. The trailer is not looked at, as other implementations do.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let (header, msg) = Header::parse_whole(bytes, &[Kind::Decline])?;
        let version = header.version.min(2);
        let want = if version == 1 { V1_LEN } else { V2_LEN };
        if header.length != usize::from(want) {
            return Err(WireError::DeclineLength);
        }
        let raw: RawDecline = read_at(msg, HEADER_LEN).ok_or(WireError::DeclineLength)?;
        Ok(Self {
            version,
            out_of_sync: header.typev2 & TYPEV2_FLAG != 0,
            peer_id: raw.peer_id,
            reason: Reason(raw.reason.get()),
            os: raw.os >> 4,
        })
    }

    /// Writes the message.
    pub(crate) fn emit(&self, buf: &mut ClcBuf) {
        let length = if self.version == 1 { V1_LEN } else { V2_LEN };
        let flag = if self.out_of_sync { TYPEV2_FLAG } else { 0 };
        buf.clear();
        buf.put(&RawHeader::new(
            Kind::Decline,
            length,
            self.version,
            0,
            flag,
        ));
        buf.put(&RawDecline {
            peer_id: self.peer_id,
            reason: U32::new(self.reason.0),
            os: self.os << 4,
            reserved: [0; 3],
        });
        if self.version != 1 {
            // Four more diagnosis words, not used.
            buf.push(&[0; 16]);
        }
        buf.push(&EYECATCHER_R);
    }
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_clc_decline))]
mod tests {
    use super::*;

    /// Version 1, peer id 1 to 8, MODEUNSUPP.
    #[rustfmt::skip]
    const V1: [u8; 28] = [
        0xe2, 0xd4, 0xc3, 0xd9, 4, 0, 28, 0x10,
        1, 2, 3, 4, 5, 6, 7, 8,
        0x03, 0x04, 0, 0,
        0, 0, 0, 0,
        0xe2, 0xd4, 0xc3, 0xd9,
    ];

    /// Version 2, out of sync.
    #[rustfmt::skip]
    const V2: [u8; 44] = [
        0xe2, 0xd4, 0xc3, 0xd9, 4, 0, 44, 0x28,
        1, 2, 3, 4, 5, 6, 7, 8,
        0x04, 0, 0, 0,
        0x20, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0xe2, 0xd4, 0xc3, 0xd9,
    ];

    #[test]
    fn both_versions_to_the_byte() -> Result<(), WireError> {
        let id = [1, 2, 3, 4, 5, 6, 7, 8];
        let v1 = Decline::new(1, id, Reason::MODEUNSUPP);
        let v2 = Decline::new(2, id, Reason::SYNCERR);
        let mut buf = ClcBuf::new();
        v1.emit(&mut buf);
        assert_eq!(buf.as_slice(), &V1[..]);
        v2.emit(&mut buf);
        assert_eq!(buf.as_slice(), &V2[..]);
        assert_eq!(Decline::parse(&V1)?, v1);
        assert_eq!(Decline::parse(&V2)?, v2);
        assert!(v2.out_of_sync);
        Ok(())
    }

    #[test]
    fn later_versions_are_version_2() -> Result<(), WireError> {
        let mut msg = V2;
        msg[7] = 0xf8;
        assert_eq!(Decline::parse(&msg)?.version, 2);
        Ok(())
    }

    #[test]
    fn the_length_belongs_to_the_version() {
        let mut msg = V1;
        msg[7] = 0x20;
        assert_eq!(Decline::parse(&msg), Err(WireError::DeclineLength));
        let mut msg = V2;
        msg[7] = 0x10;
        assert_eq!(Decline::parse(&msg), Err(WireError::DeclineLength));
        assert_eq!(Decline::parse(&V2[..43]), Err(WireError::Truncated));
    }

    #[test]
    fn the_trailer_does_not_matter() {
        let mut msg = V1;
        msg[27] = 0;
        assert!(Decline::parse(&msg).is_ok());
    }
}
