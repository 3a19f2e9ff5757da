// SPDX-License-Identifier: GPL-2.0

//! poll(), select(), epoll.

use super::state::{
    Phase,
    State, //
};
use crate::ext::{
    proto_ops::PollTable,
    sk::{
        poll as ev,
        TcpState, //
    }, //
};
use kernel::sync::atomic::Relaxed;

/// The mask of a socket with a state; `None`: TCP answers.
pub(super) fn poll(state: &State, table: &PollTable<'_>) -> Option<u32> {
    match state.phase() {
        Phase::Idle | Phase::FellBack => None,
        Phase::Connecting | Phase::Child | Phase::Closing => {
            table.register();
            // Decided since? Then whoever decided may have looked for sleepers before.
            match state.phase() {
                Phase::Idle | Phase::FellBack => None,
                Phase::Active => Some(active(state)),
                _ => Some(0),
            }
        }
        // TCP knows what poll() says of a listener that was shut down.
        Phase::Listening if state.sk().state() != TcpState::Listen => None,
        Phase::Listening => {
            table.register();
            let ready = state.listener.has_ready();
            Some(if ready { ev::IN | ev::RDNORM } else { 0 })
        }
        Phase::Active => {
            table.register();
            Some(active(state))
        }
    }
}

/// The mask of an SMC connection.
fn active(state: &State) -> u32 {
    let Some(conn) = state.conn() else {
        return 0;
    };
    let s = conn.status();
    let broken = s.error.is_some() || s.peer_aborted;
    let rcv_shut = s.peer_done || broken || state.rcv_shut.load(Relaxed);
    let snd_shut = s.write_shut || broken;
    let mut mask = 0;
    if state.sk().pending_error().is_some() {
        mask |= ev::ERR;
    }
    if rcv_shut && snd_shut {
        mask |= ev::HUP;
    }
    if rcv_shut {
        mask |= ev::IN | ev::RDNORM | ev::RDHUP;
    } else if s.readable > 0 && s.readable >= state.sk().rcvlowat(false, usize::MAX) {
        mask |= ev::IN | ev::RDNORM;
    }
    if conn.urgent().0 {
        mask |= ev::PRI;
    }
    if s.tx_space > 0 || snd_shut {
        mask |= ev::OUT | ev::WRNORM;
    } else {
        state.sk().set_nospace();
    }
    mask
}
