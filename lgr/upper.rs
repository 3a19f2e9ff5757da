// SPDX-License-Identifier: GPL-2.0

//! What a link tells its group.

use super::group::{
    End,
    Group, //
};
use crate::{
    ib::{
        LinkUpper,
        MSG_LEN, //
    },
    proto::wire::cdc::Cdc, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    }, //
};

/// The handle that a link has on its group. It is not the group itself, because the calls need a
/// counted reference.
pub(super) struct Upper(Arc<Group>);

impl Upper {
    /// The handle for a link. May sleep.
    pub(super) fn new(group: Arc<Group>) -> Result<Arc<Self>> {
        Ok(Arc::new(Self(group), GFP_KERNEL)?)
    }
}

impl LinkUpper for Upper {
    fn on_llc(&self, msg: &[u8]) {
        self.0.llc_message(msg);
    }

    fn on_cdc(&self, msg: &[u8; MSG_LEN]) {
        // A message that isn't one, or for nobody, is dropped.
        let Ok(cdc) = Cdc::parse(msg) else {
            return;
        };
        // Read first: the line is shared by all connections of the group.
        if !self.0.heard.load(Relaxed) {
            self.0.heard.store(true, Relaxed);
        }
        if let Some(port) = self.0.tokens.get(cdc.token) {
            port.on_cdc(&cdc);
        }
    }

    fn on_slots_free(&self) {
        self.0.waiting.serve();
    }

    fn on_link_down(&self) {
        self.0.end(End::LinkDown);
    }
}
