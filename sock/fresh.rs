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
    let keep = ModuleRef::get();
    let locked = sk.lock();
    if proto_ops::table_of(sock) != Table::Fresh {
        return Start::NotFresh;
    }
    if !sock.has_file() || !locked.may_offer() {
        fresh_to_tcp(sock, &locked);
        return Start::Tcp(keep);
    }
    match ulp::fill::<SmcSock>(&locked, take_fresh_ref(&locked)) {
        Ok(state) => {
            proto_ops::set_table(sock, &locked, Table::Smc);
            drop(locked);
            table::insert(&state);
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
        if addr.family().is_none() || addr.family() == Some(0) {
            return Answer::Forward(None);
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
        if m.flags() & msg::FASTOPEN != 0 {
            if let Some(sk) = sock.sk() {
                let keep = ModuleRef::get();
                fresh_to_tcp(sock, &sk.lock());
                return Answer::Forward(Some(keep));
            }
        }
        Answer::Forward(None)
    }

    fn accept(sock: &Socket, new: &Socket, arg: &mut AcceptArg<'_>) -> Answer {
        if stale(sock) {
            return Smc::accept(sock, new, arg);
        }
        Answer::Forward(None)
    }

    fn getname(sock: &Socket, peer: bool) -> Answer {
        if stale(sock) {
            return Smc::getname(sock, peer);
        }
        Answer::Forward(None)
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
        Answer::Forward(None)
    }

    fn shutdown(sock: &Socket, how: c_int) -> Answer {
        if stale(sock) {
            return Smc::shutdown(sock, how);
        }
        Answer::Forward(None)
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
        Answer::Forward(None)
    }

    fn setsockopt_done(_: &Socket, _: c_int, _: c_int) {}

    fn getsockopt(sock: &Socket, level: c_int, name: c_int) -> Answer {
        if stale(sock) {
            return Smc::getsockopt(sock, level, name);
        }
        Answer::Forward(None)
    }

    fn recvmsg(sock: &Socket, m: &mut Msg<'_>, len: usize, flags: c_int) -> Answer {
        if stale(sock) {
            return Smc::recvmsg(sock, m, len, flags);
        }
        Answer::Forward(None)
    }

    fn splice_eof(sock: &Socket) -> Answer {
        if stale(sock) {
            return Smc::splice_eof(sock);
        }
        Answer::Forward(None)
    }

    fn peek_len(sock: &Socket) -> Answer {
        if stale(sock) {
            return Smc::peek_len(sock);
        }
        Answer::Forward(None)
    }

    fn tcp_queues(sk: &Sk) -> bool {
        Smc::tcp_queues(sk)
    }

    fn set_rcvlowat(sk: &Sk, val: c_int) -> Answer {
        Smc::set_rcvlowat(sk, val)
    }
}
