// SPDX-License-Identifier: GPL-2.0

//! Sockets: one file per operation, over one real TCP socket per connection.
//!
//! SMC is an upper layer of that TCP socket: [`state::SmcSock`] hangs in its ULP slot while SMC is
//! possible or active; falling back empties the slot and leaves a plain TCP socket.
//!
//! Locks, in this order: a state's `hs` mutex, a listener's `queue` mutex, the socket lock. None is
//! held while a peer is waited for.

mod accept;
mod closing;
mod connect;
mod fallback;
mod fresh;
mod handshake;
mod listen;
mod ops;
mod poll;
mod recvmsg;
mod sendmsg;
mod settings;
mod state;
pub(crate) mod table;
mod wait;

pub(crate) use self::{
    fresh::Fresh,
    ops::Smc,
    state::{
        Phase,
        SmcSock, //
    },
    table::for_each, //
};

use crate::ext::{
    family::{
        InetProtocols,
        SmcFamily, //
    },
    proto_ops,
    ulp, //
};
use kernel::prelude::*;

/// AF_SMC is ours, but no socket can be made yet. Dropped: it is free again (may sleep).
pub(crate) struct Claim(SmcFamily);

impl Claim {
    /// Fills the tables and claims AF_SMC: the first thing that fails when smc.ko is loaded, and
    /// the only one that says so. May sleep.
    pub(crate) fn new() -> Result<Self> {
        ulp::init::<SmcSock>();
        proto_ops::init::<Fresh, Smc>();
        let family = SmcFamily::register().inspect_err(|e| {
            if *e == EEXIST {
                pr_err!("AF_SMC is taken: smc.ko is loaded; unload smc_diag and smc first\n");
            }
        })?;
        Ok(Self(family))
    }
}

/// The socket families, open. Dropped: no new socket of ours can be made (may sleep).
pub(crate) struct Families {
    _inet: InetProtocols,
    _claim: Claim,
}

impl Families {
    /// Opens AF_SMC and registers IPPROTO_SMC. May sleep.
    pub(crate) fn open(claim: Claim) -> Self {
        claim.0.open();
        Self {
            _inet: InetProtocols::register(),
            _claim: claim,
        }
    }
}
