// SPDX-License-Identifier: GPL-2.0

//! Operations of sockets that have offered nothing yet: connect() and listen() give them a state.

use super::{
    connect,
    listen,
    ops::Smc,
    state::{
        SmcSock,
        State, //
    },
    table, //
};
use crate::ext::{
    family::{
        fresh_to_tcp,
        put_ops_ref,
        take_fresh_ref, //
    },
    module::ModuleRef,
    proto_ops::{
        self,
        msg,
        AcceptArg,
        Answer,
        Msg,
        PollTable,
        SockAddr,
        StreamOps,
        Table, //
    },
    sk::{
        Sk,
        Socket, //
    },
    ulp, //
};
use kernel::prelude::*;

/// The `fresh` operations.
pub(crate) struct Fresh;

/// What became of a fresh socket that wants to offer.
enum Start {
    /// It has a state and the `smc` ops.
    State(State),
    /// It is TCP; the reference keeps our text for the rest of the operation.
    Tcp(ModuleRef),
    /// Another thread was first.
    NotFresh,
}

/// Gives a fresh socket its state, or makes it TCP where SMC can't be: no memory, no file (a
/// kernel user), something configured that RDMA would bypass.
fn start(sock: &Socket, sk: &Sk) -> Start {
    let locked = sk.lock();
    if proto_ops::table_of(sock) != Table::Fresh {
        return Start::NotFresh;
    }
    // The socket's own references are there as long as it is fresh and locked.
    let keep = ModuleRef::get();
    if !sock.has_file() || !locked.may_offer() {
        fresh_to_tcp(sock, &locked);
        return Start::Tcp(keep);
    }
    match ulp::fill::<SmcSock>(&locked, take_fresh_ref(&locked)) {
        Ok(state) => {
            proto_ops::set_table(sock, &locked, Table::Smc);
            // Before anybody else can fall back and take it out.
            table::insert(&state);
            drop(locked);
            Start::State(state)
        }
        Err(module) => {
            proto_ops::set_table(sock, &locked, Table::Other);
            drop(module);
            put_ops_ref();
            Start::Tcp(keep)
        }
    }
}

/// TCP answers. Meanwhile the socket may stop being ours, hence a reference of its own.
fn tcp() -> Answer {
    Answer::Forward(ModuleRef::try_get())
}

/// A call that came by a stale `fresh` pointer.
fn stale(sock: &Socket) -> bool {
    proto_ops::table_of(sock) != Table::Fresh
}

impl StreamOps for Fresh {
    fn release(sock: &Socket) -> Answer {
        let Some(sk) = sock.sk() else {
            return Answer::Done(Ok(0));
        };
        if stale(sock) {
            return Smc::release(sock);
        }
        // The ops' reference is put by the kernel after this.
        drop(take_fresh_ref(&sk.lock()));
        Answer::Forward(None)
    }

    fn connect(sock: &Socket, addr: SockAddr, flags: c_int) -> Answer {
        let Some(sk) = sock.sk() else {
            return ENOTCONN.into();
        };
        if stale(sock) {
            return Smc::connect(sock, addr, flags);
        }
        if addr.family().is_none() || addr.family() == Some(0) {
            return tcp();
        }
        match start(sock, sk) {
            Start::State(state) => connect::connect(sock, &state, addr, proto_ops::nonblock(flags)),
            Start::Tcp(keep) => Answer::Forward(Some(keep)),
            Start::NotFresh => Smc::connect(sock, addr, flags),
        }
    }

    fn listen(sock: &Socket, backlog: c_int) -> Answer {
        let Some(sk) = sock.sk() else {
            return ENOTCONN.into();
        };
        match start(sock, sk) {
            Start::State(state) => listen::listen(sock, &state, backlog),
            Start::Tcp(keep) => Answer::Forward(Some(keep)),
            Start::NotFresh => Smc::listen(sock, backlog),
        }
    }

    fn sendmsg(sock: &Socket, m: &mut Msg<'_>, len: usize) -> Answer {
        if stale(sock) {
            return Smc::sendmsg(sock, m, len);
        }
        let keep = tcp();
        if m.flags() & msg::FASTOPEN != 0 {
            if let Some(sk) = sock.sk() {
                if !fresh_to_tcp(sock, &sk.lock()) {
                    return Smc::sendmsg(sock, m, len);
                }
            }
        }
        keep
    }

    fn accept(_: &Socket, _: &Socket, _: &mut AcceptArg<'_>) -> Answer {
        // It is no listener, or wasn't when the call began. The kernel has given or will give the
        // new socket the ops by which it called, and a child must not be `fresh`.
        EINVAL.into()
    }

    fn getname(sock: &Socket, peer: bool) -> Answer {
        if stale(sock) {
            return Smc::getname(sock, peer);
        }
        tcp()
    }

    fn poll(sock: &Socket, table: &PollTable<'_>) -> Option<u32> {
        if stale(sock) {
            return Smc::poll(sock, table);
        }
        None
    }

    fn ioctl(sock: &Socket, cmd: u32) -> Answer {
        if stale(sock) {
            return Smc::ioctl(sock, cmd);
        }
        tcp()
    }

    fn shutdown(sock: &Socket, how: c_int) -> Answer {
        if stale(sock) {
            return Smc::shutdown(sock, how);
        }
        tcp()
    }

    fn setsockopt(sock: &Socket, level: c_int, name: c_int) -> Answer {
        if stale(sock) {
            return Smc::setsockopt(sock, level, name);
        }
        // A ULP copies `sock->ops`: none may be set while they are ours. As TCP, which refuses
        // it on a socket that isn't connected.
        if proto_ops::is_tcp_ulp(level, name) {
            return ENOTCONN.into();
        }
        tcp()
    }

    fn setsockopt_done(_: &Socket, _: c_int, _: c_int) {}

    fn getsockopt(sock: &Socket, level: c_int, name: c_int) -> Answer {
        if stale(sock) {
            return Smc::getsockopt(sock, level, name);
        }
        tcp()
    }

    fn recvmsg(sock: &Socket, m: &mut Msg<'_>, len: usize, flags: c_int) -> Answer {
        if stale(sock) {
            return Smc::recvmsg(sock, m, len, flags);
        }
        tcp()
    }

    fn splice_eof(sock: &Socket) -> Answer {
        if stale(sock) {
            return Smc::splice_eof(sock);
        }
        tcp()
    }

    fn peek_len(sock: &Socket) -> Answer {
        if stale(sock) {
            return Smc::peek_len(sock);
        }
        tcp()
    }

    fn tcp_queues(sk: &Sk) -> bool {
        Smc::tcp_queues(sk)
    }

    fn set_rcvlowat(sk: &Sk, val: c_int) -> Answer {
        Smc::set_rcvlowat(sk, val)
    }
}
