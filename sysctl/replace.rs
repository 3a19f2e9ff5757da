// SPDX-License-Identifier: GPL-2.0

//! Transparent replacement: `net.smc.tcp2smc`.
//!
//! While some namespace has it on, a probe on TCP's socket creation gives new sockets of user
//! space the `fresh` operations. They stay TCP sockets: `socket()` cannot fail because of it.

use super::state;
use crate::ext::{
    create_probe::{
        CreateProbe,
        Policy, //
    },
    net::NetPtr,
    static_mutex::StaticMutex, //
};
use kernel::{
    prelude::*,
    static_lock_class,
    sync::atomic::Relaxed, //
};

/// The armed probe and how many namespaces want it.
struct Armed {
    users: u32,
    probe: Option<CreateProbe>,
}

static ARMED: StaticMutex<Armed> = StaticMutex::new(
    Armed {
        users: 0,
        probe: None,
    },
    c"smc_rs_tcp2smc",
    static_lock_class!(),
);

/// Whom the probe takes.
struct Switch;

impl Policy for Switch {
    fn wanted(net: NetPtr<'_>) -> bool {
        state(net).tcp2smc.load(Relaxed) != 0
    }
}

/// A namespace turned its switch. Arms the probe for the first, disarms it after the last. May
/// sleep. Errors: those of arming, such as `EOPNOTSUPP` without kprobes.
pub(super) fn switch(on: bool) -> Result {
    let mut armed = ARMED.lock();
    if on {
        if armed.probe.is_none() {
            armed.probe = Some(CreateProbe::arm::<Switch>().inspect_err(|e| {
                pr_err!("tcp2smc: no probe on socket creation ({})\n", e.to_errno());
            })?);
        }
        armed.users += 1;
        return Ok(());
    }
    armed.users = armed.users.saturating_sub(1);
    if armed.users == 0 {
        drop(armed.probe.take());
    }
    Ok(())
}
