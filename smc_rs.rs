// SPDX-License-Identifier: GPL-2.0

//! SMC-R stream sockets: TCP-compatible sockets whose payload moves by RDMA.
//!
//! The crate root holds the lints, the module's declaration and its registrations. Layers, from
//! the top: `sock`, `cdc`, `rmb`, `lgr`, `ib`, with `sysctl` and `netlink` beside them, the pure
//! `proto` used by all, and `ext`, the only layer that may contain `unsafe`.
#![deny(unsafe_code)]
#![allow(dead_code)] // Until every layer is used.

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

/// The loaded module; fields are dropped in order.
struct SmcRs;

impl kernel::Module for SmcRs {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}
