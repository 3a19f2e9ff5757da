// SPDX-License-Identifier: GPL-2.0

//! Messages for the tests of the machines.

use crate::proto::{
    eid::{
        Eid,
        EidSet, //
    },
    reason::Reason,
    size::SizeCode,
    wire::{
        clc::ClcBuf,
        clc_accept::{
            Accept,
            FirstContact, //
        },
        clc_decline::Decline,
        clc_proposal::Proposal,
    },
};

/// A proposal with the default EID.
pub(crate) fn proposal() -> Proposal {
    let mut eids = EidSet::new();
    eids.push(Eid::DEFAULT);
    Proposal::new([1; 8], [2; 16], [3; 6], eids, 32, 1)
}

/// An ACCEPT or CONFIRM that fits to it.
pub(crate) fn accept(first_contact: bool) -> Accept {
    Accept {
        version: 2,
        first_contact,
        peer_id: [4; 8],
        gid: [5; 16],
        mac: [6; 6],
        qpn: 7,
        rkey: 8,
        rmbe_index: 1,
        token: 9,
        rmbe_size: SizeCode::MIN,
        mtu: 3,
        vaddr: 10,
        psn: 11,
        eid: Eid::DEFAULT,
        fce: first_contact.then(|| FirstContact::new(true, 1, b"host", 32, 1)),
    }
}

/// The bytes of a PROPOSAL.
pub(crate) fn proposal_bytes() -> ClcBuf {
    let mut buf = ClcBuf::new();
    proposal().emit(&mut buf);
    buf
}

/// The bytes of an ACCEPT.
pub(crate) fn accept_bytes(accept: &Accept) -> ClcBuf {
    let mut buf = ClcBuf::new();
    accept.emit_accept(&mut buf);
    buf
}

/// The bytes of a CONFIRM.
pub(crate) fn confirm_bytes(confirm: &Accept) -> ClcBuf {
    let mut buf = ClcBuf::new();
    confirm.emit_confirm(&mut buf);
    buf
}

/// The bytes of a DECLINE.
pub(crate) fn decline_bytes(reason: Reason) -> ClcBuf {
    let mut buf = ClcBuf::new();
    Decline::new(2, [0; 8], reason).emit(&mut buf);
    buf
}

/// The reason in a DECLINE.
pub(crate) fn declined_with(msg: Option<ClcBuf>) -> Option<Reason> {
    let decline = Decline::parse(msg?.as_slice()).ok()?;
    Some(decline.reason)
}
