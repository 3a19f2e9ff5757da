// SPDX-License-Identifier: GPL-2.0

//! Contact of a server: the client's PROPOSAL is there.

use super::{
    parts::Parts,
    Contact,
    Side,
    Step, //
};
use crate::{
    ext::host,
    ib::{
        find_path,
        Flow,
        NextHop,
        Path,
        PeerQp, //
    },
    lgr::{
        self,
        Found,
        Key,
        Settings,
        Waiter,
        Wake, //
    },
    proto::{
        clc::{
            Limits,
            Terms, //
        },
        eid::Eid,
        llc::Role,
        reason::Reason,
        wire::{
            clc_accept::{
                Accept,
                FirstContact, //
            },
            clc_proposal::Proposal, //
        }, //
    }, //
};
use kernel::sync::Arc;

/// What first contact needs of the client until CONFIRM comes.
pub(super) struct Peer {
    /// Its GID.
    gid: [u8; 16],
    /// How to get there.
    hop: NextHop,
    /// Whom to kick.
    wake: Arc<dyn Wake>,
}

impl Contact {
    /// Begins with the client's `proposal`; `wake` kicks whoever calls [`Contact::poll`]. Process
    /// context, may sleep on local hardware.
    ///
    /// `Ok(None)`, only if `patient`: a first contact with the same client is under way; asked
    /// again a little later the connection may share its group.
    pub(crate) fn server(
        flow: &Flow<'_>,
        settings: &Settings,
        proposal: &Proposal,
        wake: Arc<dyn Wake>,
        patient: bool,
    ) -> Result<Option<Self>, Reason> {
        let eid = choose(settings, proposal)?;
        let path = find_path(flow)?;
        let hop = path.next_hop(&proposal.gid_v2, proposal.mac)?;
        let key = Key {
            peer_id: proposal.peer_id,
            role: Role::Server,
            vlan: path.vlan(),
            local_gid: path.gid(),
            peer_gid: proposal.gid_v2,
            net: flow.net.id(),
            peer_ip: flow.peer,
        };
        let peer = Peer {
            gid: proposal.gid_v2,
            hop,
            wake,
        };
        match lgr::find_server(&key) {
            Found::Forming if patient => Ok(None),
            Found::Seat(seat) => {
                let parts = Parts::again(seat, settings)?;
                let wake = peer.wake.clone();
                let step = parts.confirm_rmb(wake)?.map_or(Step::Announce, Step::Rkey);
                let hello = parts.hello(eid, None)?;
                Ok(Some(Self::of_server(peer, false, step, parts, hello)))
            }
            Found::Forming | Found::Nothing => {
                Self::server_first(&path, settings, proposal, key, eid, peer).map(Some)
            }
        }
    }

    /// A new link group.
    fn server_first(
        path: &Path,
        settings: &Settings,
        proposal: &Proposal,
        key: Key,
        eid: Eid,
        peer: Peer,
    ) -> Result<Self, Reason> {
        let (max_conns, fce) = negotiate(settings, proposal, !peer.hop.gateway)?;
        let parts = Parts::first(path, key, max_conns, settings)?;
        let hello = parts.hello(eid, Some(fce))?;
        Ok(Self::of_server(peer, true, Step::Announce, parts, hello))
    }

    /// Puts it together.
    fn of_server(peer: Peer, first: bool, step: Step, parts: Parts, hello: Accept) -> Self {
        Self {
            side: Side::Server(peer),
            first,
            step,
            parts,
            hello,
            peer: None,
        }
    }

    /// The client's CONFIRM came; the CLC machine has seen that it fits our ACCEPT. Process context, may sleep on local hardware.
    pub(crate) fn on_confirm(&mut self, confirm: &Accept) -> Result<(), Reason> {
        let step = core::mem::replace(&mut self.step, Step::Over);
        if !matches!(step, Step::AwaitConfirm) {
            return Err(Reason::INTERR);
        }
        if confirm.version < 2 || confirm.first_contact != self.first {
            return Err(Reason::MODEUNSUPP);
        }
        self.step = if self.first {
            Step::Link(self.raise_link(confirm)?)
        } else {
            self.parts.start(confirm)?;
            Step::Ready
        };
        Ok(())
    }

    /// First contact: the link goes up, and CONFIRM LINK out.
    fn raise_link(&mut self, confirm: &Accept) -> Result<Arc<Waiter>, Reason> {
        let Side::Server(peer) = &self.side else {
            return Err(Reason::INTERR);
        };
        let link = &self.parts.link;
        link.connect(&PeerQp {
            gid: peer.gid,
            qpn: confirm.qpn,
            psn: confirm.psn,
            mtu: confirm.mtu.min(link.mtu()),
            hop: peer.hop,
        })
        .map_err(|_| Reason::ERR_RDYLNK)?;
        link.activate().map_err(|_| Reason::ERR_RDYLNK)?;
        let waiter = Waiter::new(peer.wake.clone()).map_err(|_| Reason::MEM)?;
        self.parts.commission()?;
        self.parts.start(confirm)?;
        self.parts.group()?.set_peer_qpn(confirm.qpn);
        self.parts.group()?.request_link(waiter.clone());
        Ok(waiter)
    }
}

/// Whether we can do what the client offers, and under which EID.
fn choose(settings: &Settings, proposal: &Proposal) -> Result<Eid, Reason> {
    if proposal.version < 2 || !proposal.v2.has_r() {
        return Err(Reason::NOSMCRDEV);
    }
    if proposal.eids.is_empty() {
        return Err(Reason::NOUEID);
    }
    if proposal.gid_v2 == [0; 16] {
        return Err(Reason::NOROUTE);
    }
    proposal
        .eids
        .first_known(&settings.eids)
        .ok_or(Reason::NOSMCRDEV)
}

/// The limits of a new group.
fn negotiate(
    settings: &Settings,
    proposal: &Proposal,
    direct: bool,
) -> Result<(u8, FirstContact), Reason> {
    let own = Limits {
        max_conns: settings.max_conns,
        // More than one link isn't supported yet.
        max_links: settings.max_links.min(1),
    };
    let terms = Terms::decide(proposal, own)?;
    let fce = FirstContact::new(
        direct,
        terms.release,
        &host::name(),
        terms.max_conns,
        terms.max_links,
    );
    Ok((terms.max_conns, fce))
}
