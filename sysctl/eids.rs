// SPDX-License-Identifier: GPL-2.0

//! The enterprise ids of this host, from the module parameter `eids`.

use crate::{
    ext::{
        global::Global,
        params, //
    },
    proto::eid::{
        Eid,
        EidSet, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

static EIDS: Global<EidSet> = Global::new();

/// Parses the parameter: ids separated by commas; empty: none. `EINVAL` with a message if it is
/// wrong. May sleep.
pub(super) fn init() -> Result {
    let mut set = EidSet::new();
    for name in params::eids()?.split(',').filter(|s| !s.is_empty()) {
        let Some(eid) = Eid::parse(name) else {
            pr_err!(
                "eids: '{}' is not 1 to 32 characters of A-Z 0-9 . -\n",
                name
            );
            return Err(EINVAL);
        };
        if set.contains(&eid) || !set.push(eid) {
            pr_err!("eids: '{}' is one too many or there already\n", name);
            return Err(EINVAL);
        }
    }
    EIDS.set(Arc::new(set, GFP_KERNEL)?)
}

/// Forgets the set; module exit.
pub(super) fn exit() {
    EIDS.take();
}

/// The ids, the most preferred first.
pub(crate) fn eids() -> EidSet {
    EIDS.get().map_or_else(EidSet::new, |set| (*set).clone())
}
