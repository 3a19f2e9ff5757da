// SPDX-License-Identifier: GPL-2.0

//! Waiting for a link group event without sleeping: the event sets an outcome and kicks a worker.

use crate::proto::reason::Reason;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc, //
    }, //
};

/// Kicks the worker that advances a handshake. Called from any context, must not sleep.
pub(crate) trait Wake: Send + Sync {
    /// Makes the worker run again.
    fn wake(&self);
}

/// Not decided yet. No diagnosis code has this value, nor the next.
const PENDING: u32 = 0;
/// Went well.
const DONE: u32 = 1;

/// One event somebody waits for.
pub(crate) struct Waiter {
    /// `PENDING`, `DONE`, or the diagnosis code of a failure.
    state: Atomic<u32>,
    /// Whom to kick.
    wake: Arc<dyn Wake>,
}

impl Waiter {
    /// A waiter that is not decided. May sleep.
    pub(crate) fn new(wake: Arc<dyn Wake>) -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                state: Atomic::new(PENDING),
                wake,
            },
            GFP_KERNEL,
        )?)
    }

    /// Decides; the first decision stays. Any context.
    pub(crate) fn decide(&self, outcome: Result<(), Reason>) {
        let value = match outcome {
            Ok(()) => DONE,
            Err(reason) => reason.0.max(DONE + 1),
        };
        if self.state.cmpxchg(PENDING, value, Release).is_ok() {
            self.wake.wake();
        }
    }

    /// The decision, if there is one.
    pub(crate) fn outcome(&self) -> Option<Result<(), Reason>> {
        match self.state.load(Acquire) {
            PENDING => None,
            DONE => Some(Ok(())),
            code => Some(Err(Reason(code))),
        }
    }
}
