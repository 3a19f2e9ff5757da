// SPDX-License-Identifier: GPL-2.0

//! What both sides of a contact gather: connection, link, rings.

use crate::{
    cdc::{
        state::{
            PeerRmb,
            Rings, //
        },
        Conn, //
    },
    ext::ring::RingMem,
    ib::{
        Link,
        Path, //
    },
    lgr::{
        avoid,
        Group,
        Key,
        Seat,
        Settings,
        Waiter,
        Wake, //
    },
    proto::{
        eid::Eid,
        reason::Reason,
        size::SizeCode,
        wire::clc_accept::{
            Accept,
            FirstContact, //
        }, //
    },
    rmb::{
        self,
        Ring, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A send buffer, mapped or not: memory can only be mapped on a link that is up.
enum Snd {
    /// Not mapped.
    Memory(Arc<RingMem>),
    /// Mapped.
    Ring(Arc<Ring>),
}

/// Connection, link, rings. Dropping it without [`Parts::hand_over`] ends the connection.
pub(super) struct Parts {
    /// The connection, until it is handed over.
    conn: Option<Arc<Conn>>,
    /// The link.
    pub(super) link: Arc<Link>,
    /// The send buffer, until the connection has it.
    snd: Option<Snd>,
    /// The receive buffer.
    rmb: Arc<Ring>,
    /// Whether the connection has the rings.
    armed: bool,
    /// Whom CONFIRM LINK kicks.
    link_waiter: Option<Arc<Waiter>>,
}

/// A failure for want of memory or of a device.
fn mem<E>(_: E) -> Reason {
    Reason::MEM
}

impl Parts {
    /// A new group with a link that isn't connected, for first contact. May sleep.
    pub(super) fn first(
        path: &Path,
        key: Key,
        max_conns: u8,
        settings: &Settings,
    ) -> Result<Self, Reason> {
        if avoid::is_avoided(key.local_gid, key.peer_gid) {
            return Err(Reason::TIMEOUT_CL);
        }
        let seat = Group::form(key, max_conns).map_err(mem)?;
        let group = Arc::clone(&seat);
        let link = group.make_link(path, settings)?;
        let snd = rmb::alloc(settings.sndbuf).map_err(mem)?;
        let memory = rmb::alloc(settings.rmb).map_err(mem)?;
        let mr = link.alloc_mr(&memory).map_err(mem)?;
        let rmb = Ring::new(mr).map_err(mem)?;
        // The peer learns the key by CLC; it needs no confirmation while there is one link.
        rmb.set_confirmed();
        Ok(Self {
            conn: Some(Conn::new(seat, link.clone()).map_err(mem)?),
            link,
            snd: Some(Snd::Memory(snd)),
            rmb,
            armed: false,
            link_waiter: None,
        })
    }

    /// A connection in a group that is in use. May sleep.
    pub(super) fn again(seat: Seat, settings: &Settings) -> Result<Self, Reason> {
        let group = Arc::clone(&seat);
        let link = group.link().ok_or(Reason::NOACTLINK)?;
        let rmb = group.take_rmb(&link, settings.rmb)?;
        let snd = match group.take_snd(&link, settings.sndbuf) {
            Ok(snd) => snd,
            Err(reason) => {
                group.give_back_rmb(rmb);
                return Err(reason);
            }
        };
        let parts = Self {
            conn: None,
            link: link.clone(),
            snd: Some(Snd::Ring(snd)),
            rmb,
            armed: false,
            link_waiter: None,
        };
        parts.with_conn(seat)
    }

    /// Adds the connection; on failure the rings go back.
    fn with_conn(mut self, seat: Seat) -> Result<Self, Reason> {
        let group = Arc::clone(&seat);
        match Conn::new(seat, self.link.clone()) {
            Ok(conn) => {
                self.conn = Some(conn);
                self.arm()?;
                Ok(self)
            }
            Err(_) => {
                if let Some(Snd::Ring(snd)) = self.snd.take() {
                    group.put_snd(snd);
                }
                group.give_back_rmb(self.rmb.clone());
                Err(Reason::MEM)
            }
        }
    }

    /// The connection.
    fn conn(&self) -> Result<&Arc<Conn>, Reason> {
        self.conn.as_ref().ok_or(Reason::INTERR)
    }

    /// The link group.
    pub(super) fn group(&self) -> Result<&Arc<Group>, Reason> {
        Ok(self.conn()?.group())
    }

    /// Makes a new RMB known to the peer; `None` if the peer knows it already.
    pub(super) fn confirm_rmb(&self, wake: Arc<dyn Wake>) -> Result<Option<Arc<Waiter>>, Reason> {
        if self.rmb.is_confirmed() {
            return Ok(None);
        }
        let waiter = Waiter::new(wake).map_err(mem)?;
        self.group()?.confirm_rkey(&self.rmb, waiter.clone())?;
        Ok(Some(waiter))
    }

    /// The peer knows the RMB now.
    pub(super) fn rmb_confirmed(&self) {
        self.rmb.set_confirmed();
    }

    /// First contact, link up: maps the send buffer, registers the RMB. Sleeps on the device.
    pub(super) fn commission(&mut self) -> Result<(), Reason> {
        if let Some(Snd::Memory(memory)) = &self.snd {
            let mr = self.link.map(memory).map_err(|_| Reason::ERR_REGBUF)?;
            self.snd = Some(Snd::Ring(Ring::new(mr).map_err(mem)?));
        }
        self.link
            .register_mr(self.rmb.mr())
            .map_err(|_| Reason::ERR_REGBUF)?;
        self.arm()
    }

    /// Gives the rings to the connection.
    fn arm(&mut self) -> Result<(), Reason> {
        let Some(Snd::Ring(snd)) = self.snd.take() else {
            return Err(Reason::INTERR);
        };
        self.armed = true;
        self.conn()?.set_rings(Rings {
            snd,
            rmb: self.rmb.clone(),
        });
        Ok(())
    }

    /// The peer's half is known.
    pub(super) fn start(&self, peer: &Accept) -> Result<(), Reason> {
        let peer = peer_rmb(peer)?;
        self.conn()?.start(peer).map_err(|_| Reason::INTERR)
    }

    /// The link is confirmed: the group may be shared.
    pub(super) fn go_live(&self) -> Result<(), Reason> {
        if self.group()?.go_live() {
            Ok(())
        } else {
            Err(Reason::NOACTLINK)
        }
    }

    /// A link that could not be confirmed in time isn't tried again for a while.
    pub(super) fn avoid(&self, reason: Reason) {
        if let (Ok(group), Reason::TIMEOUT_CL) = (self.group(), reason) {
            avoid::note(group.key.local_gid, group.key.peer_gid);
        }
    }

    /// The link was confirmed: what failed between these ports meanwhile doesn't count.
    pub(super) fn works(&self) {
        if let Ok(group) = self.group() {
            avoid::forget(group.key.local_gid, group.key.peer_gid);
        }
    }

    /// Remembers whom CONFIRM LINK kicks.
    pub(super) fn set_link_waiter(&mut self, waiter: Arc<Waiter>) {
        self.link_waiter = Some(waiter);
    }

    /// Whom CONFIRM LINK kicks, if it is to come.
    pub(super) fn take_link_waiter(&mut self) -> Option<Arc<Waiter>> {
        self.link_waiter.take()
    }

    /// The connection goes to its user.
    pub(super) fn hand_over(&mut self) -> Option<Arc<Conn>> {
        self.conn.take()
    }

    /// Our half, as ACCEPT or CONFIRM tells it.
    pub(super) fn hello(&self, eid: Eid, fce: Option<FirstContact>) -> Result<Accept, Reason> {
        let size = usize::try_from(self.rmb.size()).map_err(mem)?;
        Ok(Accept {
            version: 2,
            first_contact: fce.is_some(),
            peer_id: crate::ib::system_id(),
            gid: self.link.gid(),
            mac: self.link.mac(),
            qpn: self.link.qpn(),
            rkey: self.rmb.mr().rkey(),
            rmbe_index: 1,
            token: self.conn()?.token(),
            rmbe_size: SizeCode::from_size(size),
            mtu: self.link.mtu(),
            vaddr: self.rmb.mr().addr(),
            psn: self.link.psn(),
            eid,
            fce,
        })
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            conn.group().contact_failed();
            conn.abort();
        }
    }
}

/// The peer's half out of its ACCEPT or CONFIRM.
fn peer_rmb(peer: &Accept) -> Result<PeerRmb, Reason> {
    let size = u32::try_from(peer.rmbe_size.bytes()).map_err(|_| Reason::ERR_RTOK)?;
    let before = u64::from(peer.rmbe_index.checked_sub(1).ok_or(Reason::ERR_RTOK)?);
    let addr = peer.vaddr.checked_add(before * u64::from(size));
    Ok(PeerRmb {
        token: peer.token,
        rkey: peer.rkey,
        addr: addr.ok_or(Reason::ERR_RTOK)?,
        size,
    })
}
