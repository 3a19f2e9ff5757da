// SPDX-License-Identifier: GPL-2.0

//! connect().

use super::{
    fallback,
    handshake::Handshake,
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
        return disconnect(sock, state);
    }
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
    let timeo = state.sk().sndtimeo(false);
    match wait::decision(state, timeo) {
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
    match tcp_connect(sock, &sk, addr) {
        Ok(()) => Answer::Done(Ok(0)),
        Err(e) => e.into(),
    }
}

/// connect(AF_UNSPEC): ends whatever there is; TCP then disconnects.
fn disconnect(sock: &Socket, state: &State) -> Answer {
    let hs = core::mem::replace(&mut *state.hs.lock(), Handshake::None);
    drop(hs);
    match state.phase() {
        Phase::FellBack => return Answer::Forward(fallback::swap(sock, state)),
        Phase::Listening => listen::stop(state),
        _ => {}
    }
    if let Some(conn) = state.set_conn(None) {
        conn.abort();
    }
    {
        let sk = state.sk().lock();
        fallback::restore_rcvlowat(state, &sk);
        // A listener's children may still look for the option until TCP has stopped it.
        if state.phase() != Phase::Listening {
            sk.set_option(false);
        }
        state.set_phase(Phase::Idle);
    }
    state.generation.add(1, Relaxed);
    state.sk().wake_all();
    Answer::Forward(Some(ModuleRef::get()))
}

/// shutdown() of a socket in its handshake: TCP's answer to one that is connecting is to give up.
pub(super) fn shutdown(_sock: &Socket, state: &State) -> Answer {
    let mut hs = state.hs.lock();
    if !state.phase().undecided() {
        return EALREADY.into();
    }
    drop(core::mem::replace(&mut *hs, Handshake::None));
    {
        let sk = state.sk().lock();
        fallback::restore_rcvlowat(state, &sk);
        state.set_phase(Phase::Idle);
    }
    drop(hs);
    state.sk().abort(ECONNRESET);
    fallback::wake(state);
    Answer::Done(Ok(0))
}
