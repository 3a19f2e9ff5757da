// SPDX-License-Identifier: GPL-2.0

//! LLC messages (RFC 7609, A.2 "Link Layer Control"; SMC version 2): how two hosts manage a link
//! group, sent over the link's queue pair.
//!
//! All that is sent has 44 bytes. Received messages may be longer in version 2; what is behind
//! byte 44 isn't needed for anything that is understood here.

use zerocopy::{
    big_endian::{
        U32,
        U64, //
    },
    FromBytes,
    Immutable,
    IntoBytes, //
};
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::{
    clc_accept::{
        from_u24,
        to_u24, //
    },
    WireError,
};

/// Length of every message that is sent.
pub(crate) const LLC_LEN: usize = 44;

/// Type codes, the low nibble of byte 0.
mod code {
    /// CONFIRM LINK.
    pub(super) const CONFIRM_LINK: u8 = 1;
    /// ADD LINK.
    pub(super) const ADD_LINK: u8 = 2;
    /// DELETE LINK.
    pub(super) const DELETE_LINK: u8 = 4;
    /// REQUEST ADD LINK, version 2 only.
    pub(super) const REQUEST_ADD_LINK: u8 = 5;
    /// CONFIRM RKEY.
    pub(super) const CONFIRM_RKEY: u8 = 6;
    /// TEST LINK.
    pub(super) const TEST_LINK: u8 = 7;
    /// DELETE RKEY.
    pub(super) const DELETE_RKEY: u8 = 9;
}

/// Flags in byte 3.
mod flag {
    /// A response, not a request.
    pub(super) const RESPONSE: u8 = 0x80;
    /// CONFIRM LINK: the ring buffer has no eyecatcher; both bits sent, one is enough.
    pub(super) const NO_EYECATCHER: u8 = 0x03;
    /// ADD LINK: rejected.
    pub(super) const ADD_REJECT: u8 = 0x40;
    /// DELETE LINK: all links.
    pub(super) const DELETE_ALL: u8 = 0x40;
    /// DELETE LINK: in an orderly way.
    pub(super) const DELETE_ORDERLY: u8 = 0x20;
    /// CONFIRM RKEY, DELETE RKEY: refused.
    pub(super) const RKEY_NEGATIVE: u8 = 0x20;
    /// CONFIRM RKEY: refused now, may work later.
    pub(super) const RKEY_RETRY: u8 = 0x10;
}

/// ADD LINK reject reason: no alternate path.
const REJECT_NO_ALT_PATH: u8 = 1;

/// The most keys in a DELETE RKEY of 44 bytes in version 2.
pub(crate) const RKEYS_MAX: usize = 9;
/// The most keys in a DELETE RKEY of version 1.
const RKEYS_V1_MAX: u8 = 8;

/// Version of LLC, that of the link group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LlcVersion {
    /// SMC-Rv1.
    V1,
    /// SMC-Rv2.
    V2,
}

/// Why links are deleted (request), or how it went (response).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkReason(pub(crate) u32);

impl LinkReason {
    /// Response: done.
    pub(crate) const OK: Self = Self(0);
    /// Request: an operator wants it.
    pub(crate) const OPERATOR: Self = Self(0x0002_0000);
    /// Request: the program ends, or nothing uses the link group.
    pub(crate) const PROGRAM: Self = Self(0x0003_0000);
    /// Request: the peer broke the protocol.
    pub(crate) const PROTOCOL: Self = Self(0x0004_0000);
    /// Response: no such link.
    pub(crate) const UNKNOWN_LINK: Self = Self(0x0010_0000);
}

/// A message to send.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct LlcBuf([u8; LLC_LEN]);

impl LlcBuf {
    /// The message.
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl core::fmt::Debug for LlcBuf {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("LlcBuf").field(&self.as_slice()).finish()
    }
}

/// Body of CONFIRM LINK.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawLink {
    /// MAC of the sender's port.
    mac: [u8; 6],
    /// GID of the sender's end.
    gid: [u8; 16],
    /// Number of the sender's queue pair.
    qpn: [u8; 3],
    /// Number of the link in the group, given by the server.
    link_num: u8,
    /// The sender's id of the link, for diagnosis.
    link_uid: [u8; 4],
    /// The most links that the sender wants.
    max_links: u8,
    /// The most connections that the sender wants (v2.1).
    max_conns: u8,
    /// Reserved.
    reserved: [u8; 8],
}

/// Body of DELETE LINK.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawDelete {
    /// Number of the link; 0 with the flag for all.
    link_num: u8,
    /// Why.
    reason: U32,
    /// Reserved.
    reserved: [u8; 35],
}

/// A key and an address of a ring buffer on one link.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawRtoken {
    /// In the first: how many others follow; else the number of the link.
    others: u8,
    /// Key.
    rkey: U32,
    /// Address.
    vaddr: U64,
}

/// Body of TEST LINK.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawTest {
    /// Comes back in the response.
    data: [u8; 16],
    /// Reserved.
    reserved: [u8; 24],
}

/// Body of DELETE RKEY.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawDeleteRkey {
    /// How many keys.
    count: u8,
    /// Response: version 1 a bit for each unknown key, version 2 their number.
    invalid: u8,
    /// Reserved.
    reserved: [u8; 2],
    /// The keys; the last one only in version 2.
    rkeys: [U32; RKEYS_MAX],
}

/// What the two ends of a link tell each other in CONFIRM LINK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkInfo {
    /// MAC of the sender's port.
    pub(crate) mac: [u8; 6],
    /// GID of the sender's end.
    pub(crate) gid: [u8; 16],
    /// Number of the sender's queue pair, 24 bits.
    pub(crate) qpn: u32,
    /// Number of the link in the group, given by the server.
    pub(crate) link_num: u8,
    /// The sender's id of the link, for diagnosis.
    pub(crate) link_uid: [u8; 4],
    /// The most links that the sender wants.
    pub(crate) max_links: u8,
    /// The most connections that the sender wants (v2.1).
    pub(crate) max_conns: u8,
}

/// Up to nine keys in a DELETE RKEY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RkeyList {
    /// The keys.
    rkeys: [u32; RKEYS_MAX],
    /// How many of them.
    len: u8,
}

impl RkeyList {
    /// A list of one key.
    pub(crate) fn one(rkey: u32) -> Self {
        let mut rkeys = [0; RKEYS_MAX];
        rkeys[0] = rkey;
        Self { rkeys, len: 1 }
    }

    /// The keys.
    pub(crate) fn as_slice(&self) -> &[u32] {
        self.rkeys.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// What the message says, whether request or response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// CONFIRM LINK: the queue pair works.
    ConfirmLink {
        /// Both sides' ring buffers begin with data, not with an eyecatcher.
        no_eyecatcher: bool,
        /// The sender's end of the link.
        link: LinkInfo,
    },
    /// ADD LINK: another link for the group.
    AddLink {
        /// In a response: refused.
        reject: bool,
        /// The body, which a refusal echoes.
        body: [u8; 40],
    },
    /// DELETE LINK.
    DeleteLink {
        /// All links of the group.
        all: bool,
        /// In an orderly way.
        orderly: bool,
        /// Which link, if not all.
        link_num: u8,
        /// Why, or how it went.
        reason: LinkReason,
    },
    /// REQUEST ADD LINK: the client would like another link (version 2).
    RequestAddLink,
    /// CONFIRM RKEY: a ring buffer to be used in the link group.
    ConfirmRkey {
        /// In a response: refused.
        negative: bool,
        /// In a response: refused now, may work later.
        retry: bool,
        /// On how many other links it can be written too.
        others: u8,
        /// Key on this link.
        rkey: u32,
        /// Address on this link.
        vaddr: u64,
    },
    /// TEST LINK: is the other side there?
    TestLink {
        /// Comes back in the response.
        data: [u8; 16],
    },
    /// DELETE RKEY: ring buffers that are not used any more.
    DeleteRkey {
        /// In a response: some were not known.
        negative: bool,
        /// In a response: version 1 a bit for each unknown key, version 2 their number.
        invalid: u8,
        /// The keys.
        rkeys: RkeyList,
    },
    /// A message of a type that is not known or not handled; to be dropped.
    Unknown,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Version.
    pub(crate) version: LlcVersion,
    /// It answers a request.
    pub(crate) response: bool,
    /// What it says.
    pub(crate) body: Body,
}

/// Reads the body's fixed structure.
fn read<T: FromBytes>(body: &[u8]) -> Result<T, WireError> {
    T::read_from_prefix(body)
        .map(|(value, _)| value)
        .map_err(|_| WireError::LlcTruncated)
}

impl Message {
    /// Reads a message; `bytes` is all that was received.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let (head, body) = match bytes.split_first_chunk::<4>() {
            Some((head, body)) if bytes.len() >= LLC_LEN => (*head, body),
            _ => return Err(WireError::LlcTruncated),
        };
        let [kind, len1, len2, flags] = head;
        let version = match kind >> 4 {
            0 if usize::from(len1) != LLC_LEN => return Err(WireError::LlcV1Length),
            0 => LlcVersion::V1,
            2 => {
                // The sender's byte order, which is little-endian wherever this is used.
                let length = usize::from(u16::from_le_bytes([len1, len2]));
                if length < LLC_LEN || length > bytes.len() {
                    return Err(WireError::LlcV2Length);
                }
                LlcVersion::V2
            }
            _ => {
                return Ok(Self {
                    version: LlcVersion::V1,
                    response: false,
                    body: Body::Unknown,
                })
            }
        };
        Ok(Self {
            version,
            response: flags & flag::RESPONSE != 0,
            body: Body::parse(version, kind & 0xf, flags, body)?,
        })
    }

    /// Writes the message.
    pub(crate) fn emit(&self) -> LlcBuf {
        let mut flags = if self.response { flag::RESPONSE } else { 0 };
        let (kind, body) = self.body.emit(&mut flags);
        let head = match self.version {
            LlcVersion::V1 => [kind, 44, self.body.reject_reason(), flags],
            LlcVersion::V2 => [0x20 | kind, 44, 0, flags],
        };
        let mut bytes = [0; LLC_LEN];
        for (to, from) in bytes.iter_mut().zip(head.iter().chain(&body)) {
            *to = *from;
        }
        LlcBuf(bytes)
    }
}

impl Body {
    /// Reads what follows the header.
    fn parse(version: LlcVersion, kind: u8, flags: u8, body: &[u8]) -> Result<Self, WireError> {
        let has = |flag| flags & flag != 0;
        Ok(match (version, kind) {
            (_, code::CONFIRM_LINK) => {
                let raw: RawLink = read(body)?;
                Self::ConfirmLink {
                    no_eyecatcher: has(flag::NO_EYECATCHER),
                    link: LinkInfo {
                        mac: raw.mac,
                        gid: raw.gid,
                        qpn: from_u24(raw.qpn),
                        link_num: raw.link_num,
                        link_uid: raw.link_uid,
                        max_links: raw.max_links,
                        max_conns: raw.max_conns,
                    },
                }
            }
            (_, code::ADD_LINK) => Self::AddLink {
                reject: has(flag::ADD_REJECT),
                body: read(body)?,
            },
            (_, code::DELETE_LINK) => {
                let raw: RawDelete = read(body)?;
                Self::DeleteLink {
                    all: has(flag::DELETE_ALL),
                    orderly: has(flag::DELETE_ORDERLY),
                    link_num: raw.link_num,
                    reason: LinkReason(raw.reason.get()),
                }
            }
            (LlcVersion::V2, code::REQUEST_ADD_LINK) => Self::RequestAddLink,
            (_, code::CONFIRM_RKEY) => {
                let raw: RawRtoken = read(body)?;
                // Three links are the most a group can have.
                if raw.others > 2 {
                    return Err(WireError::LlcRkeyLinks);
                }
                Self::ConfirmRkey {
                    negative: has(flag::RKEY_NEGATIVE),
                    retry: has(flag::RKEY_RETRY),
                    others: raw.others,
                    rkey: raw.rkey.get(),
                    vaddr: raw.vaddr.get(),
                }
            }
            (_, code::TEST_LINK) => {
                let raw: RawTest = read(body)?;
                Self::TestLink { data: raw.data }
            }
            (_, code::DELETE_RKEY) => Self::parse_delete_rkey(version, flags, body)?,
            _ => Self::Unknown,
        })
    }

    /// Reads a DELETE RKEY's body.
    fn parse_delete_rkey(version: LlcVersion, flags: u8, body: &[u8]) -> Result<Self, WireError> {
        let raw: RawDeleteRkey = read(body)?;
        let most = match version {
            LlcVersion::V1 => RKEYS_V1_MAX,
            // More than that fit only in a longer message, which nobody sends.
            LlcVersion::V2 => RKEYS_V1_MAX.saturating_add(1),
        };
        if raw.count > most {
            return Err(WireError::LlcRkeyCount);
        }
        let mut list = RkeyList {
            rkeys: [0; RKEYS_MAX],
            len: raw.count,
        };
        for (to, from) in list
            .rkeys
            .iter_mut()
            .zip(&raw.rkeys)
            .take(usize::from(raw.count))
        {
            *to = from.get();
        }
        Ok(Self::DeleteRkey {
            negative: flags & flag::RKEY_NEGATIVE != 0,
            invalid: raw.invalid,
            rkeys: list,
        })
    }

    /// What byte 2 holds in version 1: why an ADD LINK is refused.
    fn reject_reason(&self) -> u8 {
        match self {
            Self::AddLink { reject: true, .. } => REJECT_NO_ALT_PATH,
            _ => 0,
        }
    }

    /// Writes what follows the header and adds to the flags; gives the type's code too.
    fn emit(&self, flags: &mut u8) -> (u8, [u8; 40]) {
        let mut set = |on: bool, flag: u8| {
            if on {
                *flags |= flag;
            }
        };
        match *self {
            Self::ConfirmLink {
                no_eyecatcher,
                link,
            } => {
                set(no_eyecatcher, flag::NO_EYECATCHER);
                let raw = RawLink {
                    mac: link.mac,
                    gid: link.gid,
                    qpn: to_u24(link.qpn),
                    link_num: link.link_num,
                    link_uid: link.link_uid,
                    max_links: link.max_links,
                    max_conns: link.max_conns,
                    reserved: [0; 8],
                };
                (code::CONFIRM_LINK, padded(&raw))
            }
            Self::AddLink { reject, body } => {
                set(reject, flag::ADD_REJECT);
                (code::ADD_LINK, body)
            }
            Self::DeleteLink {
                all,
                orderly,
                link_num,
                reason,
            } => {
                set(all, flag::DELETE_ALL);
                set(orderly, flag::DELETE_ORDERLY);
                let raw = RawDelete {
                    link_num,
                    reason: U32::new(reason.0),
                    reserved: [0; 35],
                };
                (code::DELETE_LINK, padded(&raw))
            }
            Self::RequestAddLink => (code::REQUEST_ADD_LINK, [0; 40]),
            Self::ConfirmRkey {
                negative,
                retry,
                others,
                rkey,
                vaddr,
            } => {
                set(negative, flag::RKEY_NEGATIVE);
                set(retry, flag::RKEY_RETRY);
                let raw = RawRtoken {
                    others,
                    rkey: U32::new(rkey),
                    vaddr: U64::new(vaddr),
                };
                (code::CONFIRM_RKEY, padded(&raw))
            }
            Self::TestLink { data } => (code::TEST_LINK, padded(&data)),
            Self::DeleteRkey {
                negative,
                invalid,
                rkeys,
            } => {
                set(negative, flag::RKEY_NEGATIVE);
                let raw = RawDeleteRkey {
                    count: rkeys.len,
                    invalid,
                    reserved: [0; 2],
                    rkeys: rkeys.rkeys.map(U32::new),
                };
                (code::DELETE_RKEY, padded(&raw))
            }
            // Never sent; a receiver drops it.
            Self::Unknown => (0xf, [0; 40]),
        }
    }
}

/// A structure with zeros behind it.
fn padded<T: IntoBytes + Immutable>(value: &T) -> [u8; 40] {
    let mut body = [0; 40];
    for (to, from) in body.iter_mut().zip(value.as_bytes()) {
        *to = *from;
    }
    body
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_llc))]
mod tests {
    use super::*;

    /// A message: what is listed, and zeros up to 44 bytes.
    fn bytes(head: [u8; 4], body: &[u8]) -> [u8; 44] {
        let mut msg = [0; 44];
        for (to, from) in msg.iter_mut().zip(head.iter().chain(body)) {
            *to = *from;
        }
        msg
    }

    /// Checks both directions.
    fn check(wire: [u8; 44], version: LlcVersion, response: bool, body: Body) -> bool {
        let msg = Message {
            version,
            response,
            body,
        };
        msg.emit().as_slice() == wire && Message::parse(&wire) == Ok(msg)
    }

    /// The link in the tests.
    const LINK: LinkInfo = LinkInfo {
        mac: [2, 3, 4, 5, 6, 7],
        gid: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3],
        qpn: 0x010203,
        link_num: 9,
        link_uid: [0xa, 0xb, 0xc, 0xd],
        max_links: 2,
        max_conns: 32,
    };

    #[test]
    fn confirm_link_to_the_byte() {
        #[rustfmt::skip]
        let body = [
            2, 3, 4, 5, 6, 7,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3,
            1, 2, 3,
            9,
            0xa, 0xb, 0xc, 0xd,
            2, 32,
        ];
        let confirm = |no_eyecatcher| Body::ConfirmLink {
            no_eyecatcher,
            link: LINK,
        };
        let v1 = bytes([0x01, 44, 0, 0x03], &body);
        assert!(check(v1, LlcVersion::V1, false, confirm(true)));
        let v2 = bytes([0x21, 44, 0, 0x83], &body);
        assert!(check(v2, LlcVersion::V2, true, confirm(true)));
        let none = bytes([0x21, 44, 0, 0x80], &body);
        assert!(check(none, LlcVersion::V2, true, confirm(false)));
        // One of the two bits is enough.
        let one = bytes([0x21, 44, 0, 0x01], &body);
        assert!(Message::parse(&one).is_ok_and(|m| m.body == confirm(true)));
    }

    #[test]
    fn add_link_refusal_to_the_byte() {
        let request = bytes([0x02, 44, 0, 0], &[7; 40]);
        let add = |reject| Body::AddLink {
            reject,
            body: [7; 40],
        };
        assert!(check(request, LlcVersion::V1, false, add(false)));
        let reject = bytes([0x02, 44, 1, 0xc0], &[7; 40]);
        assert!(check(reject, LlcVersion::V1, true, add(true)));
        let reject = bytes([0x22, 44, 0, 0xc0], &[7; 40]);
        assert!(check(reject, LlcVersion::V2, true, add(true)));
        let request = bytes([0x25, 44, 0, 0x80], &[]);
        assert!(check(request, LlcVersion::V2, true, Body::RequestAddLink));
    }

    #[test]
    fn delete_link_to_the_byte() {
        let delete = |all, orderly, link_num, reason| Body::DeleteLink {
            all,
            orderly,
            link_num,
            reason,
        };
        let all = bytes([0x24, 44, 0, 0x60], &[0, 0, 3, 0, 0]);
        let body = delete(true, true, 0, LinkReason::PROGRAM);
        assert!(check(all, LlcVersion::V2, false, body));
        let one = bytes([0x04, 44, 0, 0x80], &[5, 0, 0x10, 0, 0]);
        let body = delete(false, false, 5, LinkReason::UNKNOWN_LINK);
        assert!(check(one, LlcVersion::V1, true, body));
    }

    #[test]
    fn rkeys_to_the_byte() {
        let body = [0, 1, 2, 3, 4, 0xff, 0xff, 0x88, 0x80, 5, 6, 7, 8];
        let confirm = |negative, retry| Body::ConfirmRkey {
            negative,
            retry,
            others: 0,
            rkey: 0x01020304,
            vaddr: 0xffff_8880_0506_0708,
        };
        let msg = bytes([0x26, 44, 0, 0], &body);
        assert!(check(msg, LlcVersion::V2, false, confirm(false, false)));
        let msg = bytes([0x06, 44, 0, 0xb0], &body);
        assert!(check(msg, LlcVersion::V1, true, confirm(true, true)));
        let delete = |negative, invalid| Body::DeleteRkey {
            negative,
            invalid,
            rkeys: RkeyList::one(0x01020304),
        };
        let msg = bytes([0x29, 44, 0, 0], &[1, 0, 0, 0, 1, 2, 3, 4]);
        assert!(check(msg, LlcVersion::V2, false, delete(false, 0)));
        let msg = bytes([0x09, 44, 0, 0xa0], &[1, 0x80, 0, 0, 1, 2, 3, 4]);
        assert!(check(msg, LlcVersion::V1, true, delete(true, 0x80)));
        assert_eq!(RkeyList::one(7).as_slice(), &[7][..]);
    }

    #[test]
    fn test_link_to_the_byte() {
        let msg = bytes([0x27, 44, 0, 0x80], &[3; 16]);
        let body = Body::TestLink { data: [3; 16] };
        assert!(check(msg, LlcVersion::V2, true, body));
    }

    #[test]
    fn unknown_types_are_unknown() {
        for kind in [0x00, 0x03, 0x05, 0x08, 0x0f, 0x20, 0x23, 0x28, 0x2a] {
            let msg = bytes([kind, 44, 0, 0], &[]);
            assert!(Message::parse(&msg).is_ok_and(|m| m.body == Body::Unknown));
        }
        // Neither version; the length means nothing then.
        for kind in [0x11, 0x31, 0x81, 0xfe] {
            let msg = bytes([kind, 1, 1, 0], &[]);
            assert!(Message::parse(&msg).is_ok_and(|m| m.body == Body::Unknown));
        }
    }

    #[test]
    fn each_broken_rule_has_its_error() {
        use WireError::*;
        let good = bytes([0x27, 44, 0, 0], &[]);
        let parse = |head, body: &[u8]| Message::parse(&bytes(head, body)).err();
        assert_eq!(Message::parse(&[]).err(), Some(LlcTruncated));
        assert_eq!(
            Message::parse(good.split_at(43).0).err(),
            Some(LlcTruncated)
        );
        assert_eq!(parse([0x07, 43, 0, 0], &[]), Some(LlcV1Length));
        assert_eq!(parse([0x07, 45, 0, 0], &[]), Some(LlcV1Length));
        // The low nibble of byte 2 is a reject reason in version 1.
        assert_eq!(parse([0x07, 44, 1, 0], &[]), None);
        assert_eq!(parse([0x27, 43, 0, 0], &[]), Some(LlcV2Length));
        assert_eq!(parse([0x27, 0, 44, 0], &[]), Some(LlcV2Length));
        assert_eq!(parse([0x27, 45, 0, 0], &[]), Some(LlcV2Length));
        assert_eq!(parse([0x26, 44, 0, 0], &[3]), Some(LlcRkeyLinks));
        assert_eq!(parse([0x26, 44, 0, 0], &[2]), None);
        assert_eq!(parse([0x09, 44, 0, 0], &[9]), Some(LlcRkeyCount));
        assert_eq!(parse([0x09, 44, 0, 0], &[8]), None);
        assert_eq!(parse([0x29, 44, 0, 0], &[9]), None);
        assert_eq!(parse([0x29, 44, 0, 0], &[10]), Some(LlcRkeyCount));
        assert_eq!(parse([0x29, 44, 0, 0], &[0]), None);
    }
}
