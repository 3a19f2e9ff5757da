// SPDX-License-Identifier: GPL-2.0

//! close(), and what is left to do after it; also the watch on the TCP connection.
//!
//! After close() the sock hangs on a private `struct socket`, never SOCK_DEAD, until SMC has
//! closed; then it becomes plain TCP and one `sock_release()` closes that. Every state has a timer.

use super::{
    handshake::Handshake,
    listen,
    state::{
        Phase,
        State, //
    },
    table, //
};
use crate::{
    cdc::Conn,
    ext::{
        module::ModuleRef,
        proto_ops::Answer,
        sk::{
            PrivateSocket,
            TcpState, //
        },
        timer::now_ms,
        ulp::UlpSocket,
        wait::{
            exiting,
            wait_until,
            Mode, //
        }, //
    },
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// Milliseconds without progress after which unsent data is given up, like TCP's retries.
const DRAIN_TIMEOUT: u64 = 900_000;
/// Milliseconds to wait for the peer's close after ours arrived, like TCP's FIN_WAIT2.
const PEER_TIMEOUT: u64 = 60_000;
/// Milliseconds between looks at a closing connection.
const TICK: u64 = 2_000;
/// Milliseconds that RDMA has to deliver what overtook a reset of TCP.
const RESET_GRACE: i64 = 20;

/// A connection that its user closed.
pub(super) struct Closing {
    conn: Arc<Conn>,
    /// Holds the sock; dropping it closes TCP.
    private: PrivateSocket,
    /// When the user closed, or the peer last made progress.
    since: u64,
    /// Bytes that the peer had not got then.
    left: usize,
    /// TCP ends by reset.
    reset: bool,
    /// close() still waits on the private socket's queue: it must stay.
    lingering: bool,
}

/// close() on a socket with a state.
pub(super) fn release(state: &State) -> Answer {
    if state.phase() == Phase::Listening || state.listener.in_use() {
        listen::stop(state);
    }
    give_up_handshake(state);
    match state.set_conn(None) {
        Some(conn) if state.phase() == Phase::Active => return close(state, conn),
        Some(conn) => conn.abort(),
        None => {}
    }
    plain(state);
    Answer::Forward(Some(ModuleRef::get()))
}

/// No handshake goes on: a contact holds the state, which would hold it for ever. If the user
/// closes in the middle of one, CLC is under way, so TCP ends by reset.
fn give_up_handshake(state: &State) {
    let mut hs = state.hs.lock();
    drop(core::mem::replace(&mut *hs, Handshake::None));
    if state.phase().undecided() {
        // What waits for its time to come holds the state: it runs at once, and finds nothing.
        UlpSocket::kick(state);
        let sk = state.sk().lock();
        if matches!(sk.state(), TcpState::Established | TcpState::CloseWait) {
            sk.set_close_by_reset(true);
        }
        state.set_phase(Phase::Idle);
    }
}

/// Makes the sock plain TCP, for TCP's own close. A listener keeps its offer: children that were
/// promised SMC may still be born until TCP has stopped it.
fn plain(state: &State) {
    table::remove(state.id);
    let sk = state.sk().lock();
    if state.phase() != Phase::Listening {
        UlpSocket::make_plain(state, &sk);
    }
}

/// close() of an SMC connection.
fn close(state: &State, conn: Arc<Conn>) -> Answer {
    let linger = state.sk().linger();
    let Ok(private) = PrivateSocket::new() else {
        // Nothing to hold the sock: abort at once, TCP by reset.
        conn.abort();
        plain(state);
        state.sk().lock().set_close_by_reset(true);
        return Answer::Forward(Some(ModuleRef::get()));
    };
    let aborts = linger == Some(0);
    let timeo = linger.filter(|t| *t > 0 && !exiting());
    {
        let mut closing = state.closing.lock();
        let sk = state.sk().lock();
        private.attach(&sk);
        state.set_phase(Phase::Closing);
        *closing = Some(Closing {
            conn: Arc::clone(&conn),
            private,
            since: now_ms(),
            left: usize::MAX,
            reset: aborts,
            lingering: timeo.is_some(),
        });
    }
    if aborts {
        conn.abort();
    } else {
        conn.close();
    }
    if let Some(timeo) = timeo {
        linger_wait(state, &conn, timeo);
        if let Some(closing) = &mut *state.closing.lock() {
            closing.lingering = false;
        }
    }
    UlpSocket::kick(state);
    Answer::Done(Ok(0))
}

/// SO_LINGER: waits until the peer has everything, or the time is over.
fn linger_wait(state: &State, conn: &Arc<Conn>, timeo: c_ulong) {
    let timeo = c_long::try_from(timeo).unwrap_or(c_long::MAX);
    // The private socket, whose queue this sleeps on, stays: `work` leaves it while `lingering`.
    let _ = wait_until(state.sk(), Mode::Shared, timeo, || {
        let s = conn.status();
        let over = state.over.load(Relaxed);
        (over || s.drained || s.error.is_some() || s.peer_aborted).then_some(())
    });
}

/// Advances a closing connection. Work item.
pub(super) fn work(state: &State) {
    let mut guard = state.closing.lock();
    let Some(closing) = &mut *guard else {
        return;
    };
    let status = closing.conn.status();
    let now = now_ms();
    let left = status
        .unsent
        .saturating_add(status.inflight)
        .saturating_add(status.peer_unread);
    if left < closing.left {
        closing.left = left;
        closing.since = now;
    }
    let waited = now.saturating_sub(closing.since);
    let tcp_gone = state.sk().state() == TcpState::Close;
    let over = state.over.load(Relaxed);
    let limit = if status.drained {
        PEER_TIMEOUT
    } else {
        DRAIN_TIMEOUT
    };
    let broken = status.error.is_some()
        || status.peer_aborted
        || (tcp_gone && !status.peer_closed)
        || waited > limit;
    if !over && !broken {
        drop(guard);
        return UlpSocket::kick_in(state, TICK);
    }
    if broken && !over {
        closing.conn.abort();
    }
    let reset = closing.reset || broken;
    if closing.lingering {
        // close() was woken by the end of the connection, and kicks when it has left the queue.
        closing.reset = reset;
        return;
    }
    let done = guard.take();
    drop(guard);
    if let Some(done) = done {
        finish(state, done, reset);
    }
}

/// SMC has closed: TCP closes now.
fn finish(state: &State, closing: Closing, reset: bool) {
    table::remove(state.id);
    {
        let sk = state.sk().lock();
        state.set_phase(Phase::Idle);
        UlpSocket::make_plain(state, &sk);
        // TCP would send a reset for what was not read.
        sk.purge();
        sk.set_close_by_reset(reset);
    }
    drop(closing.private);
}

/// Looks after the TCP connection of an active one: its end by reset, time-out or `ss -K` ends
/// SMC; a FIN does not. Work item.
pub(super) fn watch_tcp(state: &State) {
    if state.sk().state() != TcpState::Close {
        return;
    }
    let Some(conn) = state.conn() else {
        return;
    };
    let status = conn.status();
    if status.peer_closed || status.error.is_some() {
        return;
    }
    // The reset may have overtaken what RDMA delivered.
    fsleep(Delta::from_millis(RESET_GRACE));
    if !conn.status().peer_closed {
        let err = state.sk().pending_error().unwrap_or(ECONNRESET);
        conn.terminate(err);
    }
}
