// SPDX-License-Identifier: GPL-2.0

//! CDC messages from the peer, and the other calls of the link group.

use super::{
    events::Events,
    Conn, //
};
use crate::{
    lgr::{
        Port,
        Pushed, //
    },
    proto::wire::cdc::Cdc, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// How long the peer may take to finish a connection that we gave up.
const FINISH_MS: u64 = 30_000;

impl Port for Conn {
    fn on_cdc(self: Arc<Self>, cdc: &Cdc) {
        let (events, push, release) = {
            let mut core = self.core.lock();
            let (events, push) = core.on_cdc(cdc);
            let drained = Events::DRAINED.when(core.take_drained());
            (events | drained, push, core.take_release())
        };
        self.tell(events);
        if push {
            self.push();
        }
        if release {
            self.release_soon();
        }
    }

    fn on_slots(self: Arc<Self>) -> Pushed {
        self.slots_free()
    }

    fn on_group_down(self: Arc<Self>) {
        self.cut(ECONNABORTED, false);
    }

    fn on_link_gone(self: Arc<Self>) {
        self.cut(ECONNABORTED, true);
    }

    fn expire(self: Arc<Self>, now: u64) -> bool {
        let (waits, release) = {
            let mut core = self.core.lock();
            match core.gone_at {
                Some(at) if now.saturating_sub(at) >= FINISH_MS => core.expired = true,
                _ => {}
            }
            let release = core.take_release();
            (core.gone_at.is_some() && !core.released, release)
        };
        if release {
            self.release();
        }
        waits
    }
}
