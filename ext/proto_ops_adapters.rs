// SPDX-License-Identifier: GPL-2.0

//! The C functions behind our `proto_ops`: each asks [`StreamOps`] and forwards to TCP's.

use super::{
    abi::bindings,
    module::ModuleRef,
    proto_ops::{
        tcp_ops,
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
    }, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::prelude::*;

/// A C result that is an errno when negative.
pub(super) fn errno_result(rc: c_int) -> Result<c_int> {
    kernel::error::to_result(rc).map(|()| rc)
}

/// A Rust result as C's.
fn to_c(r: Result<c_int>) -> c_int {
    match r {
        Ok(n) => n,
        Err(e) => e.to_errno(),
    }
}

/// Answers, or calls TCP's `$op` with the same arguments. A socket without a sock gets ENOTCONN.
macro_rules! forward {
    ($sock:expr, $answer:expr, $op:ident ( $($arg:expr),* )) => {{
        // SAFETY: The kernel passes a live socket.
        let sock = unsafe { Socket::from_raw($sock) };
        let Some(sk) = sock.sk() else {
            return ENOTCONN.to_errno();
        };
        match $answer(sock, sk) {
            Answer::Done(r) => to_c(r),
            Answer::Forward(_keep) => {
                // SAFETY: TCP's table, with the arguments the kernel passed for this socket.
                match unsafe { (*tcp_ops(sk)).$op } {
                    // SAFETY: As above.
                    Some(f) => unsafe { f($($arg),*) },
                    None => EOPNOTSUPP.to_errno(),
                }
            }
        }
    }};
}

/// `base` with our operations laid over it.
///
/// # Safety
///
/// `base` is a complete stream table of TCP's.
pub(super) unsafe fn table<T: StreamOps>(base: *const bindings::proto_ops) -> bindings::proto_ops {
    // A new kernel with another operation must make somebody look at this file.
    const { assert!(size_of::<bindings::proto_ops>() == PROTO_OPS_SIZE) };
    // SAFETY: By the safety requirements; the copy has no ownership.
    let base = unsafe { core::ptr::read(base) };
    bindings::proto_ops {
        owner: super::module::this(),
        release: Some(release::<T>),
        connect: Some(connect::<T>),
        accept: Some(accept::<T>),
        getname: Some(getname::<T>),
        poll: Some(poll::<T>),
        ioctl: Some(ioctl::<T>),
        #[cfg(CONFIG_COMPAT)]
        compat_ioctl: Some(compat_ioctl::<T>),
        listen: Some(listen::<T>),
        shutdown: Some(shutdown::<T>),
        setsockopt: Some(setsockopt::<T>),
        getsockopt: Some(getsockopt::<T>),
        sendmsg: Some(sendmsg::<T>),
        recvmsg: Some(recvmsg::<T>),
        mmap: Some(mmap::<T>),
        splice_read: Some(splice_read::<T>),
        splice_eof: Some(splice_eof::<T>),
        peek_len: Some(peek_len::<T>),
        read_sock: Some(read_sock::<T>),
        read_skb: Some(read_skb::<T>),
        sendmsg_locked: Some(sendmsg_locked::<T>),
        set_rcvlowat: Some(set_rcvlowat::<T>),
        ..base
    }
}

/// The size of `struct proto_ops` that this file was written against.
const PROTO_OPS_SIZE: usize = if cfg!(CONFIG_COMPAT) { 30 * 8 } else { 29 * 8 };

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn release<T: StreamOps>(sock: *mut bindings::socket) -> c_int {
    // SAFETY: The kernel passes a live socket.
    if unsafe { Socket::from_raw(sock) }.sk().is_none() {
        return 0;
    }
    forward!(sock, |s, _| T::release(s), release(sock))
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn connect<T: StreamOps>(
    sock: *mut bindings::socket,
    addr: *mut bindings::sockaddr_unsized,
    len: c_int,
    flags: c_int,
) -> c_int {
    let a = SockAddr { ptr: addr, len };
    forward!(
        sock,
        |s, _| T::connect(s, a, flags),
        connect(sock, addr, len, flags)
    )
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn accept<T: StreamOps>(
    sock: *mut bindings::socket,
    new: *mut bindings::socket,
    arg: *mut bindings::proto_accept_arg,
) -> c_int {
    // SAFETY: The kernel passes live sockets and an argument for this call.
    let (new_sock, mut a) = unsafe { (Socket::from_raw(new), AcceptArg(&mut *arg)) };
    forward!(
        sock,
        |s, _| T::accept(s, new_sock, &mut a),
        accept(sock, new, arg)
    )
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn getname<T: StreamOps>(
    sock: *mut bindings::socket,
    addr: *mut bindings::sockaddr,
    peer: c_int,
) -> c_int {
    forward!(
        sock,
        |s, _| T::getname(s, peer != 0),
        getname(sock, addr, peer)
    )
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn poll<T: StreamOps>(
    file: *mut bindings::file,
    sock: *mut bindings::socket,
    wait: *mut bindings::poll_table_struct,
) -> bindings::__poll_t {
    // SAFETY: The kernel passes a live socket.
    let s = unsafe { Socket::from_raw(sock) };
    let table = PollTable {
        file,
        sock: s,
        wait,
    };
    let Some(sk) = s.sk() else {
        return 0x20; // EPOLLNVAL
    };
    if let Some(mask) = T::poll(s, &table) {
        return mask;
    }
    // SAFETY: TCP's table, with the arguments the kernel passed.
    unsafe {
        match (*tcp_ops(sk)).poll {
            Some(f) => f(file, sock, wait),
            None => 0,
        }
    }
}

/// Stores an answered ioctl where the argument points to.
fn ioctl_answer(r: Result<c_int>, arg: c_ulong) -> c_int {
    match r {
        // SAFETY: `put_user` checks the address.
        Ok(n) => unsafe { bindings::smc_rs_put_user_int(n, arg) },
        Err(e) => e.to_errno(),
    }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn ioctl<T: StreamOps>(
    sock: *mut bindings::socket,
    cmd: c_uint,
    arg: c_ulong,
) -> c_int {
    // SAFETY: The kernel passes a live socket.
    let s = unsafe { Socket::from_raw(sock) };
    let mut keep = None;
    if s.sk().is_some() {
        match T::ioctl(s, cmd) {
            Answer::Done(r) => return ioctl_answer(r, arg),
            Answer::Forward(k) => keep = k,
        }
    }
    forward!(sock, |_, _| Answer::Forward(keep), ioctl(sock, cmd, arg))
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
#[cfg(CONFIG_COMPAT)]
unsafe extern "C" fn compat_ioctl<T: StreamOps>(
    sock: *mut bindings::socket,
    cmd: c_uint,
    arg: c_ulong,
) -> c_int {
    // SAFETY: The kernel passes a live socket.
    let s = unsafe { Socket::from_raw(sock) };
    let mut keep = None;
    if s.sk().is_some() {
        match T::ioctl(s, cmd) {
            // SAFETY: No preconditions.
            Answer::Done(r) => return ioctl_answer(r, unsafe { bindings::smc_rs_compat_ptr(arg) }),
            Answer::Forward(k) => keep = k,
        }
    }
    forward!(
        sock,
        |_, _| Answer::Forward(keep),
        compat_ioctl(sock, cmd, arg)
    )
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn listen<T: StreamOps>(sock: *mut bindings::socket, backlog: c_int) -> c_int {
    forward!(sock, |s, _| T::listen(s, backlog), listen(sock, backlog))
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn shutdown<T: StreamOps>(sock: *mut bindings::socket, how: c_int) -> c_int {
    forward!(sock, |s, _| T::shutdown(s, how), shutdown(sock, how))
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn setsockopt<T: StreamOps>(
    sock: *mut bindings::socket,
    level: c_int,
    name: c_int,
    val: bindings::sockptr_t,
    len: c_uint,
) -> c_int {
    let rc = forward!(
        sock,
        |s, _| T::setsockopt(s, level, name),
        setsockopt(sock, level, name, val, len)
    );
    if rc == 0 {
        // SAFETY: The kernel passes a live socket.
        T::setsockopt_done(unsafe { Socket::from_raw(sock) }, level, name);
    }
    rc
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn getsockopt<T: StreamOps>(
    sock: *mut bindings::socket,
    level: c_int,
    name: c_int,
    val: *mut c_char,
    len: *mut c_int,
) -> c_int {
    let tcp_ulp = level == bindings::SOL_TCP as c_int && name == bindings::TCP_ULP as c_int;
    if tcp_ulp {
        // TCP reads the slot's ops twice around a copy to user memory; the slot may be emptied
        // meanwhile. To the user there is no ULP here.
        // SAFETY: `put_user` checks the address.
        return unsafe { bindings::smc_rs_put_user_int(0, len as c_ulong) };
    }
    forward!(
        sock,
        |s, _| T::getsockopt(s, level, name),
        getsockopt(sock, level, name, val, len)
    )
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn sendmsg<T: StreamOps>(
    sock: *mut bindings::socket,
    msg: *mut bindings::msghdr,
    len: usize,
) -> c_int {
    // SAFETY: The kernel passes a message for this call.
    let mut m = Msg(unsafe { NonNull::new_unchecked(msg) }, PhantomData);
    forward!(
        sock,
        |s, _| T::sendmsg(s, &mut m, len),
        sendmsg(sock, msg, len)
    )
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn recvmsg<T: StreamOps>(
    sock: *mut bindings::socket,
    msg: *mut bindings::msghdr,
    len: usize,
    flags: c_int,
) -> c_int {
    // SAFETY: The kernel passes a message for this call.
    let mut m = Msg(unsafe { NonNull::new_unchecked(msg) }, PhantomData);
    forward!(
        sock,
        |s, _| T::recvmsg(s, &mut m, len, flags),
        recvmsg(sock, msg, len, flags)
    )
}

/// Forwards where TCP's queues may be used, else `refused`.
fn queues<T: StreamOps>(sk: &Sk, refused: Error) -> Answer {
    if T::tcp_queues(sk) {
        Answer::Forward(ModuleRef::try_get())
    } else {
        refused.into()
    }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn mmap<T: StreamOps>(
    file: *mut bindings::file,
    sock: *mut bindings::socket,
    vma: *mut bindings::vm_area_struct,
) -> c_int {
    forward!(sock, |_, sk| queues::<T>(sk, EINVAL), mmap(file, sock, vma))
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn splice_read<T: StreamOps>(
    sock: *mut bindings::socket,
    ppos: *mut bindings::loff_t,
    pipe: *mut bindings::pipe_inode_info,
    len: usize,
    flags: c_uint,
) -> isize {
    // SAFETY: The kernel passes a live socket whose file is pinned by the caller.
    let s = unsafe { Socket::from_raw(sock) };
    let Some(sk) = s.sk() else {
        return ENOTCONN.to_errno() as isize;
    };
    // Both sleep, and meanwhile the socket may stop being ours.
    let _keep = ModuleRef::try_get();
    if !T::tcp_queues(sk) {
        // SAFETY: As above; this reads by our recvmsg into pages of the pipe's own.
        return unsafe { bindings::smc_rs_copy_splice(sock, ppos, pipe, len, flags) };
    }
    // SAFETY: TCP's table, with the arguments the kernel passed.
    unsafe {
        match (*tcp_ops(sk)).splice_read {
            Some(f) => f(sock, ppos, pipe, len, flags),
            None => EOPNOTSUPP.to_errno() as isize,
        }
    }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn splice_eof<T: StreamOps>(sock: *mut bindings::socket) {
    // SAFETY: The kernel passes a live socket.
    let s = unsafe { Socket::from_raw(sock) };
    let Some(sk) = s.sk() else {
        return;
    };
    if let Answer::Forward(_keep) = T::splice_eof(s) {
        // SAFETY: TCP's table.
        unsafe {
            if let Some(f) = (*tcp_ops(sk)).splice_eof {
                f(sock);
            }
        }
    }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn peek_len<T: StreamOps>(sock: *mut bindings::socket) -> c_int {
    forward!(sock, |s, _| T::peek_len(s), peek_len(sock))
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn read_sock<T: StreamOps>(
    sk: *mut bindings::sock,
    desc: *mut bindings::read_descriptor_t,
    actor: bindings::sk_read_actor_t,
) -> c_int {
    // SAFETY: The kernel passes a live sock.
    let s = unsafe { Sk::from_raw(sk) };
    if !T::tcp_queues(s) {
        return EOPNOTSUPP.to_errno();
    }
    // SAFETY: TCP's table.
    unsafe {
        match (*tcp_ops(s)).read_sock {
            Some(f) => f(sk, desc, actor),
            None => EOPNOTSUPP.to_errno(),
        }
    }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn read_skb<T: StreamOps>(
    sk: *mut bindings::sock,
    actor: bindings::skb_read_actor_t,
) -> c_int {
    // SAFETY: The kernel passes a live sock.
    let s = unsafe { Sk::from_raw(sk) };
    if !T::tcp_queues(s) {
        return EOPNOTSUPP.to_errno();
    }
    // SAFETY: TCP's table.
    unsafe {
        match (*tcp_ops(s)).read_skb {
            Some(f) => f(sk, actor),
            None => EOPNOTSUPP.to_errno(),
        }
    }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn sendmsg_locked<T: StreamOps>(
    sk: *mut bindings::sock,
    msg: *mut bindings::msghdr,
    size: usize,
) -> c_int {
    // SAFETY: The kernel passes a live sock.
    let s = unsafe { Sk::from_raw(sk) };
    if !T::tcp_queues(s) {
        return EOPNOTSUPP.to_errno();
    }
    let _keep = ModuleRef::try_get();
    // SAFETY: TCP's table.
    unsafe {
        match (*tcp_ops(s)).sendmsg_locked {
            Some(f) => f(sk, msg, size),
            None => EOPNOTSUPP.to_errno(),
        }
    }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn set_rcvlowat<T: StreamOps>(sk: *mut bindings::sock, val: c_int) -> c_int {
    // SAFETY: The kernel passes a live sock.
    let s = unsafe { Sk::from_raw(sk) };
    match T::set_rcvlowat(s, val) {
        Answer::Done(r) => to_c(r),
        // SAFETY: TCP's table.
        Answer::Forward(_keep) => unsafe {
            match (*tcp_ops(s)).set_rcvlowat {
                Some(f) => f(sk, val),
                None => EOPNOTSUPP.to_errno(),
            }
        },
    }
}
