// SPDX-License-Identifier: GPL-2.0

//! Wire formats: bytes to types that are valid by construction, and back.

pub(crate) mod cdc;
pub(crate) mod clc;
pub(crate) mod clc_accept;
pub(crate) mod clc_decline;
pub(crate) mod clc_proposal;
pub(crate) mod llc;

/// How a CLC or LLC message from a peer breaks the rules: one variant for each rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireError {
    /// CLC: fewer bytes than the header or the header's length says.
    Truncated,
    /// CLC: the message does not begin with an eyecatcher.
    HeadEyecatcher,
    /// CLC: the message does not end with an eyecatcher.
    TailEyecatcher,
    /// CLC: version 0.
    Version,
    /// CLC: a type that doesn't exist.
    Kind,
    /// CLC: a message of a type that can't come now.
    Unexpected,
    /// CLC: the header's length is below the minimum of the type or above what is readable.
    Length,
    /// PROPOSAL: the IP area begins too far behind.
    IpAreaOffset,
    /// PROPOSAL: SMC-Dv1 is offered, but its area is not there.
    IpAreaNoIsm,
    /// PROPOSAL: more IPv6 prefixes than allowed.
    V6Prefixes,
    /// PROPOSAL: version 1 without an offer.
    V1NoOffer,
    /// PROPOSAL: the length is not the sum of the parts.
    ProposalLength,
    /// PROPOSAL: the v2 extension begins at an impossible place.
    V2ExtOffset,
    /// PROPOSAL: more EIDs than allowed.
    EidCount,
    /// PROPOSAL: more ISM GIDs than allowed.
    IsmGidCount,
    /// PROPOSAL: the SMC-Dv2 extension begins at an impossible place.
    DV2ExtOffset,
    /// ACCEPT/CONFIRM: not for SMC-R.
    NotSmcR,
    /// ACCEPT/CONFIRM: version 1 with a length other than 68.
    AcceptV1Length,
    /// ACCEPT/CONFIRM: version 2 shorter than its fixed part.
    AcceptV2Length,
    /// ACCEPT/CONFIRM: first contact, but too short for its extension.
    FirstContactLength,
    /// DECLINE: a length other than 28 (version 1) or 44.
    DeclineLength,
    /// LLC: fewer than 44 bytes.
    LlcTruncated,
    /// LLC: a version 1 message whose length byte is not 44.
    LlcV1Length,
    /// LLC: a version 2 message whose length is below 44 or above what arrived.
    LlcV2Length,
    /// LLC: DELETE RKEY with more keys than fit.
    LlcRkeyCount,
    /// LLC: CONFIRM RKEY with more links than there can be.
    LlcRkeyLinks,
    /// LLC: requests come faster than they can be answered.
    LlcFlood,
}

/// Linux, where messages tell the type of the operating system.
pub(crate) const OS_LINUX: u8 = 2;
