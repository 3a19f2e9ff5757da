// SPDX-License-Identifier: GPL-2.0

//! accept().

use super::{
    fallback,
    listen::{
        self,
        Child, //
    },
    state::{
        Phase,
        State, //
    }, //
};
use crate::ext::{
    accept::graft,
    family::put_ops_ref,
    module::ModuleRef,
    proto_ops::{
        self,
        AcceptArg,
        Answer,
        Table, //
    },
    sk::{
        Socket,
        TcpState, //
    },
    wait::{
        wait_until,
        Mode, //
    }, //
};
use kernel::prelude::*;

/// accept() on a socket with a state.
pub(super) fn accept(
    sock: &Socket,
    state: &State,
    new: &Socket,
    arg: &mut AcceptArg<'_>,
) -> Answer {
    if state.phase() != Phase::Listening {
        return Answer::Forward(Some(ModuleRef::get()));
    }
    let timeo = state.sk().rcvtimeo(arg.nonblock());
    let result = wait_until(state.sk(), Mode::Exclusive, timeo, || {
        if state.phase() != Phase::Listening || state.sk().state() != TcpState::Listen {
            return Some(Err(EINVAL));
        }
        next(state, arg).map(Ok)
    });
    if result.is_err() && state.listener.has_ready() {
        // The event may have woken this caller only, who leaves for a signal or the time.
        state.original_data_ready();
    }
    match result {
        Ok(Ok(child)) => {
            hand_over(sock, new, child, arg);
            Answer::Done(Ok(0))
        }
        Ok(Err(e)) | Err(e) => e.into(),
    }
}

/// The next child that this caller can use.
fn next(state: &State, arg: &mut AcceptArg<'_>) -> Option<Child> {
    loop {
        let (child, empty) = listen::take(state);
        arg.set_empty(empty);
        let child = child?;
        let smc = child
            .state
            .as_ref()
            .is_some_and(|s| s.phase() == Phase::Active);
        if smc && arg.kern() {
            // A kernel user overwrites the new socket's ops: such children can only be TCP.
            listen::discard(child);
            continue;
        }
        return Some(child);
    }
}

/// Moves a child from its private socket to the user's.
fn hand_over(sock: &Socket, new: &Socket, child: Child, arg: &AcceptArg<'_>) {
    let Child { sk, private, state } = child;
    let locked = sk.lock();
    graft(sock, new, &locked);
    private.detach();
    match state {
        None if arg.kern() => {}
        None => {
            proto_ops::set_table(new, &locked, Table::Other);
            // The kernel took it for the new socket; the listener's own keeps us here.
            put_ops_ref();
        }
        Some(s) if s.phase() == Phase::FellBack => {
            drop(fallback::swap_locked(new, &s, &locked));
        }
        // An SMC connection, or one that broke since: our ops stay.
        Some(_) => {}
    }
}
