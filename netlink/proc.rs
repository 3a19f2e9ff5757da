// SPDX-License-Identifier: GPL-2.0

//! The files below `/proc/net`.
//!
//! `smc` and `smc6` have a line for each socket that has a state: from connect() or listen() to
//! the end of its close, or until it became plain TCP. Columns, separated by blanks:
//! `sl local_address remote_address st uid inode transport role lgr link fallback peer_diag`, then,
//! `-` without an SMC connection: `token peer_token` the ends' names for the connection, `sndbuf
//! rmb peer_rmb` sizes of the buffers, `posts` messages under way, `sent received read` bytes.
//!
//! `smc_lgr` has a line for each link group that isn't ending. Columns: `id role state vlan conns
//! max_conns device port gid peer_gid qpn peer_qpn spare_sndbufs spare_rmbs`; `-` is what it
//! doesn't have (yet). `lgr` and `link` of `smc` are `id` and `qpn` here; the spare buffers are
//! ready for later connections.
//!
//! `smc_stat` has `name value` lines: what became of the namespace's sockets. Those of reasons to
//! fall back end with what the reason means.

use super::groups::Groups;
use crate::{
    cdc::ConnInfo,
    ext::{
        net::NetPtr,
        proc::{
            create,
            remove,
            Show, //
        },
        sk::Endpoint, //
    },
    sock::{
        for_each,
        Phase,
        SmcSock, //
    },
    sysctl, //
};
use core::net::IpAddr;
use kernel::{
    fmt,
    prelude::*,
    seq_file::SeqFile,
    seq_print, //
};

/// Creates a namespace's files. May sleep.
pub(crate) fn net_init(net: NetPtr<'_>) -> Result {
    create::<V4>(net)?;
    create::<V6>(net).inspect_err(|_| remove::<V4>(net))?;
    create::<Groups>(net).inspect_err(|_| {
        remove::<V4>(net);
        remove::<V6>(net);
    })?;
    create::<Stat>(net).inspect_err(|_| {
        remove::<V4>(net);
        remove::<V6>(net);
        remove::<Groups>(net);
    })
}

/// Removes a namespace's files. May sleep.
pub(crate) fn net_exit(net: NetPtr<'_>) {
    remove::<V4>(net);
    remove::<V6>(net);
    remove::<Groups>(net);
    remove::<Stat>(net);
}

/// `/proc/net/smc`.
struct V4;
/// `/proc/net/smc6`.
struct V6;
/// `/proc/net/smc_stat`.
struct Stat;

impl Show for V4 {
    const NAME: &'static CStr = c"smc";

    fn show(m: &SeqFile, net: NetPtr<'_>) {
        sockets(m, net, false);
    }
}

impl Show for V6 {
    const NAME: &'static CStr = c"smc6";

    fn show(m: &SeqFile, net: NetPtr<'_>) {
        sockets(m, net, true);
    }
}

/// An address for people and scripts: `a.b.c.d:port`, `[v6]:port`.
struct Shown(Endpoint);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.ip {
            IpAddr::V4(ip) => write!(f, "{ip}:{}", self.0.port),
            IpAddr::V6(ip) => write!(f, "[{ip}]:{}", self.0.port),
        }
    }
}

fn sockets(m: &SeqFile, net: NetPtr<'_>, v6: bool) {
    seq_print!(
        m,
        "sl local_address remote_address st uid inode transport role lgr link fallback peer_diag \
         token peer_token sndbuf rmb peer_rmb posts sent received read\n"
    );
    let mut sl = 0;
    for_each(|state| {
        let sk = state.sk();
        if sk.net().cookie() != net.cookie() || sk.is_v6() != v6 {
            return;
        }
        let role = if state.is_server() || state.phase() == Phase::Listening {
            "server"
        } else {
            "client"
        };
        let (reason, peer) = state.reasons();
        seq_print!(
            m,
            "{sl} {} {} {} {} {} {} {role}",
            Shown(sk.local()),
            Shown(sk.peer()),
            word(state),
            sk.uid(),
            sk.inode(),
            transport(state)
        );
        sl += 1;
        let info = state.conn().map(|conn| conn.info());
        match &info {
            Some(info) => seq_print!(m, " {:08x} {:06x}", info.group, info.qpn),
            None => seq_print!(m, " - -"),
        }
        seq_print!(m, " 0x{:08x} 0x{:08x}", reason.0, peer.0);
        match &info {
            Some(info) => connection(m, info),
            None => seq_print!(m, " - - - - - - - - -\n"),
        }
    });
}

/// The last columns of a socket with an SMC connection.
fn connection(m: &SeqFile, info: &ConnInfo) {
    seq_print!(
        m,
        " {:08x} {:08x} {} {} {} {} {} {} {}\n",
        info.token,
        info.peer_token,
        info.sndbuf,
        info.rmb,
        info.peer_rmb,
        info.posts,
        info.sent.get(),
        info.received.get(),
        info.read.get()
    );
}

/// Where a socket is, in a word.
fn word(state: &SmcSock) -> &'static str {
    match state.phase() {
        Phase::Idle => "CLOSE",
        Phase::Connecting | Phase::Child => "HANDSHAKE",
        Phase::Listening => "LISTEN",
        Phase::FellBack => "FALLBACK",
        Phase::Active => "ACTIVE",
        Phase::Closing => "CLOSING",
    }
}

/// What carries the payload.
fn transport(state: &SmcSock) -> &'static str {
    match state.phase() {
        Phase::Active | Phase::Closing => "SMC-R",
        Phase::FellBack => "TCP",
        _ => "-",
    }
}

impl Show for Stat {
    const NAME: &'static CStr = c"smc_stat";

    fn show(m: &SeqFile, net: NetPtr<'_>) {
        let mut active = 0;
        for_each(|state| {
            if state.sk().net().cookie() == net.cookie() && state.phase() == Phase::Active {
                active += 1;
            }
        });
        let stats = sysctl::state(net);
        let (client, server) = stats.smc_counts();
        let (fell_client, fell_server) = stats.fallback_counts();
        seq_print!(m, "smcr_active {active}\n");
        seq_print!(
            m,
            "smcr_total_client {client}\nsmcr_total_server {server}\n"
        );
        seq_print!(m, "fallback_total {}\n", fell_client + fell_server);
        seq_print!(
            m,
            "fallback_client {fell_client}\nfallback_server {fell_server}\n"
        );
        for (reason, n) in stats.fallback_by_reason() {
            match reason {
                _ if n == 0 => {}
                Some(r) => seq_print!(m, "fallback_0x{:08x} {n} {}\n", r.0, r.text()),
                None => seq_print!(m, "fallback_other {n}\n"),
            }
        }
    }
}
