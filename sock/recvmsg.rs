// SPDX-License-Identifier: GPL-2.0

//! recv().

use super::{
    sendmsg::to_int,
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

/// recv() on a socket in a handshake: waits for the decision.
pub(super) fn wait_decision(state: &State, nonblock: bool) -> Result<Phase> {
    wait::decision(state, state.sk().rcvtimeo(nonblock))
}

/// recv() on an SMC connection.
pub(super) fn recvmsg(state: &State, m: &mut Msg<'_>, len: usize, flags: u32) -> Result<c_int> {
    m.clear_name();
    if flags & msg::ERRQUEUE != 0 {
        return Err(EAGAIN);
    }
    let Some(conn) = state.conn() else {
        return end(state, ENOTCONN);
    };
    if flags & msg::OOB != 0 {
        return urgent(state, &conn, m, flags);
    }
    if len == 0 {
        return Ok(0);
    }
    let inline = state.sk().oob_inline();
    let generation = state.generation.load(Relaxed);
    let mut got = 0;
    loop {
        let why = match read(&conn, m, len - got, got, flags, inline) {
            // The peer ended.
            Ok(0) => break,
            Ok(n) => {
                got += n;
                if got >= len {
                    break;
                }
                continue;
            }
            Err(e) if e == EAGAIN && got >= target(state, flags, len) => break,
            Err(e) if e == EAGAIN && state.rcv_shut.load(Relaxed) => break,
            Err(e) if e == EAGAIN => {
                let seen = if flags & msg::PEEK != 0 { got } else { 0 };
                wait_data(state, &conn, generation, flags, seen)
            }
            Err(e) => Err(e),
        };
        if let Err(e) = why {
            return if got > 0 { to_int(got) } else { end(state, e) };
        }
    }
    to_int(got)
}

/// How many bytes are enough to return with.
fn target(state: &State, flags: u32, len: usize) -> usize {
    state.sk().rcvlowat(flags & msg::WAITALL != 0, len)
}

/// One bounded copy: to the user, past what a peek has shown already, or to nowhere.
fn read(
    conn: &Arc<Conn>,
    m: &mut Msg<'_>,
    want: usize,
    done: usize,
    flags: u32,
    inline: bool,
) -> Result<usize> {
    let peek = flags & msg::PEEK != 0;
    if flags & msg::TRUNC != 0 {
        if peek {
            // Counts what a peek could have shown.
            conn.set_urgent_inline(inline);
            let there = conn.status().readable.saturating_sub(done).min(want);
            return if there > 0 { Ok(there) } else { Err(EAGAIN) };
        }
        return conn.discard(want, inline);
    }
    let skip = if peek { done } else { 0 };
    conn.recv(&mut m.iter(), want, skip, peek, inline)
}

/// Sleeps until there is more than the `seen` bytes that a peek left; `Err(EAGAIN)` when the time
/// is over.
fn wait_data(state: &State, conn: &Arc<Conn>, generation: u32, flags: u32, seen: usize) -> Result {
    let timeo = state.sk().rcvtimeo(flags & msg::DONTWAIT != 0);
    sleep_until(state.sk(), Mode::Shared, timeo, || {
        let woken = conn.has_news(seen)
            || state.rcv_shut.load(Relaxed)
            || state.generation.load(Relaxed) != generation;
        woken.then_some(())
    })
}

/// The end of a receive that got nothing: a broken connection tells why once, then it is EOF.
fn end(state: &State, e: Error) -> Result<c_int> {
    if e == EAGAIN || e == EFAULT || e == EINTR || e == ERESTARTSYS {
        return Err(e);
    }
    match state.sk().take_error() {
        0 => Ok(0),
        errno => Err(Error::from_errno(errno)),
    }
}

/// recv(MSG_OOB): the urgent byte.
fn urgent(state: &State, conn: &Arc<Conn>, m: &mut Msg<'_>, flags: u32) -> Result<c_int> {
    if state.sk().oob_inline() {
        return Err(EINVAL);
    }
    let byte = conn.recv_urgent(flags & msg::PEEK != 0)?;
    m.add_flags(msg::OOB);
    if m.iter().count() == 0 {
        m.add_flags(msg::TRUNC);
        return Ok(0);
    }
    m.iter().put_byte(byte)?;
    Ok(1)
}
