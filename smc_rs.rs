// SPDX-License-Identifier: GPL-2.0

//! SMC-R stream sockets: TCP-compatible sockets whose payload moves by RDMA.
//!
//! The crate root holds the lints, the module's declaration and its registrations. Layers, from
//! the top: `sock`, `cdc`, `lgr`, `rmb`, `ib`, with `sysctl` and `netlink` beside them, the pure
//! `proto` used by all, and `ext`, the only layer that may contain `unsafe`.
#![deny(unsafe_code)]

use kernel::prelude::*;

mod cdc;
mod ext;
mod ib;
mod lgr;
mod netlink;
mod proto;
mod rmb;
mod sock;
mod sysctl;

module! {
    type: SmcRs,
    name: "smc_rs",
    authors: ["The smc_rs developers"],
    description: "Shared Memory Communications over RDMA (SMC-R) sockets",
    license: "GPL",
}

/// The loaded module. Fields are dropped in order: first nothing new of ours can be made, then
/// the namespaces' files and settings go, then the link groups end, then the devices are let go.
struct SmcRs {
    _families: sock::Families,
    _namespaces: sysctl::Namespaces,
    _groups: Groups,
    _ib: ib::Ib,
    _rest: Rest,
}

/// The link groups; dropped: all end.
struct Groups;

impl Drop for Groups {
    fn drop(&mut self) {
        // No socket is left (each holds the module), but their last work may be under way, and it
        // holds connections.
        ext::exit::quiesce();
        lgr::exit();
    }
}

/// What is under everything: the work queue and the globals.
struct Rest;

impl Drop for Rest {
    fn drop(&mut self) {
        ext::exit::quiesce();
        sysctl::exit();
        sock::table::exit();
        ext::workqueue::exit();
    }
}

impl kernel::Module for SmcRs {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        // From the bottom up; what was done is undone by the drops when something fails.
        ext::workqueue::init()?;
        let rest = Rest;
        let claim = sock::Claim::new()?;
        sock::table::init()?;
        let ib = ib::Ib::new()?;
        let groups = Groups;
        let namespaces = sysctl::Namespaces::register()?;
        Ok(Self {
            _families: sock::Families::open(claim),
            _namespaces: namespaces,
            _groups: groups,
            _ib: ib,
            _rest: rest,
        })
    }
}
