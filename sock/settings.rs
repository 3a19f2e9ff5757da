// SPDX-License-Identifier: GPL-2.0

//! What a connection is made with: its flow and its namespace's settings.

use crate::{
    ext::sk::Sk,
    ib::Flow,
    lgr::Settings,
    sysctl, //
};

/// The flow of `sk`'s connection, for the choice of a device.
pub(super) fn flow(sk: &Sk) -> Flow<'_> {
    Flow {
        net: sk.net(),
        local: sk.local().ip.to_canonical(),
        peer: sk.peer().ip.to_canonical(),
        ifindex: sk.bound_ifindex(),
        mark: sk.mark(),
        uid: sk.uid(),
    }
}

/// The settings of a new connection of `sk`.
pub(super) fn settings(sk: &Sk) -> Settings {
    let net = sysctl::state(sk.net());
    let (snd, rcv) = sk.user_buffers();
    Settings {
        sndbuf: snd.unwrap_or_else(|| net.wmem()),
        rmb: rcv.unwrap_or_else(|| net.rmem()),
        max_conns: crate::lgr::MAX_CONNS,
        max_links: 1,
        test_link_ms: net.test_link_ms(),
        eids: sysctl::eids(),
    }
}
