// SPDX-License-Identifier: GPL-2.0

//! send().

use super::{
    state::{
        Phase,
        State, //
    },
    wait, //
};
use crate::{
    cdc::Conn,
    ext::{
        proto_ops::{
            msg,
            Msg, //
        },
        wait::{
            sleep_until,
            Mode, //
        }, //
    }, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    }, //
};

/// send() on a socket in a handshake: waits for the decision, as TCP waits for the connection.
pub(super) fn wait_decision(state: &State, nonblock: bool) -> Result<Phase> {
    wait::decision(state, state.sk().sndtimeo(nonblock))
}

/// send() on an SMC connection: `len` bytes, all unless non-blocking, a signal, or an error.
pub(super) fn sendmsg(state: &State, m: &mut Msg<'_>, len: usize) -> Result<c_int> {
    let flags = m.flags();
    let Some(conn) = state.conn() else {
        return Err(state.sk().stream_error(flags));
    };
    let generation = state.generation.load(Relaxed);
    let more = flags & msg::MORE != 0 || state.sk().corked();
    let mut sent = 0;
    loop {
        let result = if flags & msg::OOB != 0 {
            conn.send_urgent(&mut m.iter())
        } else {
            conn.send(&mut m.iter(), more)
        };
        let why = match result {
            Ok(n) => {
                sent += n;
                if sent >= len || m.iter().count() == 0 {
                    break;
                }
                continue;
            }
            Err(e) if e == EAGAIN => wait_space(state, &conn, generation, flags),
            Err(e) => Err(e),
        };
        if let Err(e) = why {
            return if sent > 0 {
                to_int(sent)
            } else {
                Err(failed(state, flags, e))
            };
        }
    }
    to_int(sent)
}

/// A byte count as a system call returns it.
pub(super) fn to_int(n: usize) -> Result<c_int> {
    Ok(c_int::try_from(n).unwrap_or(c_int::MAX))
}

/// Sleeps until there is room; `Err(EAGAIN)` when the time is over.
fn wait_space(state: &State, conn: &Arc<Conn>, generation: u32, flags: u32) -> Result {
    state.sk().set_nospace();
    let timeo = state.sk().sndtimeo(flags & msg::DONTWAIT != 0);
    sleep_until(state.sk(), Mode::Shared, timeo, || {
        let woken = conn.has_room() || state.generation.load(Relaxed) != generation;
        woken.then_some(())
    })
}

/// The error of a send that sent nothing: a broken connection tells why once, then EPIPE.
fn failed(state: &State, flags: u32, e: Error) -> Error {
    let transient = e == EAGAIN || e == EFAULT || e == EINTR || e == ERESTARTSYS;
    if transient {
        e
    } else {
        state.sk().stream_error(flags)
    }
}
