// SPDX-License-Identifier: GPL-2.0

//! Falling back: the decision, and the swap that leaves a plain TCP socket.
//!
//! A worker only publishes the decision and wakes. The swap is made by the next operation on the
//! socket, whose file is pinned, or by accept(): only they may move module references.

use super::{
    state::{
        Phase,
        State, //
    },
    table, //
};
use crate::{
    ext::{
        family::put_ops_ref,
        module::ModuleRef,
        proto_ops::{
            self,
            Table, //
        },
        sk::{
            Sk,
            SkLocked,
            Socket, //
        },
        ulp::{
            self,
            UlpSocket, //
        }, //
    },
    proto::reason::Reason,
    sysctl, //
};
use kernel::{
    prelude::*,
    sync::atomic::Relaxed, //
};

/// Publishes that the socket is TCP from now on, and wakes whoever waits for it.
pub(super) fn decide(state: &State, reason: Reason, peer: Reason) {
    state.set_reasons(reason, peer);
    sysctl::state(state.sk().net()).count_fallback(reason, state.is_server());
    {
        let sk = state.sk().lock();
        restore_rcvlowat(state, &sk);
        state.set_phase(Phase::FellBack);
    }
    wake(state);
}

/// One full set of wake-ups, as TCP gives when a connection is established.
pub(super) fn wake(state: &State) {
    state.original_state_change();
    state.sk().wake_all();
}

/// Gives the user's SO_RCVLOWAT back after a handshake.
pub(super) fn restore_rcvlowat(state: &State, sk: &SkLocked<'_>) {
    let val = state.rcvlowat.xchg(0, Relaxed);
    if val != 0 {
        sk.set_rcvlowat_raw(val);
    }
}

/// During a handshake each byte must be announced.
pub(super) fn lower_rcvlowat(state: &State, sk: &SkLocked<'_>) {
    state.rcvlowat.store(sk.rcvlowat_raw(), Relaxed);
    sk.set_rcvlowat_raw(1);
}

/// Makes a fallen-back socket plain TCP; called inside an operation that pins the file, any number
/// of times. Returns a reference that keeps our text while TCP's operation runs.
pub(super) fn swap(sock: &Socket, state: &State) -> Option<ModuleRef> {
    let sk = state.sk().lock();
    swap_locked(sock, state, &sk)
}

/// As [`swap`], under the socket lock.
pub(super) fn swap_locked(sock: &Socket, state: &State, sk: &SkLocked<'_>) -> Option<ModuleRef> {
    let keep = ModuleRef::get();
    if UlpSocket::make_plain(state, sk) {
        table::remove(state.id);
        if proto_ops::table_of(sock) == Table::Smc {
            // The slot is empty before TCP's own ops are there: nobody's ULP can meet ours.
            proto_ops::set_table(sock, sk, Table::Other);
            state.adopt_ops_ref(sk);
        }
    }
    Some(keep)
}

/// Gives a socket without a state TCP's own ops, if it has ours: one that a kernel user accepted
/// on a listener of ours. Called inside an operation. Returns a reference that keeps our text.
pub(super) fn settle(sock: &Socket, sk: &Sk) -> Option<ModuleRef> {
    let keep = ModuleRef::try_get();
    if proto_ops::table_of(sock) == Table::Smc {
        let locked = sk.lock();
        if ulp::is_free(sk) && proto_ops::table_of(sock) == Table::Smc {
            proto_ops::set_table(sock, &locked, Table::Other);
            // `keep` is there: the ops held the module until now.
            put_ops_ref();
        }
    }
    keep
}

/// Publishes a broken connection's error for SO_ERROR; softirq possible.
pub(super) fn publish_error(state: &State) {
    let Some(conn) = state.conn() else {
        return;
    };
    let status = conn.status();
    let error = if status.peer_aborted {
        Some(ECONNRESET)
    } else {
        status.error
    };
    if let Some(e) = error {
        state.sk().set_error(e);
    }
}
