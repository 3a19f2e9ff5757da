// SPDX-License-Identifier: GPL-2.0

//! What a link group looks like from outside.

use super::group::{
    Group,
    Phase, //
};

/// A link of a group for display.
pub(crate) struct LinkInfo {
    /// Name of the device, zero padded.
    pub(crate) device: [u8; 64],
    /// Number of the device's port.
    pub(crate) port: u8,
    /// Our queue pair.
    pub(crate) qpn: u32,
    /// The peer's queue pair; 0 as long as it isn't known.
    pub(crate) peer_qpn: u32,
}

/// A link group for display.
pub(crate) struct GroupInfo {
    /// Where it is in its life.
    pub(crate) phase: Phase,
    /// Connections.
    pub(crate) conns: u32,
    /// Most connections.
    pub(crate) max_conns: u8,
    /// The link, while there is one.
    pub(crate) link: Option<LinkInfo>,
    /// Send and receive buffers that no connection uses.
    pub(crate) spare: (usize, usize),
}

impl Group {
    /// For display. May sleep.
    pub(crate) fn info(&self) -> GroupInfo {
        let link = self.link().map(|link| {
            let (device, port) = link.path().device();
            LinkInfo {
                device,
                port,
                qpn: link.qpn(),
                peer_qpn: self.peer_qpn(),
            }
        });
        GroupInfo {
            phase: self.phase(),
            conns: self.seats(),
            max_conns: self.max_conns,
            link,
            spare: self.pool.unused(),
        }
    }
}
