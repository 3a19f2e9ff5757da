// SPDX-License-Identifier: GPL-2.0

//! `/proc/net/smc_lgr`; for its columns see [`super::proc`].

use crate::{
    ext::{
        net::NetPtr,
        proc::Show, //
    },
    lgr::{
        for_each,
        Group,
        Phase, //
    }, //
};
use core::net::Ipv6Addr;
use kernel::{
    fmt,
    prelude::*,
    seq_file::SeqFile,
    seq_print, //
};

/// `/proc/net/smc_lgr`.
pub(super) struct Groups;

impl Show for Groups {
    const NAME: &'static CStr = c"smc_lgr";

    fn show(m: &SeqFile, net: NetPtr<'_>) {
        seq_print!(
            m,
            "id role state vlan conns max_conns device port gid peer_gid qpn peer_qpn \
             spare_sndbufs spare_rmbs\n"
        );
        for_each(|group| {
            if group.key.net == net.id() {
                line(m, group);
            }
        });
    }
}

/// A GID for people: GIDs are written as IPv6 addresses.
struct Gid([u8; 16]);

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Ipv6Addr::from(self.0))
    }
}

/// A group's line.
fn line(m: &SeqFile, group: &Group) {
    let info = group.info();
    let role = if group.is_server() {
        "server"
    } else {
        "client"
    };
    seq_print!(m, "{:08x} {role} {}", group.id, word(info.phase));
    match group.key.vlan {
        Some(vlan) => seq_print!(m, " {vlan}"),
        None => seq_print!(m, " -"),
    }
    seq_print!(m, " {} {}", info.conns, info.max_conns);
    match &info.link {
        Some(link) => seq_print!(m, " {} {}", text(&link.device), link.port),
        None => seq_print!(m, " - -"),
    }
    seq_print!(
        m,
        " {} {}",
        Gid(group.key.local_gid),
        Gid(group.key.peer_gid)
    );
    match &info.link {
        Some(link) => seq_print!(m, " {:06x} {:06x}", link.qpn, link.peer_qpn),
        None => seq_print!(m, " - -"),
    }
    seq_print!(m, " {} {}\n", info.spare.0, info.spare.1);
}

/// Where a group is in its life, in a word.
fn word(phase: Phase) -> &'static str {
    match phase {
        Phase::Forming => "FORMING",
        Phase::Live => "LIVE",
        Phase::Dying | Phase::Dead => "ENDING",
    }
}

/// A zero padded name.
fn text(name: &[u8]) -> &str {
    let name = name.split(|&b| b == 0).next().unwrap_or_default();
    core::str::from_utf8(name).unwrap_or("?")
}
