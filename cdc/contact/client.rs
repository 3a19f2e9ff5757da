// SPDX-License-Identifier: GPL-2.0

//! Contact of a client: the server's ACCEPT is there.

use super::{
    parts::Parts,
    Contact,
    Side,
    Step, //
};
use crate::{
    ext::host,
    ib::PeerQp,
    lgr::{
        self,
        Key,
        Offer,
        Waiter,
        Wake, //
    },
    proto::{
        clc::Terms,
        llc::Role,
        reason::Reason,
        wire::clc_accept::{
            Accept,
            FirstContact, //
        }, //
    }, //
};
use kernel::sync::Arc;

impl Contact {
    /// Begins with the server's `accept` to our `offer`; `wake` kicks whoever calls
    /// [`Contact::poll`]. Process context, may sleep on local hardware.
    pub(crate) fn client(
        offer: Offer,
        accept: &Accept,
        wake: Arc<dyn Wake>,
    ) -> Result<Self, Reason> {
        if accept.version < 2 || !accept.mtu_valid() || !offer.settings.eids.contains(&accept.eid) {
            return Err(Reason::MODEUNSUPP);
        }
        let key = Key {
            peer_id: accept.peer_id,
            role: Role::Client,
            vlan: offer.path.vlan(),
            local_gid: offer.path.gid(),
            peer_gid: accept.gid,
            net: offer.net,
            peer_ip: offer.peer_ip,
        };
        if accept.first_contact {
            Self::client_first(&offer, accept, key, wake)
        } else {
            Self::client_again(&offer, accept, &key, wake)
        }
    }

    /// A new link group.
    fn client_first(
        offer: &Offer,
        accept: &Accept,
        key: Key,
        wake: Arc<dyn Wake>,
    ) -> Result<Self, Reason> {
        let (max_conns, answer) = negotiate(accept)?;
        let hop = offer.path.next_hop(&accept.gid, accept.mac)?;
        if !answer.direct && !hop.gateway {
            return Err(Reason::NOINDIRECT);
        }
        let mut parts = Parts::first(&offer.path, key, max_conns, &offer.settings)?;
        let waiter = Waiter::new(wake).map_err(|_| Reason::MEM)?;
        parts.group()?.set_peer_qpn(accept.qpn);
        parts.group()?.expect_link(waiter.clone());
        parts.set_link_waiter(waiter);
        let mtu = accept.mtu.min(parts.link.mtu());
        parts
            .link
            .connect(&PeerQp {
                gid: accept.gid,
                qpn: accept.qpn,
                psn: accept.psn,
                mtu,
                hop,
            })
            .map_err(|_| Reason::ERR_RDYLNK)?;
        let mut hello = parts.hello(accept.eid, Some(answer))?;
        hello.mtu = mtu;
        Ok(Self {
            side: Side::Client,
            first: true,
            step: Step::Announce,
            parts,
            hello,
            peer: Some(*accept),
        })
    }

    /// A link group that both sides have.
    fn client_again(
        offer: &Offer,
        accept: &Accept,
        key: &Key,
        wake: Arc<dyn Wake>,
    ) -> Result<Self, Reason> {
        let seat = lgr::find_client(key, accept.qpn)?;
        let parts = Parts::again(seat, &offer.settings)?;
        parts.start(accept)?;
        let step = parts.confirm_rmb(wake)?.map_or(Step::Announce, Step::Rkey);
        let mut hello = parts.hello(accept.eid, None)?;
        hello.mtu = accept.mtu.min(hello.mtu);
        Ok(Self {
            side: Side::Client,
            first: false,
            step,
            parts,
            hello,
            peer: Some(*accept),
        })
    }

    /// The server asked for CONFIRM LINK: the link goes up, then comes the answer.
    pub(super) fn finish_client_link(&mut self) -> Result<(), Reason> {
        self.parts.link.activate().map_err(|_| Reason::ERR_RDYLNK)?;
        self.parts.commission()?;
        let peer = self.peer.ok_or(Reason::INTERR)?;
        self.parts.start(&peer)?;
        // The server may use the group for others as soon as it has the answer.
        self.parts.go_live()?;
        self.parts.group()?.answer_link();
        Ok(())
    }
}

/// Checks the server's limits; gives the number of connections and our answer.
fn negotiate(accept: &Accept) -> Result<(u8, FirstContact), Reason> {
    let (Some(fce), Some(terms)) = (&accept.fce, Terms::accepted(accept)?) else {
        return Err(Reason::RELEASEERR);
    };
    let answer = FirstContact::new(
        fce.direct,
        terms.release,
        &host::name(),
        terms.max_conns,
        terms.max_links,
    );
    Ok((terms.max_conns, answer))
}
