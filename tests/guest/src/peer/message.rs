// SPDX-License-Identifier: GPL-2.0
//! CLC messages: right ones, made with the module's own formats, and what can be done to them.

use std::net::Ipv4Addr;
use std::sync::mpsc;

use super::wire::MAC;
use crate::proto::eid::Eid;
use crate::proto::eid::EidSet;
use crate::proto::reason::Reason;
use crate::proto::size::SizeCode;
use crate::proto::wire::clc::ClcBuf;
use crate::proto::wire::clc::EYECATCHER_R;
use crate::proto::wire::clc_accept::Accept;
use crate::proto::wire::clc_accept::FirstContact;
use crate::proto::wire::clc_decline::Decline;
use crate::proto::wire::clc_proposal::Proposal;

/// What a message is built from.
pub struct Facts {
    /// The peer's address, of which its GID is made.
    pub ip: Ipv4Addr,
    /// The host's ACCEPT, once it came.
    pub accept: Option<Accept>,
    /// Tells the application to leave.
    pub leave: mpsc::Sender<()>,
}

/// The EID that a fresh installation has.
pub fn eid() -> Eid {
    Eid::parse("SMC-RS-DEFAULT").unwrap_or(Eid::BLANK)
}

#[derive(Clone, Copy)]
enum Base {
    Raw(&'static [u8]),
    /// Whatever the host's EID is called: only a proposal that offers it is of use.
    Proposal(fn(&mut Proposal)),
    /// As RFC 7609 has it: 52 bytes.
    ProposalV1,
    /// SMC-R and SMC-D of both versions, one IPv6 prefix, one EID, one ISM GID.
    ProposalAll,
    Accept(fn(&mut Accept)),
    Confirm(fn(&mut Accept)),
    Decline(u8, Reason),
}

/// A message to say, perhaps a broken one.
#[derive(Clone)]
pub struct Msg {
    base: Base,
    patches: Vec<(usize, u8)>,
    longer: usize,
    keep: usize,
    then: Vec<Msg>,
}

impl Msg {
    fn new(base: Base) -> Self {
        Self {
            base,
            patches: Vec::new(),
            longer: 0,
            keep: usize::MAX,
            then: Vec::new(),
        }
    }

    /// Changes a byte.
    pub fn at(mut self, offset: usize, value: u8) -> Self {
        self.patches.push((offset, value));
        self
    }

    /// Sets the length in the header, not that of the message.
    pub fn claims(self, length: u16) -> Self {
        let [high, low] = length.to_be_bytes();
        self.at(5, high).at(6, low)
    }

    /// Puts zeros before the trailer; the length in the header fits.
    pub fn longer(mut self, by: usize) -> Self {
        self.longer = by;
        self
    }

    /// Only the first bytes.
    pub fn cut(mut self, keep: usize) -> Self {
        self.keep = keep;
        self
    }

    /// Another message after it.
    pub fn then(mut self, next: Msg) -> Self {
        self.then.push(next);
        self
    }

    /// The bytes.
    pub fn bytes(&self, facts: &Facts) -> Vec<u8> {
        let mut bytes = self.base.bytes(facts);
        if self.longer > 0 {
            let at = bytes.len() - 4;
            bytes.splice(at..at, std::iter::repeat_n(0, self.longer));
            let length = (bytes.len() as u16).to_be_bytes();
            bytes[5..7].copy_from_slice(&length);
        }
        for &(offset, value) in &self.patches {
            bytes[offset] = value;
        }
        bytes.truncate(self.keep);
        for next in &self.then {
            bytes.extend(next.bytes(facts));
        }
        bytes
    }
}

impl Base {
    fn bytes(self, facts: &Facts) -> Vec<u8> {
        let mut buf = ClcBuf::new();
        match self {
            Self::Raw(bytes) => return bytes.to_vec(),
            Self::ProposalV1 => return v1(facts),
            Self::ProposalAll => return all(facts),
            Self::Proposal(change) => {
                let mut proposal = right_proposal(facts);
                change(&mut proposal);
                proposal.emit(&mut buf);
            }
            Self::Accept(change) => {
                let mut accept = right_accept(facts);
                change(&mut accept);
                accept.emit_accept(&mut buf);
            }
            Self::Confirm(change) => {
                let mut confirm = right_confirm(facts);
                change(&mut confirm);
                confirm.emit_confirm(&mut buf);
            }
            Self::Decline(version, reason) => {
                Decline::new(version, peer_id(facts), reason).emit(&mut buf);
            }
        }
        buf.as_slice().to_vec()
    }
}

fn gid(facts: &Facts) -> [u8; 16] {
    facts.ip.to_ipv6_mapped().octets()
}

fn peer_id(facts: &Facts) -> [u8; 8] {
    let ip = facts.ip.octets();
    [0x66, 0x66, 2, 0x66, ip[0], ip[1], ip[2], ip[3]]
}

fn right_proposal(facts: &Facts) -> Proposal {
    let mut eids = EidSet::new();
    eids.push(eid());
    Proposal::new(peer_id(facts), gid(facts), MAC, eids, 32, 1)
}

fn right_accept(facts: &Facts) -> Accept {
    Accept {
        version: 2,
        first_contact: true,
        peer_id: peer_id(facts),
        gid: gid(facts),
        mac: MAC,
        qpn: 0x1234,
        rkey: 0x5678,
        rmbe_index: 1,
        token: 0x9abc,
        rmbe_size: SizeCode::from_size(64 << 10),
        mtu: 3,
        vaddr: 0xffff_8880_1234_0000,
        psn: 0x0a_bcde,
        eid: eid(),
        fce: Some(FirstContact::new(true, 1, b"hostile", 32, 1)),
    }
}

/// It says what the host's ACCEPT said.
fn right_confirm(facts: &Facts) -> Accept {
    let mut confirm = right_accept(facts);
    if let Some(accept) = &facts.accept {
        confirm.first_contact = accept.first_contact;
        confirm.fce = accept.fce;
        confirm.eid = accept.eid;
    }
    confirm
}

fn v1(facts: &Facts) -> Vec<u8> {
    let mut m = vec![0; 52];
    m[..8].copy_from_slice(&[0xe2, 0xd4, 0xc3, 0xd9, 1, 0, 52, 0x10]);
    m[8..16].copy_from_slice(&peer_id(facts));
    m[16..18].copy_from_slice(&[0xfe, 0x80]);
    m[32..38].copy_from_slice(&MAC);
    m[40..45].copy_from_slice(&[10, 2, 0, 0, 16]);
    m[48..].copy_from_slice(&EYECATCHER_R);
    m
}

/// Where things are in it: IP area offset 38, v2 extension offset 50, IPv6 prefix count 87, v2
/// extension 105 (EID count, ISM GID count 106, offset of the SMC-Dv2 extension 111, GID 113).
fn all(facts: &Facts) -> Vec<u8> {
    let mut m = vec![0; 239];
    m[..8].copy_from_slice(&[0xe2, 0xd4, 0xc3, 0xd9, 1, 0, 239, 0x2f]);
    m[8..16].copy_from_slice(&peer_id(facts));
    m[32..38].copy_from_slice(&MAC);
    m[39] = 40;
    m[51] = 28 + 8 + 17;
    m[87] = 1;
    m[105] = 1;
    m[106] = 1;
    m[108] = 0x10;
    m[112] = 64;
    m[113..129].copy_from_slice(&gid(facts));
    m[129] = 32;
    m[130] = 1;
    m[145..177].copy_from_slice(&eid().0);
    m[235..].copy_from_slice(&EYECATCHER_R);
    m
}

/// Any bytes.
pub fn raw(bytes: &'static [u8]) -> Msg {
    Msg::new(Base::Raw(bytes))
}

/// A PROPOSAL.
pub fn proposal() -> Msg {
    Msg::new(Base::Proposal(|_| ()))
}

/// A PROPOSAL with changes.
pub fn proposal_with(change: fn(&mut Proposal)) -> Msg {
    Msg::new(Base::Proposal(change))
}

/// A PROPOSAL of version 1.
pub fn proposal_v1() -> Msg {
    Msg::new(Base::ProposalV1)
}

/// A PROPOSAL of everything.
pub fn proposal_all() -> Msg {
    Msg::new(Base::ProposalAll)
}

/// An ACCEPT.
pub fn accept() -> Msg {
    Msg::new(Base::Accept(|_| ()))
}

/// An ACCEPT with changes.
pub fn accept_with(change: fn(&mut Accept)) -> Msg {
    Msg::new(Base::Accept(change))
}

/// A CONFIRM.
pub fn confirm() -> Msg {
    Msg::new(Base::Confirm(|_| ()))
}

/// A CONFIRM with changes.
pub fn confirm_with(change: fn(&mut Accept)) -> Msg {
    Msg::new(Base::Confirm(change))
}

/// A DECLINE of version 2.
pub fn decline(reason: Reason) -> Msg {
    Msg::new(Base::Decline(2, reason))
}

/// A DECLINE of version 1.
pub fn decline_v1(reason: Reason) -> Msg {
    Msg::new(Base::Decline(1, reason))
}
