// SPDX-License-Identifier: GPL-2.0

//! What a connection looks like from outside.

use super::Conn;
use crate::lgr::{
    Group,
    PortInfo, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// State of a connection for its user.
#[derive(Clone, Copy, Default)]
pub(crate) struct Status {
    /// Bytes that can be read.
    pub(crate) readable: usize,
    /// Bytes that can be written. If there are none, WRITABLE will come.
    pub(crate) tx_space: usize,
    /// Size of the send buffer.
    pub(crate) sndbuf_size: u32,
    /// Size of the receive buffer.
    pub(crate) rmb_size: u32,
    /// Bytes written that have not been posted.
    pub(crate) unsent: usize,
    /// Bytes posted that have not arrived.
    pub(crate) inflight: usize,
    /// Bytes that arrived, or are on the way, that the peer has not read.
    pub(crate) peer_unread: usize,
    /// We write no more.
    pub(crate) write_shut: bool,
    /// The peer writes no more.
    pub(crate) peer_done: bool,
    /// The peer closed in order.
    pub(crate) peer_closed: bool,
    /// The peer aborted.
    pub(crate) peer_aborted: bool,
    /// All data and the flag of a shutdown or close arrived at the peer.
    pub(crate) drained: bool,
    /// Why the connection was cut off; comes after the readable data.
    pub(crate) error: Option<Error>,
}

/// A connection for display.
pub(crate) struct ConnInfo {
    /// Number of the link group.
    pub(crate) group: u32,
    /// Whether we are the server.
    pub(crate) server: bool,
    /// Name of the device, zero padded.
    pub(crate) device: [u8; 64],
    /// Number of the device's port.
    pub(crate) port: u8,
    /// Our GID.
    pub(crate) gid: [u8; 16],
    /// The peer's GID.
    pub(crate) peer_gid: [u8; 16],
    /// Our queue pair.
    pub(crate) qpn: u32,
    /// Tokens, sizes and cursors.
    pub(crate) conn: PortInfo,
}

impl Conn {
    /// The link group.
    pub(crate) fn group(&self) -> &Arc<Group> {
        &self.seat
    }

    /// How things are. Any context but hard interrupts.
    pub(crate) fn status(&self) -> Status {
        let mut core = self.core.lock();
        let error = core.error;
        let (snd, rmb) = core.sizes();
        let sizes = Status {
            sndbuf_size: snd,
            rmb_size: rmb,
            error,
            ..Status::default()
        };
        let Some(conn) = core.conn.as_ref() else {
            return sizes;
        };
        let status = Status {
            readable: conn.readable(),
            tx_space: conn.tx_space(),
            unsent: conn.unsent(),
            inflight: conn.inflight(),
            peer_unread: conn.peer_unread(),
            write_shut: conn.write_shut(),
            peer_done: conn.peer_done(),
            peer_closed: conn.peer_closed(),
            peer_aborted: conn.peer_aborted(),
            drained: conn.drained(),
            ..sizes
        };
        core.want_space |= status.tx_space == 0;
        status
    }

    /// Tokens, sizes and cursors.
    pub(super) fn port_info(&self) -> PortInfo {
        let core = self.core.lock();
        let (sndbuf, rmb) = core.sizes();
        PortInfo {
            token: self.token,
            peer_token: core.peer.token,
            sndbuf,
            rmb,
            peer_rmb: core.peer.size,
            posts: core.posts,
            cursors: core.conn.as_ref().map(|conn| conn.snapshot()),
        }
    }

    /// For display.
    pub(crate) fn info(&self) -> ConnInfo {
        let group = self.group();
        let (device, port) = self.link.path().device();
        ConnInfo {
            group: group.id,
            server: group.is_server(),
            device,
            port,
            gid: self.link.gid(),
            peer_gid: group.key.peer_gid,
            qpn: self.link.qpn(),
            conn: self.port_info(),
        }
    }
}
