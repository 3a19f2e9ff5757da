// SPDX-License-Identifier: GPL-2.0

//! What a connection looks like from outside.

use super::Conn;
use crate::{
    lgr::Group,
    proto::{
        conn::Connection,
        ring::Pos, //
    }, //
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
    /// Our queue pair.
    pub(crate) qpn: u32,
    /// Our name for it.
    pub(crate) token: u32,
    /// The peer's name for it.
    pub(crate) peer_token: u32,
    /// Bytes of the send buffer; 0 when it was given back.
    pub(crate) sndbuf: u32,
    /// Bytes of the receive buffer; 0 when it was given back.
    pub(crate) rmb: u32,
    /// Bytes of the peer's receive buffer.
    pub(crate) peer_rmb: u32,
    /// Messages that have not completed.
    pub(crate) posts: u32,
    /// Bytes that were posted so far.
    pub(crate) sent: Pos,
    /// Bytes that arrived so far.
    pub(crate) received: Pos,
    /// Bytes of them that were read or thrown away.
    pub(crate) read: Pos,
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
        let Some(conn) = core.conn.as_ref() else {
            return Status {
                error,
                ..Status::default()
            };
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
            error,
        };
        core.want_space |= status.tx_space == 0;
        drop(core);
        if status.tx_space == 0 {
            self.link.want_sent();
        }
        status
    }

    /// Like [`Conn::status`], for somebody who waits for `inflight` to go down.
    pub(crate) fn status_of_sent(&self) -> Status {
        let status = self.status();
        if status.inflight > 0 {
            self.link.want_sent();
        }
        status
    }

    /// Whether a receiver who has seen `seen` bytes finds something new.
    pub(crate) fn has_news(&self, seen: usize) -> bool {
        let core = self.core.lock();
        let conn = core.conn.as_ref();
        core.error.is_some() || conn.is_some_and(|c| c.readable() > seen || c.peer_done())
    }

    /// Whether a sender finds room, or an error; if not, WRITABLE will come.
    pub(crate) fn has_room(&self) -> bool {
        let mut core = self.core.lock();
        let conn = core.conn.as_ref();
        if core.error.is_some() || conn.is_some_and(|c| c.tx_space() > 0 || c.tx_over()) {
            return true;
        }
        core.want_space = true;
        drop(core);
        self.link.want_sent();
        false
    }

    /// For display.
    pub(crate) fn info(&self) -> ConnInfo {
        let core = self.core.lock();
        let (sndbuf, rmb) = core.sizes();
        let counts = core.conn.as_ref().map(Connection::snapshot);
        let (sent, received, read) = counts.map_or_else(Default::default, |counts| {
            (counts.sent, counts.received, counts.read)
        });
        ConnInfo {
            group: self.seat.id,
            qpn: self.link.qpn(),
            token: self.token,
            peer_token: core.peer.token,
            sndbuf,
            rmb,
            peer_rmb: core.peer.size,
            posts: core.posts,
            sent,
            received,
            read,
        }
    }
}
