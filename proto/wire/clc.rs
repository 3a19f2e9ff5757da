// SPDX-License-Identifier: GPL-2.0

//! What all CLC messages (the handshake over TCP) have in common: header, trailer, buffer.

use zerocopy::{
    big_endian::U16,
    FromBytes,
    IntoBytes, //
};
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::WireError;

/// "SMCR" in EBCDIC: begins and ends messages.
pub(crate) const EYECATCHER_R: [u8; 4] = [0xe2, 0xd4, 0xc3, 0xd9];
/// "SMCD" in EBCDIC: begins and ends ACCEPT and CONFIRM of SMC-D.
pub(crate) const EYECATCHER_D: [u8; 4] = [0xe2, 0xd4, 0xc3, 0xc4];

/// Length of the header.
pub(crate) const HEADER_LEN: usize = 8;
/// Length of the trailer.
pub(crate) const TRAILER_LEN: usize = 4;
/// The longest message of any type that is read; who peeks needs a buffer of this size.
pub(crate) const MSG_MAX: usize = 1024;

/// The flag in the `typev2` bits: first contact (ACCEPT, CONFIRM), out of sync (DECLINE).
pub(super) const TYPEV2_FLAG: u8 = 0b10;

/// The header as it is on the wire.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawHeader {
    /// [`EYECATCHER_R`] or [`EYECATCHER_D`].
    eyecatcher: [u8; 4],
    /// Message type.
    kind: u8,
    /// Length of the message with header and trailer.
    length: U16,
    /// Bits 7-4 version, 3-2 `typev2`, 1-0 `typev1`.
    flags: u8,
}

impl RawHeader {
    /// A header to send.
    pub(super) fn new(kind: Kind, length: u16, version: u8, typev1: u8, typev2: u8) -> Self {
        Self {
            eyecatcher: EYECATCHER_R,
            kind: kind.code(),
            length: U16::new(length),
            flags: (version << 4) | ((typev2 & 3) << 2) | (typev1 & 3),
        }
    }
}

/// Type of a CLC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Client to server: what the client could do.
    Proposal,
    /// Server to client: what they will do, the server's ring and queue pair.
    Accept,
    /// Client to server: the client's ring and queue pair.
    Confirm,
    /// Both directions: no SMC for this connection.
    Decline,
}

impl Kind {
    /// The type's code on the wire.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Proposal => 1,
            Self::Accept => 2,
            Self::Confirm => 3,
            Self::Decline => 4,
        }
    }

    /// The type of a code.
    fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Proposal),
            2 => Some(Self::Accept),
            3 => Some(Self::Confirm),
            4 => Some(Self::Decline),
            _ => None,
        }
    }

    /// The lengths that a message of this type can have. Later protocol versions may lengthen
    /// ACCEPT and CONFIRM; what is unknown is dropped.
    fn lengths(self) -> core::ops::RangeInclusive<usize> {
        match self {
            Self::Proposal => 52..=super::clc_proposal::PROPOSAL_MAX,
            // The shortest is SMC-D's.
            Self::Accept | Self::Confirm => 48..=MSG_MAX,
            Self::Decline => 28..=44,
        }
    }
}

/// A valid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Type of the message.
    pub(crate) kind: Kind,
    /// Length of the message with header and trailer.
    pub(crate) length: usize,
    /// Protocol version, 1 to 15; above 2 means 2.
    pub(crate) version: u8,
    /// The two `typev1` bits.
    pub(crate) typev1: u8,
    /// The two `typev2` bits.
    pub(crate) typev2: u8,
    /// The eyecatcher is SMC-D's.
    pub(crate) ism: bool,
}

impl Header {
    /// Reads the header of the message that `bytes` begins with; there may be less or more than
    /// the message.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let (raw, _) = RawHeader::read_from_prefix(bytes).map_err(|_| WireError::Truncated)?;
        if !is_eyecatcher(&raw.eyecatcher) {
            return Err(WireError::HeadEyecatcher);
        }
        let version = raw.flags >> 4;
        if version == 0 {
            return Err(WireError::Version);
        }
        let kind = Kind::from_code(raw.kind).ok_or(WireError::Kind)?;
        let length = usize::from(raw.length.get());
        if !kind.lengths().contains(&length) {
            return Err(WireError::Length);
        }
        Ok(Self {
            kind,
            length,
            version,
            typev1: raw.flags & 3,
            typev2: (raw.flags >> 2) & 3,
            ism: raw.eyecatcher == EYECATCHER_D,
        })
    }

    /// Reads the header of a message that must be in `bytes` as a whole and of one `kind`; gives
    /// the header and exactly the message's bytes.
    pub(super) fn parse_whole<'a>(
        bytes: &'a [u8],
        kinds: &[Kind],
    ) -> Result<(Self, &'a [u8]), WireError> {
        let header = Self::parse(bytes)?;
        if !kinds.contains(&header.kind) {
            return Err(WireError::Unexpected);
        }
        let msg = bytes.get(..header.length).ok_or(WireError::Truncated)?;
        Ok((header, msg))
    }
}

/// Whether these are four bytes that a CLC message may begin and end with.
pub(super) fn is_eyecatcher(bytes: &[u8]) -> bool {
    bytes == EYECATCHER_R || bytes == EYECATCHER_D
}

/// Whether `bytes` could be the begin of a CLC message, as far as the eyecatcher tells.
pub(crate) fn may_be_clc(bytes: &[u8]) -> bool {
    let n = bytes.len().min(4);
    let head = bytes.get(..n);
    head == EYECATCHER_R.get(..n) || head == EYECATCHER_D.get(..n)
}

/// Checks the trailer at the end of a whole message.
pub(super) fn check_trailer(msg: &[u8]) -> Result<(), WireError> {
    match msg.last_chunk::<TRAILER_LEN>() {
        Some(tail) if is_eyecatcher(tail) => Ok(()),
        _ => Err(WireError::TailEyecatcher),
    }
}

/// Reads a fixed structure at `offset`.
pub(super) fn read_at<T: FromBytes>(bytes: &[u8], offset: usize) -> Option<T> {
    T::read_from_prefix(bytes.get(offset..)?)
        .ok()
        .map(|(value, _)| value)
}

/// One CLC message to send.
#[derive(Clone)]
pub(crate) struct ClcBuf {
    /// The message and unused space.
    bytes: [u8; ClcBuf::SIZE],
    /// Length of the message.
    len: usize,
}

impl ClcBuf {
    /// A proposal with eight EIDs has 380 bytes, the longest that is sent.
    const SIZE: usize = 384;

    /// An empty buffer.
    pub(crate) const fn new() -> Self {
        Self {
            bytes: [0; Self::SIZE],
            len: 0,
        }
    }

    /// The message.
    pub(crate) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Empties the buffer.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends bytes. All that is sent fits by construction; more is cut.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let rest = self.bytes.get_mut(self.len..).unwrap_or_default();
        for (to, from) in rest.iter_mut().zip(bytes) {
            *to = *from;
            self.len = self.len.saturating_add(1);
        }
    }

    /// Appends a fixed structure.
    pub(super) fn put<T: IntoBytes + zerocopy::Immutable>(&mut self, value: &T) {
        self.push(value.as_bytes());
    }
}

impl Default for ClcBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for ClcBuf {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("ClcBuf").field(&self.as_slice()).finish()
    }
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_clc))]
mod tests {
    use super::*;

    /// A DECLINE's header.
    const GOOD: [u8; 8] = [0xe2, 0xd4, 0xc3, 0xd9, 4, 0, 28, 0x10];

    /// The good header with one byte changed.
    fn with(index: usize, value: u8) -> [u8; 8] {
        let mut bytes = GOOD;
        if let Some(b) = bytes.get_mut(index) {
            *b = value;
        }
        bytes
    }

    #[test]
    fn reads_a_header() -> Result<(), WireError> {
        let h = Header::parse(&GOOD)?;
        assert_eq!(h.kind, Kind::Decline);
        assert_eq!((h.length, h.version, h.typev1, h.typev2), (28, 1, 0, 0));
        assert!(!h.ism);
        let h = Header::parse(&[0xe2, 0xd4, 0xc3, 0xc4, 1, 1, 0, 0x2e])?;
        assert_eq!((h.length, h.version, h.typev1, h.typev2), (256, 2, 2, 3));
        assert!(h.ism);
        Ok(())
    }

    #[test]
    fn each_broken_header_has_its_error() {
        assert_eq!(Header::parse(&GOOD[..7]), Err(WireError::Truncated));
        assert_eq!(Header::parse(&with(0, 0)), Err(WireError::HeadEyecatcher));
        assert_eq!(Header::parse(&with(3, 0)), Err(WireError::HeadEyecatcher));
        assert_eq!(Header::parse(&with(4, 0)), Err(WireError::Kind));
        assert_eq!(Header::parse(&with(4, 5)), Err(WireError::Kind));
        assert_eq!(Header::parse(&with(7, 0x0f)), Err(WireError::Version));
        assert_eq!(Header::parse(&with(6, 27)), Err(WireError::Length));
        assert_eq!(Header::parse(&with(5, 0xff)), Err(WireError::Length));
        assert_eq!(
            Header::parse_whole(&GOOD, &[Kind::Accept]).err(),
            Some(WireError::Unexpected)
        );
        assert_eq!(
            Header::parse_whole(&GOOD, &[Kind::Decline]).err(),
            Some(WireError::Truncated)
        );
    }

    #[test]
    fn a_few_bytes_may_tell() {
        assert!(may_be_clc(&[]));
        assert!(may_be_clc(&[0xe2, 0xd4]));
        assert!(may_be_clc(&GOOD));
        assert!(!may_be_clc(b"G"));
        assert!(!may_be_clc(&[0xe2, 0xd4, 0xc3, 0]));
    }

    #[test]
    fn a_buffer_cuts_what_does_not_fit() {
        let mut buf = ClcBuf::new();
        buf.push(&[1; 300]);
        buf.push(&[2; 300]);
        assert_eq!(buf.as_slice().len(), 384);
        buf.clear();
        assert!(buf.as_slice().is_empty());
    }
}
