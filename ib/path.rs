// SPDX-License-Identifier: GPL-2.0

//! The local end of a link: device, port and GID for a TCP connection.

use super::{
    Flow,
    NextHop,
    Reason, //
};

/// A local port and GID that can carry a connection's data. It holds no device: one that goes
/// away makes later steps fail.
#[derive(Clone)]
pub(crate) struct Path {}

/// Finds the local port and GID for `flow`, by the route of its TCP connection. Process context.
pub(crate) fn find_path(_flow: &Flow<'_>) -> Result<Path, Reason> {
    Err(Reason(0x0303_0000))
}

impl Path {
    /// The RoCEv2 GID: an IPv4-mapped address.
    pub(crate) fn gid(&self) -> [u8; 16] {
        [0; 16]
    }

    /// The MAC address that goes with the GID.
    pub(crate) fn mac(&self) -> [u8; 6] {
        [0; 6]
    }

    /// The port's MTU (`enum ib_mtu`) when last looked at.
    pub(crate) fn mtu(&self) -> u8 {
        0
    }

    /// The VLAN, if any.
    pub(crate) fn vlan(&self) -> Option<u16> {
        None
    }

    /// The device's name and port, zero padded.
    pub(crate) fn device(&self) -> ([u8; 64], u8) {
        ([0; 64], 1)
    }

    /// Whether both lead through the same port and GID.
    pub(crate) fn same_port(&self, _other: &Self) -> bool {
        false
    }

    /// Route and neighbour to the peer's GID. `peer_mac` (from CLC; may be zero) is used where the
    /// neighbour is not known. Process context, does not sleep for the network.
    pub(crate) fn next_hop(
        &self,
        _peer_gid: &[u8; 16],
        _peer_mac: [u8; 6],
    ) -> Result<NextHop, Reason> {
        Err(Reason(0x0309_0000))
    }
}
