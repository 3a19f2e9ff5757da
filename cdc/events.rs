// SPDX-License-Identifier: GPL-2.0

//! What a connection tells its user, the socket.

use core::ops::{
    BitOr,
    BitOrAssign, //
};

/// A set of events.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Events(u32);

impl Events {
    /// Nothing.
    pub(crate) const NONE: Self = Self(0);
    /// There is something to receive.
    pub(crate) const READABLE: Self = Self(1);
    /// There is room to send.
    pub(crate) const WRITABLE: Self = Self(2);
    /// The peer won't send any more.
    pub(crate) const RCV_CLOSED: Self = Self(4);
    /// The connection is broken; see [`Status::error`](super::Status).
    pub(crate) const ERROR: Self = Self(8);
    /// All that was sent, and the close flag, arrived at the peer.
    pub(crate) const DRAINED: Self = Self(16);
    /// The connection needs nothing more from its user, who is forgotten now.
    pub(crate) const CLOSED: Self = Self(32);
    /// Urgent data is on its way or there.
    pub(crate) const URGENT: Self = Self(64);
    /// Sent data was acknowledged, or the peer moved on: restarts the time-outs of a close. Not
    /// told while the user is there, who has no use for it.
    pub(crate) const PROGRESS: Self = Self(128);

    /// Whether any event of `other` is in the set.
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the set is empty.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set, if `on`.
    pub(crate) const fn when(self, on: bool) -> Self {
        if on {
            self
        } else {
            Self::NONE
        }
    }
}

impl BitOr for Events {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Events {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// The user of a connection.
pub(crate) trait Owner: Send + Sync {
    /// Something happened. No lock of the connection is held; softirq is possible, so it must not
    /// sleep. It may come late, twice, or after the user closed: look at the connection's status.
    fn on_event(&self, events: Events);
}
