// SPDX-License-Identifier: GPL-2.0

//! Operations of sockets for which SMC is possible or active, by phase.
//!
//! Each begins with [`enter`]: a socket without a state fell back before (TCP answers), one whose
//! fall-back is decided is made plain first.

use super::{
    accept,
    closing,
    connect,
    fallback,
    listen,
    poll,
    recvmsg,
    sendmsg,
    state::{
        Phase,
        SmcSock,
        State, //
    }, //
};
use crate::ext::{
    module::ModuleRef,
    proto_ops::{
        self,
        ioctl,
        msg,
        shut,
        AcceptArg,
        Answer,
        Msg,
        PollTable,
        SockAddr,
        StreamOps, //
    },
    sk::{
        Sk,
        Socket, //
    },
    ulp::{
        self,
        Slot, //
    }, //
};
use kernel::{
    prelude::*,
    sync::atomic::Relaxed, //
};

/// The `smc` operations.
pub(crate) struct Smc;

/// How an operation finds a socket.
enum Entered {
    /// TCP answers; the reference keeps our text meanwhile.
    Tcp(Option<ModuleRef>),
    /// It has a state.
    State(State),
}

/// The state of `sk`, if any.
fn state_of(sk: &Sk) -> Option<State> {
    match ulp::get::<SmcSock>(sk) {
        Slot::Ours(state) => Some(state),
        _ => None,
    }
}

/// Looks up the state; completes a decided fall-back.
fn enter(sock: &Socket) -> Entered {
    let Some(sk) = sock.sk() else {
        return Entered::Tcp(ModuleRef::try_get());
    };
    match state_of(sk) {
        // A ULP that TCP is asked for copies the ops: they must not be ours.
        None => Entered::Tcp(fallback::settle(sock, sk)),
        Some(state) if state.phase() == Phase::FellBack => {
            Entered::Tcp(fallback::swap(sock, &state))
        }
        Some(state) => Entered::State(state),
    }
}

/// The state, or the answer "TCP".
macro_rules! enter {
    ($sock:expr) => {
        match enter($sock) {
            Entered::Tcp(keep) => return Answer::Forward(keep),
            Entered::State(state) => state,
        }
    };
}

/// TCP answers, on a socket that has a state.
fn forward() -> Answer {
    Answer::Forward(Some(ModuleRef::get()))
}

impl StreamOps for Smc {
    fn release(sock: &Socket) -> Answer {
        // Never a swap here: the kernel has read the ops already and will put their reference.
        match sock.sk().and_then(state_of) {
            Some(state) => closing::release(&state),
            None => Answer::Forward(None),
        }
    }

    fn connect(sock: &Socket, addr: SockAddr, flags: c_int) -> Answer {
        let state = enter!(sock);
        connect::connect(sock, &state, addr, proto_ops::nonblock(flags))
    }

    fn accept(sock: &Socket, new: &Socket, arg: &mut AcceptArg<'_>) -> Answer {
        let state = enter!(sock);
        accept::accept(sock, &state, new, arg)
    }

    fn getname(sock: &Socket, peer: bool) -> Answer {
        let state = enter!(sock);
        if peer && state.phase().undecided() {
            return ENOTCONN.into();
        }
        forward()
    }

    fn poll(sock: &Socket, table: &PollTable<'_>) -> Option<u32> {
        match enter(sock) {
            Entered::Tcp(_) => None,
            Entered::State(state) => poll::poll(&state, table),
        }
    }

    fn ioctl(sock: &Socket, cmd: u32) -> Answer {
        let state = enter!(sock);
        let Some(conn) = state.conn().filter(|_| state.phase() == Phase::Active) else {
            return forward();
        };
        let s = match cmd {
            ioctl::OUTQ => conn.status_of_sent(),
            _ => conn.status(),
        };
        let n = match cmd {
            ioctl::INQ => s.readable,
            // What the peer's memory has counts as acknowledged, read or not, as with TCP.
            ioctl::OUTQ => s.unsent.saturating_add(s.inflight),
            ioctl::OUTQNSD => s.unsent,
            ioctl::ATMARK => usize::from(conn.urgent().1),
            _ => return forward(),
        };
        Answer::Done(sendmsg::to_int(n))
    }

    fn listen(sock: &Socket, backlog: c_int) -> Answer {
        let state = enter!(sock);
        listen::listen(sock, &state, backlog)
    }

    fn shutdown(sock: &Socket, how: c_int) -> Answer {
        let state = enter!(sock);
        if !(shut::RD..=shut::RDWR).contains(&how) {
            return EINVAL.into();
        }
        match state.phase() {
            Phase::Active => {
                let Some(conn) = state.conn() else {
                    return ENOTCONN.into();
                };
                if how != shut::WR {
                    state.rcv_shut.store(true, Relaxed);
                }
                if how != shut::RD {
                    conn.shutdown_write();
                }
                state.sk().wake_all();
                Answer::Done(Ok(0))
            }
            Phase::Connecting | Phase::Child => connect::shutdown(sock, &state),
            Phase::Listening if how != shut::WR => {
                listen::stop(&state);
                forward()
            }
            _ => forward(),
        }
    }

    fn setsockopt(sock: &Socket, level: c_int, name: c_int) -> Answer {
        let state = enter!(sock);
        let busy = state.phase() != Phase::Idle;
        if busy && proto_ops::is_addrform(level, name) {
            // TCP would put its own ops on the socket under us.
            return EBUSY.into();
        }
        forward()
    }

    fn setsockopt_done(sock: &Socket, level: c_int, name: c_int) {
        if !proto_ops::is_push_option(level, name) {
            return;
        }
        // TCP_NODELAY or TCP_CORK changed: what was held back may go.
        let conn = sock.sk().and_then(state_of).and_then(|s| s.conn());
        if let (Some(conn), Some(false)) = (conn, sock.sk().map(Sk::corked)) {
            conn.uncork();
        }
    }

    fn getsockopt(sock: &Socket, level: c_int, name: c_int) -> Answer {
        let state = enter!(sock);
        if proto_ops::is_zerocopy_receive(level, name) && state.phase() != Phase::Idle {
            return EINVAL.into();
        }
        forward()
    }

    fn sendmsg(sock: &Socket, m: &mut Msg<'_>, len: usize) -> Answer {
        let state = enter!(sock);
        let mut phase = state.phase();
        if phase.undecided() {
            let nonblock = m.flags() & msg::DONTWAIT != 0;
            match sendmsg::wait_decision(&state, nonblock) {
                Ok(p) => phase = p,
                Err(e) => return e.into(),
            }
        }
        match phase {
            Phase::Active => sendmsg::sendmsg(&state, m, len).into(),
            Phase::FellBack => Answer::Forward(fallback::swap(sock, &state)),
            _ => forward(),
        }
    }

    fn recvmsg(sock: &Socket, m: &mut Msg<'_>, len: usize, flags: c_int) -> Answer {
        let state = enter!(sock);
        let flags = flags as u32;
        let mut phase = state.phase();
        if phase.undecided() {
            match recvmsg::wait_decision(&state, flags & msg::DONTWAIT != 0) {
                Ok(p) => phase = p,
                Err(e) => return e.into(),
            }
        }
        match phase {
            Phase::Active => recvmsg::recvmsg(&state, m, len, flags).into(),
            Phase::FellBack => Answer::Forward(fallback::swap(sock, &state)),
            _ => forward(),
        }
    }

    fn splice_eof(sock: &Socket) -> Answer {
        let state = enter!(sock);
        match state.conn() {
            Some(conn) => {
                conn.uncork();
                Answer::Done(Ok(0))
            }
            None => forward(),
        }
    }

    fn peek_len(sock: &Socket) -> Answer {
        let state = enter!(sock);
        match state.conn() {
            Some(conn) => Answer::Done(sendmsg::to_int(conn.status().readable)),
            None => forward(),
        }
    }

    fn tcp_queues(sk: &Sk) -> bool {
        match ulp::get::<SmcSock>(sk) {
            Slot::Ours(state) => matches!(state.phase(), Phase::Idle | Phase::FellBack),
            Slot::Promised => false,
            Slot::Other => true,
        }
    }

    fn set_rcvlowat(sk: &Sk, val: c_int) -> Answer {
        let Some(state) = state_of(sk).filter(|s| s.phase().undecided()) else {
            return Answer::Forward(None);
        };
        // TCP would stop announcing the handshake's bytes; the user's value waits.
        state.rcvlowat.store(val.max(1), Relaxed);
        Answer::Done(Ok(0))
    }
}
