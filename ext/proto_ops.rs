// SPDX-License-Identifier: GPL-2.0

//! `struct proto_ops`: full copies of TCP's tables with our operations laid over.
//!
//! An operation answers itself or asks to be forwarded to TCP's. There are two pairs of tables:
//! `fresh`, for sockets that have offered nothing yet, and `smc`. Every adapter works on a socket
//! that has no sock, has already fallen back, or was reached through a stale pointer.
//!
//! C header: [`include/linux/net.h`](srctree/include/linux/net.h)

use super::{
    abi::bindings,
    iov::MsgIter,
    module::ModuleRef,
    proto_ops_adapters::{
        errno_result,
        table, //
    },
    sk::{
        Sk,
        SkLocked,
        Socket, //
    },
    static_cell::StaticCell, //
};
use core::ptr::NonNull;
use kernel::prelude::*;

/// What an operation answers.
pub(crate) enum Answer {
    /// TCP's operation answers. The reference keeps our text while TCP's operation may sleep; it
    /// may be absent where the socket's own reference cannot go away meanwhile.
    Forward(Option<ModuleRef>),
    /// This is the answer.
    Done(Result<c_int>),
}

impl From<Result<c_int>> for Answer {
    fn from(r: Result<c_int>) -> Self {
        Self::Done(r)
    }
}

impl From<Error> for Answer {
    fn from(e: Error) -> Self {
        Self::Done(Err(e))
    }
}

/// An address passed to connect().
#[derive(Clone, Copy)]
pub(crate) struct SockAddr {
    pub(super) ptr: *mut bindings::sockaddr_unsized,
    pub(super) len: c_int,
}

impl SockAddr {
    /// The family, if the address is long enough to have one.
    pub(crate) fn family(self) -> Option<u16> {
        if self.ptr.is_null() || self.len < 2 {
            return None;
        }
        // SAFETY: The kernel passes `len` readable bytes.
        Some(unsafe { (*self.ptr).sa_family })
    }
}

/// The message of a send or receive.
pub(crate) struct Msg<'a>(
    pub(super) NonNull<bindings::msghdr>,
    pub(super) core::marker::PhantomData<&'a ()>,
);

impl Msg<'_> {
    /// MSG_ flags of a send.
    pub(crate) fn flags(&self) -> u32 {
        // SAFETY: The message is valid during the operation.
        unsafe { (*self.0.as_ptr()).msg_flags }
    }

    /// Adds flags that the receiver sees.
    pub(crate) fn add_flags(&mut self, flags: u32) {
        // SAFETY: As above.
        unsafe { (*self.0.as_ptr()).msg_flags |= flags }
    }

    /// A stream has no per-message address.
    pub(crate) fn clear_name(&mut self) {
        // SAFETY: As above.
        unsafe { (*self.0.as_ptr()).msg_namelen = 0 }
    }

    /// The data.
    pub(crate) fn iter(&mut self) -> MsgIter<'_> {
        // SAFETY: As above; the borrow of `self` keeps the iterator to one user.
        unsafe { MsgIter::from_msg(self.0) }
    }
}

/// Where poll registers its wait.
pub(crate) struct PollTable<'a> {
    pub(super) file: *mut bindings::file,
    pub(super) sock: &'a Socket,
    pub(super) wait: *mut bindings::poll_table_struct,
}

impl PollTable<'_> {
    /// Registers on the socket's wait queue, with the barrier that pairs with wake-ups.
    pub(crate) fn register(&self) {
        // SAFETY: The kernel passed these for this call.
        unsafe { bindings::smc_rs_poll_wait(self.file, self.sock.as_raw(), self.wait) }
    }
}

/// The arguments of accept().
pub(crate) struct AcceptArg<'a>(pub(super) &'a mut bindings::proto_accept_arg);

impl AcceptArg<'_> {
    /// Whether O_NONBLOCK is set.
    pub(crate) fn nonblock(&self) -> bool {
        self.0.flags & bindings::O_NONBLOCK as c_int != 0
    }

    /// Whether a kernel user accepts: it will overwrite the new socket's ops.
    pub(crate) fn kern(&self) -> bool {
        self.0.kern
    }

    /// Tells a multishot accept whether more are waiting.
    pub(crate) fn set_empty(&mut self, empty: bool) {
        self.0.is_empty = empty.into();
    }
}

/// The operations that differ from TCP's. All run in process context and may sleep.
pub(crate) trait StreamOps: 'static {
    /// The user's last reference went.
    fn release(sock: &Socket) -> Answer;
    /// connect(); `flags` are the file's (O_NONBLOCK).
    fn connect(sock: &Socket, addr: SockAddr, flags: c_int) -> Answer;
    /// accept(): grafts a child to `new`.
    fn accept(sock: &Socket, new: &Socket, arg: &mut AcceptArg<'_>) -> Answer;
    /// getsockname(), getpeername().
    fn getname(sock: &Socket, peer: bool) -> Answer;
    /// poll(); `None`: TCP answers.
    fn poll(sock: &Socket, table: &PollTable<'_>) -> Option<u32>;
    /// ioctl() that TCP would answer; `Ok(n)` is stored where the argument points to.
    fn ioctl(sock: &Socket, cmd: u32) -> Answer;
    /// listen().
    fn listen(sock: &Socket, backlog: c_int) -> Answer;
    /// shutdown(); `how` is SHUT_RD, SHUT_WR or SHUT_RDWR, unchecked.
    fn shutdown(sock: &Socket, how: c_int) -> Answer;
    /// setsockopt() below SOL_SOCKET, before TCP sees it.
    fn setsockopt(sock: &Socket, level: c_int, name: c_int) -> Answer;
    /// The same after TCP accepted it.
    fn setsockopt_done(sock: &Socket, level: c_int, name: c_int);
    /// getsockopt() below SOL_SOCKET.
    fn getsockopt(sock: &Socket, level: c_int, name: c_int) -> Answer;
    /// send.
    fn sendmsg(sock: &Socket, msg: &mut Msg<'_>, len: usize) -> Answer;
    /// receive.
    fn recvmsg(sock: &Socket, msg: &mut Msg<'_>, len: usize, flags: c_int) -> Answer;
    /// sendfile() has no more data: corked data goes out.
    fn splice_eof(sock: &Socket) -> Answer;
    /// Bytes readable, for tun and vhost.
    fn peek_len(sock: &Socket) -> Answer;
    /// Whether paths that reach TCP's queues directly (mmap, read_sock, sendmsg_locked, zero
    /// copy splice) may be used.
    fn tcp_queues(sk: &Sk) -> bool;
    /// SO_RCVLOWAT; the socket lock is held.
    fn set_rcvlowat(sk: &Sk, val: c_int) -> Answer;
}

/// Which of our tables a socket has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Table {
    /// Nothing was offered.
    Fresh,
    /// SMC is possible, active, or was left.
    Smc,
    /// TCP's own, or another's.
    Other,
}

static FRESH4: StaticCell<bindings::proto_ops> = StaticCell::new(pin_init::zeroed());
static FRESH6: StaticCell<bindings::proto_ops> = StaticCell::new(pin_init::zeroed());
static SMC4: StaticCell<bindings::proto_ops> = StaticCell::new(pin_init::zeroed());
static SMC6: StaticCell<bindings::proto_ops> = StaticCell::new(pin_init::zeroed());

/// Fills the four tables; module init, once.
pub(crate) fn init<F: StreamOps, S: StreamOps>() {
    // SAFETY: No socket points at the tables yet; TCP's are constant.
    unsafe {
        *FRESH4.get() = table::<F>(&bindings::inet_stream_ops);
        *FRESH6.get() = table::<F>(&bindings::inet6_stream_ops);
        *SMC4.get() = table::<S>(&bindings::inet_stream_ops);
        *SMC6.get() = table::<S>(&bindings::inet6_stream_ops);
    }
}

/// The fresh tables, IPv4's and IPv6's.
pub(super) fn fresh(v6: bool) -> *const bindings::proto_ops {
    if v6 {
        FRESH6.get()
    } else {
        FRESH4.get()
    }
}

/// Which table `sock` has; any context.
pub(crate) fn table_of(sock: &Socket) -> Table {
    // SAFETY: A live socket.
    let ops = unsafe { bindings::smc_rs_ops(sock.as_raw()) };
    if ops == FRESH4.get().cast_const() || ops == FRESH6.get().cast_const() {
        Table::Fresh
    } else if ops == SMC4.get().cast_const() || ops == SMC6.get().cast_const() {
        Table::Smc
    } else {
        Table::Other
    }
}

/// Switches a fresh socket to the `smc` table, or any to TCP's own; under the socket lock, in an
/// operation that pins the socket's file (or accept, which owns the new socket).
pub(crate) fn set_table(sock: &Socket, sk: &SkLocked<'_>, table: Table) {
    let ops: *const bindings::proto_ops = match (table, sk.is_v6()) {
        (Table::Fresh, v6) => fresh(v6),
        (Table::Smc, true) => SMC6.get(),
        (Table::Smc, false) => SMC4.get(),
        (Table::Other, _) => tcp_ops(sk),
    };
    // SAFETY: A live socket; references are the caller's business.
    unsafe { bindings::smc_rs_set_ops(sock.as_raw(), ops) }
}

/// TCP's own table for `sk`'s family.
pub(super) fn tcp_ops(sk: &Sk) -> *const bindings::proto_ops {
    if sk.is_v6() {
        &raw const bindings::inet6_stream_ops
    } else {
        &raw const bindings::inet_stream_ops
    }
}

/// Connects by TCP without waiting (`__inet_stream_connect` with O_NONBLOCK), under the lock.
/// Called again it says how a connection attempt ended.
pub(crate) fn tcp_connect(sock: &Socket, _sk: &SkLocked<'_>, addr: SockAddr) -> Result {
    // SAFETY: The socket is locked; the address is the caller's of this operation.
    kernel::error::to_result(unsafe {
        bindings::smc_rs_tcp_connect(
            sock.as_raw(),
            addr.ptr,
            addr.len,
            bindings::O_NONBLOCK as c_int,
        )
    })
}

/// Whether the file's flags say O_NONBLOCK.
pub(crate) fn nonblock(flags: c_int) -> bool {
    flags & bindings::O_NONBLOCK as c_int != 0
}

/// setsockopt(IPPROTO_TCP, TCP_ULP).
pub(crate) fn is_tcp_ulp(level: c_int, name: c_int) -> bool {
    level == bindings::SOL_TCP as c_int && name == bindings::TCP_ULP as c_int
}

/// getsockopt(IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE), which reads TCP's queue.
pub(crate) fn is_zerocopy_receive(level: c_int, name: c_int) -> bool {
    level == bindings::SOL_TCP as c_int && name == bindings::TCP_ZEROCOPY_RECEIVE as c_int
}

/// setsockopt(IPPROTO_IPV6, IPV6_ADDRFORM).
pub(crate) fn is_addrform(level: c_int, name: c_int) -> bool {
    level == bindings::SOL_IPV6 as c_int && name == 1
}

/// TCP_NODELAY or TCP_CORK, which may let held data go.
pub(crate) fn is_push_option(level: c_int, name: c_int) -> bool {
    level == bindings::SOL_TCP as c_int
        && (name == bindings::TCP_NODELAY as c_int || name == bindings::TCP_CORK as c_int)
}

/// MSG_ flags.
pub(crate) mod msg {
    use super::bindings;

    /// Urgent data.
    pub(crate) const OOB: u32 = bindings::MSG_OOB;
    /// Leave it in the buffer.
    pub(crate) const PEEK: u32 = bindings::MSG_PEEK;
    /// Throw it away.
    pub(crate) const TRUNC: u32 = bindings::MSG_TRUNC;
    /// Don't sleep.
    pub(crate) const DONTWAIT: u32 = bindings::MSG_DONTWAIT;
    /// All or nothing.
    pub(crate) const WAITALL: u32 = bindings::MSG_WAITALL;
    /// The error queue.
    pub(crate) const ERRQUEUE: u32 = bindings::MSG_ERRQUEUE;
    /// More will follow.
    pub(crate) const MORE: u32 = bindings::MSG_MORE;
    /// Data in the SYN.
    pub(crate) const FASTOPEN: u32 = bindings::MSG_FASTOPEN;
}

/// How of shutdown().
pub(crate) mod shut {
    /// SHUT_RD.
    pub(crate) const RD: i32 = 0;
    /// SHUT_WR.
    pub(crate) const WR: i32 = 1;
    /// SHUT_RDWR.
    pub(crate) const RDWR: i32 = 2;
}

/// Commands of ioctl().
pub(crate) mod ioctl {
    /// SIOCINQ, FIONREAD.
    pub(crate) const INQ: u32 = 0x541b;
    /// SIOCOUTQ, TIOCOUTQ.
    pub(crate) const OUTQ: u32 = 0x5411;
    /// SIOCOUTQNSD.
    pub(crate) const OUTQNSD: u32 = 0x894b;
    /// SIOCATMARK.
    pub(crate) const ATMARK: u32 = 0x8905;
}

/// TCP's listen().
pub(crate) fn tcp_listen(sock: &Socket, sk: &Sk, backlog: c_int) -> Result<c_int> {
    // SAFETY: A socket and a sock of TCP.
    unsafe {
        match (*tcp_ops(sk)).listen {
            Some(f) => errno_result(f(sock.as_raw(), backlog)),
            None => Err(EOPNOTSUPP),
        }
    }
}
