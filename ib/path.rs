// SPDX-License-Identifier: GPL-2.0

//! The local end of a link: device, port and GID for a TCP connection.
//!
//! The device is chosen by the route of the TCP connection: a port that has a RoCEv2 GID on the
//! interface by which the packets leave, with a subnet that has the local address in it, best the
//! local address itself. A GID table can have a thousand entries, hence the cache; whatever
//! happens to a device empties it.

use super::{
    device::{
        registry,
        Device, //
    },
    Flow,
    NextHop,
    Reason, //
};
use crate::ext::{
    net::NetPtr,
    route,
    verbs::{
        DevRef,
        GidAttr,
        Hop, //
    }, //
};
use core::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A local port and GID that can carry a connection's data. It holds no device: one that goes
/// away makes later steps fail.
#[derive(Clone)]
pub(crate) struct Path {
    /// The device.
    pub(super) device: Arc<Device>,
    /// Its port.
    pub(super) port: u32,
    /// The GID's index.
    pub(super) index: u32,
    /// The GID.
    pub(super) gid: [u8; 16],
    /// The interface's MAC address.
    mac: [u8; 6],
    /// The interface's VLAN.
    vlan: Option<u16>,
}

/// What a path is looked up by: namespace, interface, local address.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key(u64, u32, Ipv4Addr);

/// Paths found lately.
pub(super) struct Cache {
    /// The paths, newest overwriting oldest.
    entries: [Option<(Key, Path)>; Self::SIZE],
    /// Where the next one goes.
    next: usize,
    /// Counts how often the cache was emptied.
    generation: u64,
}

impl Cache {
    /// Paths kept.
    const SIZE: usize = 16;

    /// An empty cache.
    pub(super) fn new() -> Self {
        Self {
            entries: [const { None }; Self::SIZE],
            next: 0,
            generation: 0,
        }
    }

    /// Empties it.
    pub(super) fn clear(&mut self) {
        self.entries = [const { None }; Self::SIZE];
        self.generation = self.generation.wrapping_add(1);
    }

    /// Looks a path up.
    fn get(&self, key: &Key) -> Option<Path> {
        let mut found = self.entries.iter().flatten();
        found.find(|(k, _)| k == key).map(|(_, p)| p.clone())
    }

    /// Remembers a path that was found when the cache was in `generation`.
    fn put(&mut self, generation: u64, key: Key, path: Path) {
        if generation == self.generation {
            if let Some(entry) = self.entries.get_mut(self.next) {
                *entry = Some((key, path));
            }
            self.next = (self.next + 1) % Self::SIZE;
        }
    }
}

/// The IPv4 address of `addr`, if it has one that can be routed.
fn ipv4(addr: IpAddr) -> Option<Ipv4Addr> {
    let v4 = match addr {
        IpAddr::V4(a) => a,
        IpAddr::V6(a) => a.to_ipv4_mapped()?,
    };
    (!v4.is_link_local() && !v4.is_unspecified() && !v4.is_multicast()).then_some(v4)
}

/// Finds the local port and GID for `flow`, by the route of its TCP connection. May sleep.
pub(crate) fn find_path(flow: &Flow<'_>) -> Result<Path, Reason> {
    let registry = registry().ok_or(Reason::NOSMCDEV)?;
    let local = ipv4(flow.local).ok_or(Reason::NOSMCDEV)?;
    let peer = ipv4(flow.peer).ok_or(Reason::NOSMCDEV)?;
    let route = route::Key {
        local,
        peer,
        ifindex: flow.ifindex,
        mark: flow.mark,
        uid: flow.uid,
    };
    let ifindex = route::interface(flow.net, &route).ok_or(Reason::NOSMCDEV)?;
    let key = Key(flow.net.cookie(), ifindex, local);

    let cache = registry.cache.lock();
    let (generation, cached) = (cache.generation, cache.get(&key));
    drop(cache);
    if let Some(path) = cached.filter(|p| p.usable_from(flow.net)) {
        return Ok(path);
    }
    let path = registry
        .find(|device| search(device, flow.net, ifindex, local))
        .ok_or(Reason::NOSMCDEV)?;
    registry.cache.lock().put(generation, key, path.clone());
    Ok(path)
}

/// Searches the ports of a device.
fn search(device: &Arc<Device>, net: NetPtr<'_>, ifindex: u32, local: Ipv4Addr) -> Option<Path> {
    let hold = device.dev.get()?;
    if !hold.usable_from(net) {
        return None;
    }
    (1..=device.port_count()).find_map(|port| {
        let info = device.port(port).filter(|p| p.active)?;
        let gid = best_gid(&hold, port, info.gids, net, ifindex, local)?;
        let (vlan, mac) = gid.l2().ok()?;
        Some(Path {
            device: device.clone(),
            port,
            index: gid.index(),
            gid: gid.gid(),
            mac,
            vlan,
        })
    })
}

/// The GID of the local address, else one that serves its subnet.
fn best_gid<'a>(
    hold: &'a DevRef,
    port: u32,
    table: u32,
    net: NetPtr<'_>,
    ifindex: u32,
    local: Ipv4Addr,
) -> Option<GidAttr<'a>> {
    let serves = |g: &GidAttr<'_>| g.ipv4().is_some() && g.serves(net, ifindex, local);
    let exact = hold.find_gid(port, net, ifindex, local);
    exact.filter(serves).or_else(|| {
        (0..table)
            .filter_map(|index| hold.gid(port, index))
            .find(|g| g.is_v2() && serves(g))
    })
}

impl Path {
    /// The RoCEv2 GID: an IPv4-mapped address.
    pub(crate) fn gid(&self) -> [u8; 16] {
        self.gid
    }

    /// The MAC address that goes with the GID.
    pub(crate) fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// The VLAN, if any.
    pub(crate) fn vlan(&self) -> Option<u16> {
        self.vlan
    }

    /// The device's name, zero padded, and port.
    pub(crate) fn device(&self) -> ([u8; 64], u8) {
        (self.device.name, u8::try_from(self.port).unwrap_or(0))
    }

    /// Whether sockets of `net` may use it, and it works.
    fn usable_from(&self, net: NetPtr<'_>) -> bool {
        let hold = self.device.dev.get();
        hold.is_some_and(|h| h.usable_from(net))
            && self.device.port(self.port).is_some_and(|p| p.active)
    }

    /// Calls `f` with our GID's table entry, if it is still our GID's.
    pub(super) fn with_gid<T>(&self, f: impl FnOnce(&GidAttr<'_>) -> Result<T>) -> Result<T> {
        let hold = self.device.dev.get().ok_or(ENODEV)?;
        let gid = hold.gid(self.port, self.index).ok_or(ENODEV)?;
        if gid.gid() != self.gid || !gid.is_v2() {
            return Err(ENODEV);
        }
        f(&gid)
    }

    /// Route and neighbour to the peer's GID. `peer_mac` (from CLC; may be zero) is used where the
    /// neighbour is not known. Process context, does not wait for the network.
    pub(crate) fn next_hop(
        &self,
        peer_gid: &[u8; 16],
        peer_mac: [u8; 6],
    ) -> Result<NextHop, Reason> {
        // A peer may name anything: not ourselves by a name that everybody has.
        let peer = ipv4(Ipv6Addr::from(*peer_gid).into())
            .filter(|ip| !ip.is_loopback())
            .ok_or(Reason::NOROUTE)?;
        let hop = self
            .with_gid(|g| g.next_hop(peer))
            .map_err(|_| Reason::NOROUTE)?;
        let direct = |mac| NextHop {
            mac,
            gateway: false,
        };
        match hop {
            Hop::Known { mac, gateway } => Ok(NextHop { mac, gateway }),
            Hop::Local => Ok(direct(self.mac)),
            Hop::Unknown { gateway: false } if peer_mac != [0; 6] => Ok(direct(peer_mac)),
            // A gateway's address is nothing the peer could tell us.
            Hop::Unknown { .. } => Err(Reason::NOROUTE),
        }
    }
}
