// SPDX-License-Identifier: GPL-2.0

//! Waiting for the decision of a handshake.

use super::state::{
    Phase,
    State, //
};
use crate::ext::wait::{
    wait_until,
    Mode, //
};
use kernel::{
    prelude::*,
    sync::atomic::Relaxed, //
};

/// Waits until a handshake is decided; at most `timeo` jiffies. `EAGAIN`: not in time. Errors of
/// signals as TCP's. Process context; the socket's file is pinned.
pub(super) fn decision(state: &State, timeo: c_long) -> Result<Phase> {
    let generation = state.generation.load(Relaxed);
    wait_until(state.sk(), Mode::Shared, timeo, || {
        let phase = state.phase();
        (!phase.undecided() || state.generation.load(Relaxed) != generation).then_some(phase)
    })
}
