// SPDX-License-Identifier: GPL-2.0

//! connect().

use super::{
    fallback,
    handshake::{
        reset,
        Handshake, //
    },
    listen,
    state::{
        Phase,
        State, //
    },
    wait, //
};
use crate::{
    ext::{
        module::ModuleRef,
        proto_ops::{
            tcp_connect,
            Answer,
            SockAddr, //
        },
        sk::{
            Socket,
            TcpState, //
        }, //
    },
    proto::reason::Reason, //
};
use kernel::{
    prelude::*,
    sync::atomic::Relaxed, //
};

/// connect() on a socket with a state; `nonblock`: O_NONBLOCK.
pub(super) fn connect(sock: &Socket, state: &State, addr: SockAddr, nonblock: bool) -> Answer {
    if addr.family() == Some(0) {
        return disconnect(sock, state, addr);
    }
    listen::settle(state);
    match state.phase() {
        Phase::Idle => match begin(sock, state, addr) {
            Ok(()) if state.phase() == Phase::FellBack => finish(sock, state, addr),
            Ok(()) => wait_for(sock, state, addr, nonblock),
            Err(e) => e.into(),
        },
        Phase::Connecting if nonblock => EALREADY.into(),
        Phase::Connecting => wait_for(sock, state, addr, false),
        Phase::FellBack => Answer::Forward(fallback::swap(sock, state)),
        Phase::Active => finish(sock, state, addr),
        // TCP knows what connect() on a listener is.
        Phase::Listening | Phase::Child | Phase::Closing => Answer::Forward(Some(ModuleRef::get())),
    }
}

/// Sends the SYN with the option and installs the handshake. `Ok`: under way, or TCP answered at
/// once and the socket fell back.
fn begin(sock: &Socket, state: &State, addr: SockAddr) -> Result {
    let handshake = Handshake::client()?;
    let mut hs = state.hs.lock();
    let sk = state.sk().lock();
    if state.phase() != Phase::Idle {
        return Err(EALREADY);
    }
    if sk.state() != TcpState::Close || !sk.may_offer() {
        // Connected already, or nothing may be offered: TCP's own answer, without SMC.
        if sk.state() == TcpState::Close {
            state.set_reasons(Reason::OPTUNSUPP, Reason::NONE);
            state.set_phase(Phase::FellBack);
            return Ok(());
        }
        return tcp_connect(sock, &sk, addr);
    }
    *hs = handshake;
    state.rcv_shut.store(false, Relaxed);
    sk.set_option(true);
    fallback::lower_rcvlowat(state, &sk);
    state.set_phase(Phase::Connecting);
    match tcp_connect(sock, &sk, addr) {
        Err(e) if e == EINPROGRESS => Ok(()),
        result => {
            // Refused before anything was sent (no route, bad address), or already answered.
            if sk.state() != TcpState::Established {
                sk.set_option(false);
                fallback::restore_rcvlowat(state, &sk);
                state.set_phase(Phase::Idle);
                drop(sk);
                *hs = Handshake::None;
                return result.and(Err(ECONNABORTED));
            }
            crate::ext::ulp::UlpSocket::kick(state);
            Ok(())
        }
    }
}

/// Waits for the decision, as long as SO_SNDTIMEO says.
fn wait_for(sock: &Socket, state: &State, addr: SockAddr, nonblock: bool) -> Answer {
    if nonblock {
        return EINPROGRESS.into();
    }
    let generation = state.generation.load(Relaxed);
    let timeo = state.sk().sndtimeo(false);
    match wait::decision(state, timeo) {
        // Another thread disconnected: as TCP's connect(), and never a new connection.
        Ok(_) if state.generation.load(Relaxed) != generation => EPIPE.into(),
        Ok(_) => finish(sock, state, addr),
        Err(e) if e == EAGAIN => EINPROGRESS.into(),
        Err(e) => e.into(),
    }
}

/// The decision is there: TCP's connect() says how it ended, and moves the socket's own state.
fn finish(sock: &Socket, state: &State, addr: SockAddr) -> Answer {
    if state.phase() == Phase::FellBack {
        return Answer::Forward(fallback::swap(sock, state));
    }
    let sk = state.sk().lock();
    if state.phase() != Phase::Active && !sock.connecting() {
        // Another thread was told why; a new connection is not meant.
        return ECONNABORTED.into();
    }
    match tcp_connect(sock, &sk, addr) {
        Ok(()) => Answer::Done(Ok(0)),
        Err(e) => e.into(),
    }
}

/// connect(AF_UNSPEC): ends whatever there is, TCP's connection with it.
fn disconnect(sock: &Socket, state: &State, addr: SockAddr) -> Answer {
    if state.phase() == Phase::Listening {
        listen::stop(state);
    }
    // Held to the end: neither a step nor another connect() comes between.
    let mut hs = state.hs.lock();
    drop(core::mem::replace(&mut *hs, Handshake::None));
    if state.phase() == Phase::FellBack {
        drop(hs);
        return Answer::Forward(fallback::swap(sock, state));
    }
    if let Some(conn) = state.set_conn(None) {
        conn.abort();
    }
    let result = {
        let sk = state.sk().lock();
        fallback::restore_rcvlowat(state, &sk);
        // TCP answers when it is disconnected, not before: it might hold bytes of a handshake.
        let result = tcp_connect(sock, &sk, addr);
        sk.set_option(false);
        // Published by the phase: sleepers see both.
        state.generation.add(1, Relaxed);
        state.set_phase(Phase::Idle);
        result
    };
    drop(hs);
    fallback::wake(state);
    Answer::Done(result.map(|()| 0))
}

/// shutdown() of a socket in its handshake: TCP's answer to one that is connecting is to give up.
pub(super) fn shutdown(_sock: &Socket, state: &State) -> Answer {
    let mut hs = state.hs.lock();
    if !state.phase().undecided() {
        return EALREADY.into();
    }
    drop(core::mem::replace(&mut *hs, Handshake::None));
    reset(state, ECONNRESET);
    Answer::Done(Ok(0))
}
