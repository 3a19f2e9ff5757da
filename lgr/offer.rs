// SPDX-License-Identifier: GPL-2.0

//! What a host offers: settings, and a client's proposal.

use crate::{
    ext::net::NetId,
    ib::{
        self,
        find_path,
        Flow,
        Path, //
    },
    proto::{
        eid::EidSet,
        reason::Reason,
        wire::clc_proposal::Proposal, //
    }, //
};
use core::net::IpAddr;

/// Most connections of a group.
pub(crate) const MAX_CONNS: u8 = 255;
/// Fewest connections that the protocol lets a group be limited to.
const MIN_CONNS: u8 = 16;

/// What a namespace's administrator set.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Wanted bytes of a send buffer.
    pub(crate) sndbuf: u32,
    /// Wanted bytes of a receive buffer.
    pub(crate) rmb: u32,
    /// Most connections of a group, 16 to 255.
    pub(crate) max_conns: u8,
    /// Most links of a group; more than one isn't supported yet.
    pub(crate) max_links: u8,
    /// Milliseconds of silence after which a link is tested; 0: never.
    pub(crate) test_link_ms: u64,
    /// The EIDs, the most preferred first.
    pub(crate) eids: EidSet,
}

/// A client's offer.
pub(crate) struct Offer {
    /// The settings it was made with.
    pub(crate) settings: Settings,
    /// The local end.
    pub(crate) path: Path,
    /// The namespace.
    pub(crate) net: NetId,
    /// The TCP peer's address.
    pub(crate) peer_ip: IpAddr,
}

impl Offer {
    /// Finds out what can be offered for a TCP connection. Process context.
    pub(crate) fn find(flow: &Flow<'_>, settings: &Settings) -> Result<Self, Reason> {
        if settings.eids.is_empty() {
            return Err(Reason::NOUEID);
        }
        Ok(Self {
            settings: settings.clone(),
            path: find_path(flow)?,
            net: flow.net.id(),
            peer_ip: flow.peer,
        })
    }

    /// The PROPOSAL to send.
    pub(crate) fn proposal(&self) -> Proposal {
        Proposal::new(
            ib::system_id(),
            self.path.gid(),
            self.path.mac(),
            self.settings.eids.clone(),
            self.settings.max_conns.max(MIN_CONNS),
            self.settings.max_links.clamp(1, 1),
        )
    }
}
