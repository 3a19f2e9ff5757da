// SPDX-License-Identifier: GPL-2.0

//! `struct sock` (always a TCP socket here) and `struct socket`.
//!
//! C header: [`include/net/sock.h`](srctree/include/net/sock.h)

use super::{
    abi::bindings,
    net::NetPtr, //
};
use core::{
    net::{
        IpAddr,
        Ipv4Addr,
        Ipv6Addr, //
    },
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::aref::{
        ARef,
        AlwaysRefCounted, //
    },
    types::Opaque, //
};

/// A TCP `struct sock`.
///
/// # Invariants
///
/// Points at a live IPv4 or IPv6 TCP sock.
#[repr(transparent)]
pub(crate) struct Sk(Opaque<bindings::sock>);

// SAFETY: A sock may be used from any thread; its fields are reached by the kernel's own rules.
unsafe impl Send for Sk {}
// SAFETY: As above.
unsafe impl Sync for Sk {}

// SAFETY: `sock_hold`/`sock_put` count references, and the sock lives while one is held.
unsafe impl AlwaysRefCounted for Sk {
    fn inc_ref(&self) {
        // SAFETY: By the type invariants.
        unsafe { bindings::smc_rs_sock_hold(self.as_raw()) }
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller gives up a reference.
        unsafe { bindings::smc_rs_sock_put(obj.as_ptr().cast()) }
    }
}

/// An address of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// The address; an IPv4-mapped IPv6 address stays IPv6.
    pub(crate) ip: IpAddr,
    /// The port, host byte order; 0 when unset.
    pub(crate) port: u16,
}

/// TCP states, as `enum` in `include/net/tcp_states.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TcpState {
    /// Open in both directions.
    Established,
    /// A SYN was sent or received.
    Opening,
    /// The peer sent its FIN; our direction is open.
    CloseWait,
    /// Closed, reset or never connected.
    Close,
    /// A listener.
    Listen,
    /// Our FIN was sent.
    Closing,
}

impl Sk {
    /// Wraps a raw pointer.
    ///
    /// # Safety
    ///
    /// `ptr` is a live TCP sock for `'a`.
    pub(super) unsafe fn from_raw<'a>(ptr: *mut bindings::sock) -> &'a Self {
        // SAFETY: `Sk` is transparent over `sock`; the caller promises the rest.
        unsafe { &*ptr.cast() }
    }

    /// The raw pointer.
    pub(super) fn as_raw(&self) -> *mut bindings::sock {
        self.0.get()
    }

    /// A counted reference.
    pub(crate) fn hold(&self) -> ARef<Self> {
        self.into()
    }

    /// The address of the namespace, to compare or to look up per-namespace state.
    pub(crate) fn net(&self) -> NetPtr<'_> {
        // SAFETY: A sock has a namespace, which lives as long as the sock.
        unsafe {
            NetPtr::from_raw(NonNull::new_unchecked(bindings::smc_rs_sock_net(
                self.as_raw(),
            )))
        }
    }

    /// Whether the socket's family is IPv6 (also when it speaks IPv4).
    pub(crate) fn is_v6(&self) -> bool {
        // SAFETY: By the type invariants.
        u32::from(unsafe { bindings::smc_rs_sk_family(self.as_raw()) }) == bindings::AF_INET6
    }

    /// The TCP state; any context.
    pub(crate) fn state(&self) -> TcpState {
        // SAFETY: By the type invariants.
        match u32::try_from(unsafe { bindings::smc_rs_sk_state(self.as_raw()) }).unwrap_or(0) {
            bindings::TCP_ESTABLISHED => TcpState::Established,
            bindings::TCP_SYN_SENT | bindings::TCP_SYN_RECV | bindings::TCP_NEW_SYN_RECV => {
                TcpState::Opening
            }
            bindings::TCP_CLOSE_WAIT => TcpState::CloseWait,
            bindings::TCP_LISTEN => TcpState::Listen,
            bindings::TCP_CLOSE | 0 => TcpState::Close,
            _ => TcpState::Closing,
        }
    }

    fn endpoint(&self, peer: bool) -> Endpoint {
        let mut a = bindings::smc_rs_addr::default();
        // SAFETY: By the type invariants; `a` is written only during the call.
        unsafe { bindings::smc_rs_sk_addr(self.as_raw(), peer, &mut a) };
        let ip = if u32::from(a.family) == bindings::AF_INET6 {
            IpAddr::V6(Ipv6Addr::from(a.addr))
        } else {
            IpAddr::V4(Ipv4Addr::new(a.addr[0], a.addr[1], a.addr[2], a.addr[3]))
        };
        Endpoint { ip, port: a.port }
    }

    /// The local address.
    pub(crate) fn local(&self) -> Endpoint {
        self.endpoint(false)
    }

    /// The peer's address.
    pub(crate) fn peer(&self) -> Endpoint {
        self.endpoint(true)
    }

    /// SO_BINDTODEVICE's ifindex, or 0.
    pub(crate) fn bound_ifindex(&self) -> u32 {
        // SAFETY: By the type invariants.
        unsafe { bindings::smc_rs_sk_ifindex(self.as_raw()) }
    }

    /// The owner's uid in the socket's user namespace.
    pub(crate) fn uid(&self) -> u32 {
        // SAFETY: By the type invariants.
        unsafe { bindings::smc_rs_sk_uid(self.as_raw()) }
    }

    /// The inode number of the user's socket, or 0.
    pub(crate) fn inode(&self) -> u64 {
        // SAFETY: By the type invariants.
        unsafe { bindings::smc_rs_sk_ino(self.as_raw()) }
    }

    /// Takes the socket lock; may sleep.
    pub(crate) fn lock(&self) -> SkLocked<'_> {
        // SAFETY: By the type invariants; the guard releases it.
        unsafe { bindings::smc_rs_lock_sock(self.as_raw()) };
        SkLocked(self)
    }

    /// SO_RCVTIMEO in jiffies, 0 if `nonblock`.
    pub(crate) fn rcvtimeo(&self, nonblock: bool) -> c_long {
        // SAFETY: By the type invariants.
        unsafe { bindings::smc_rs_rcvtimeo(self.as_raw(), nonblock) }
    }

    /// SO_SNDTIMEO in jiffies, 0 if `nonblock`.
    pub(crate) fn sndtimeo(&self, nonblock: bool) -> c_long {
        // SAFETY: By the type invariants.
        unsafe { bindings::smc_rs_sndtimeo(self.as_raw(), nonblock) }
    }

    /// How many bytes a read of `len` has to wait for: SO_RCVLOWAT, or all under MSG_WAITALL.
    pub(crate) fn rcvlowat(&self, waitall: bool, len: usize) -> usize {
        let len = c_int::try_from(len).unwrap_or(c_int::MAX);
        // SAFETY: By the type invariants.
        let n = unsafe { bindings::smc_rs_rcvlowat(self.as_raw(), waitall, len) };
        usize::try_from(n).unwrap_or(1)
    }

    /// SO_LINGER's time in jiffies, if set.
    pub(crate) fn linger(&self) -> Option<c_ulong> {
        let mut t: c_ulong = 0;
        // SAFETY: By the type invariants; `t` is written during the call.
        unsafe { bindings::smc_rs_sk_linger(self.as_raw(), &mut t) }.then_some(t)
    }

    /// Takes the pending error (SO_ERROR's), as a negative errno, or 0.
    pub(crate) fn take_error(&self) -> c_int {
        // SAFETY: By the type invariants.
        unsafe { bindings::smc_rs_sock_error(self.as_raw()) }
    }

    /// The pending error, left in place.
    pub(crate) fn pending_error(&self) -> Option<Error> {
        // SAFETY: By the type invariants.
        match unsafe { bindings::smc_rs_sk_err(self.as_raw()) } {
            0 => None,
            e => Some(Error::from_errno(-e)),
        }
    }

    /// The error of a send on a broken or shut connection: the pending one, else EPIPE, with
    /// SIGPIPE unless `flags` has MSG_NOSIGNAL.
    pub(crate) fn stream_error(&self, flags: u32) -> Error {
        let flags = flags as c_int;
        // SAFETY: By the type invariants; process context.
        Error::from_errno(unsafe {
            bindings::sk_stream_error(self.as_raw(), flags, EPIPE.to_errno())
        })
    }

    /// SO_MARK.
    pub(crate) fn mark(&self) -> u32 {
        // SAFETY: By the type invariants.
        unsafe { bindings::smc_rs_sk_mark(self.as_raw()) }
    }

    /// The bytes of SO_SNDBUF and SO_RCVBUF, as far as the user set them.
    pub(crate) fn user_buffers(&self) -> (Option<u32>, Option<u32>) {
        let get = |rcv| {
            let mut n = 0;
            // SAFETY: By the type invariants; `n` is written during the call.
            unsafe { bindings::smc_rs_sk_user_buf(self.as_raw(), rcv, &mut n) }.then_some(n)
        };
        (get(false), get(true))
    }

    /// SO_OOBINLINE.
    pub(crate) fn oob_inline(&self) -> bool {
        // SAFETY: By the type invariants.
        unsafe { bindings::smc_rs_sk_oobinline(self.as_raw()) }
    }

    /// Sends SIGURG to the owner and wakes for EPOLLPRI; any context.
    pub(crate) fn signal_urgent(&self) {
        // SAFETY: By the type invariants; the helper takes what pins the file.
        unsafe { bindings::smc_rs_sk_send_sigurg(self.as_raw()) };
        self.wake(poll::PRI);
    }

    /// SO_RCVLOWAT as stored.
    pub(crate) fn rcvlowat_raw(&self) -> i32 {
        // SAFETY: By the type invariants.
        unsafe { bindings::smc_rs_rcvlowat_raw(self.as_raw()) }
    }

    /// Publishes an error for SO_ERROR.
    pub(crate) fn set_error(&self, err: Error) {
        // SAFETY: By the type invariants.
        unsafe { bindings::smc_rs_set_err(self.as_raw(), -err.to_errno()) }
    }

    /// Wakes the sleepers for the poll events in `key`; any context.
    pub(crate) fn wake(&self, key: u32) {
        let (how, band) = if key & poll::IN != 0 {
            (
                bindings::SOCK_WAKE_WAITD as c_int,
                bindings::POLL_IN as c_int,
            )
        } else if key & poll::OUT != 0 {
            (
                bindings::SOCK_WAKE_SPACE as c_int,
                bindings::POLL_OUT as c_int,
            )
        } else {
            (bindings::SOCK_WAKE_IO as c_int, bindings::POLL_ERR as c_int)
        };
        // SAFETY: By the type invariants; the helper reads `sk_wq` under RCU.
        unsafe { bindings::smc_rs_wake(self.as_raw(), key, how, band) }
    }

    /// Wakes everybody for everything: a decision, an error, a hangup.
    pub(crate) fn wake_all(&self) {
        self.wake(poll::IN | poll::RDNORM | poll::OUT | poll::WRNORM);
        // SAFETY: As in `wake`. SIGIO owners hear of space too.
        unsafe {
            bindings::smc_rs_wake(
                self.as_raw(),
                poll::ERR | poll::HUP,
                bindings::SOCK_WAKE_IO as c_int,
                bindings::POLL_OUT as c_int,
            )
        }
    }

    /// Aborts the connection with `err`: RST to the peer, `err` in SO_ERROR. Takes the socket
    /// lock; may sleep.
    pub(crate) fn abort(&self, err: Error) {
        // SAFETY: By the type invariants; the socket lock is not held by contract.
        unsafe { bindings::tcp_abort(self.as_raw(), -err.to_errno()) };
    }

    /// Whether both ends of a client's connection offered SMC.
    pub(crate) fn has_option(&self) -> bool {
        // SAFETY: By the type invariants.
        unsafe { bindings::smc_rs_tcp_has_option(self.as_raw()) }
    }

    /// Whether TCP has acknowledged everything sent.
    pub(crate) fn all_acked(&self) -> bool {
        // SAFETY: By the type invariants.
        unsafe { bindings::smc_rs_tcp_acked(self.as_raw()) }
    }

    /// Whether TCP has received only the SYN-ACK: then both ends did not open at once.
    pub(crate) fn only_synack(&self) -> bool {
        // SAFETY: By the type invariants.
        unsafe { bindings::smc_rs_tcp_only_synack(self.as_raw()) }
    }

    /// Whether TCP_CORK is on.
    pub(crate) fn corked(&self) -> bool {
        // SAFETY: By the type invariants.
        unsafe { bindings::smc_rs_tcp_corked(self.as_raw()) }
    }

    /// Whether `n` children are more than listen()'s backlog allows; as TCP counts.
    pub(crate) fn backlog_full(&self, n: i32) -> bool {
        // SAFETY: By the type invariants.
        let max = unsafe { bindings::smc_rs_max_backlog(self.as_raw()) };
        u32::try_from(n).unwrap_or(0) > max
    }

    /// Remembers that a writer waits for space (SIGIO).
    pub(crate) fn set_nospace(&self) {
        // SAFETY: By the type invariants.
        unsafe { bindings::smc_rs_set_nospace(self.as_raw()) }
    }

    /// The user's or a private `struct socket`; meaningful only under the socket lock or while
    /// the caller's file pins it.
    pub(crate) fn socket(&self) -> Option<&Socket> {
        // SAFETY: By the type invariants.
        let ptr = unsafe { bindings::smc_rs_sk_socket(self.as_raw()) };
        // SAFETY: The caller holds the socket lock or a file: the socket stays attached.
        NonNull::new(ptr).map(|p| unsafe { Socket::from_raw(p.as_ptr()) })
    }
}

/// The socket lock, held.
pub(crate) struct SkLocked<'a>(&'a Sk);

impl core::ops::Deref for SkLocked<'_> {
    type Target = Sk;

    fn deref(&self) -> &Sk {
        self.0
    }
}

impl Drop for SkLocked<'_> {
    fn drop(&mut self) {
        // SAFETY: The lock was taken by `Sk::lock`.
        unsafe { bindings::release_sock(self.0.as_raw()) }
    }
}

impl SkLocked<'_> {
    /// Copies unread bytes of TCP's receive queue without consuming them.
    pub(crate) fn peek(&self, buf: &mut [u8]) -> usize {
        let len = c_int::try_from(buf.len()).unwrap_or(c_int::MAX);
        // SAFETY: The lock is held; `buf` is writable for `len` bytes.
        let n = unsafe { bindings::smc_rs_tcp_peek(self.as_raw(), buf.as_mut_ptr().cast(), len) };
        usize::try_from(n).unwrap_or(0)
    }

    /// Consumes `len` bytes of TCP's receive queue.
    pub(crate) fn consume(&self, len: usize) {
        // SAFETY: The lock is held.
        unsafe { bindings::smc_rs_tcp_consume(self.as_raw(), len) };
    }

    /// Throws away what TCP's receive queue holds.
    pub(crate) fn purge(&self) {
        // SAFETY: The lock is held.
        unsafe { bindings::smc_rs_tcp_purge(self.as_raw()) };
    }

    /// Sends a CLC message, never sleeping and past cork and Nagle. `false`: TCP took none or
    /// part of it (no memory); the connection can only be reset.
    pub(crate) fn send(&self, buf: &[u8]) -> bool {
        if self.socket().is_none() {
            return false;
        }
        // SAFETY: The lock is held, `sk_socket` is set, `buf` is readable.
        let rc =
            unsafe { bindings::smc_rs_tcp_send(self.as_raw(), buf.as_ptr().cast(), buf.len()) };
        usize::try_from(rc) == Ok(buf.len())
    }

    /// Whether the SYN may offer SMC: nothing configured on the TCP flow would be bypassed.
    pub(crate) fn may_offer(&self) -> bool {
        // SAFETY: The lock is held.
        unsafe { bindings::smc_rs_tcp_may_offer(self.as_raw()) }
    }

    /// Sets or clears the offer for the next SYN.
    pub(crate) fn set_option(&self, on: bool) {
        // SAFETY: The lock is held.
        unsafe { bindings::smc_rs_tcp_set_syn_smc(self.as_raw(), on) }
    }

    /// Stores SO_RCVLOWAT.
    pub(crate) fn set_rcvlowat_raw(&self, val: i32) {
        // SAFETY: The lock is held.
        unsafe { bindings::smc_rs_set_rcvlowat_raw(self.as_raw(), val) }
    }

    /// How the final TCP close ends the connection: by RST, or by FIN without lingering.
    pub(crate) fn set_close_by_reset(&self, reset: bool) {
        // SAFETY: The lock is held.
        unsafe { bindings::smc_rs_tcp_linger(self.as_raw(), reset) }
    }
}

/// A `struct socket`.
#[repr(transparent)]
pub(crate) struct Socket(Opaque<bindings::socket>);

impl Socket {
    /// Wraps a raw pointer.
    ///
    /// # Safety
    ///
    /// `ptr` is a live socket for `'a`.
    pub(super) unsafe fn from_raw<'a>(ptr: *mut bindings::socket) -> &'a Self {
        // SAFETY: `Socket` is transparent; the caller promises the rest.
        unsafe { &*ptr.cast() }
    }

    /// The raw pointer.
    pub(super) fn as_raw(&self) -> *mut bindings::socket {
        self.0.get()
    }

    /// The sock, if one is attached.
    pub(crate) fn sk(&self) -> Option<&Sk> {
        // SAFETY: A live socket; `sk` is set once before user calls and cleared in release.
        let ptr = unsafe { (*self.as_raw()).sk };
        // SAFETY: An attached sock lives as long as the socket.
        NonNull::new(ptr).map(|p| unsafe { Sk::from_raw(p.as_ptr()) })
    }

    /// Whether connect() is under way; its end has not been told yet.
    pub(crate) fn connecting(&self) -> bool {
        // SAFETY: A live socket.
        unsafe { (*self.as_raw()).state == bindings::socket_state_SS_CONNECTING }
    }

    /// Whether a file belongs to it: false for sockets made by the kernel for itself.
    pub(crate) fn has_file(&self) -> bool {
        // SAFETY: A live socket.
        unsafe { !(*self.as_raw()).file.is_null() }
    }
}

/// A private `struct socket` that holds a sock which no file reaches: a child before accept(), or
/// a connection after close(). Dropped while a sock is attached: closes TCP (may sleep).
pub(crate) struct PrivateSocket(NonNull<bindings::socket>);

// SAFETY: The socket is only reached through this value and the sock's own rules.
unsafe impl Send for PrivateSocket {}
// SAFETY: As above.
unsafe impl Sync for PrivateSocket {}

impl PrivateSocket {
    /// Allocates one; may sleep.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: No preconditions.
        let ptr = NonNull::new(unsafe { bindings::sock_alloc() }).ok_or(ENOMEM)?;
        // SAFETY: Freshly allocated, ours alone.
        unsafe { (*ptr.as_ptr()).type_ = bindings::sock_type_SOCK_STREAM as c_short };
        Ok(Self(ptr))
    }

    /// Attaches the sock whose base reference the caller owns (a child from TCP's accept, or the
    /// sock of a user's socket in its release): from now on TCP's own proto_ops close it.
    pub(crate) fn attach(&self, sk: &SkLocked<'_>) {
        let ops = super::proto_ops::tcp_ops(sk);
        // SAFETY: The lock is held; ours alone. The state is what TCP's close expects.
        unsafe {
            bindings::smc_rs_set_ops(self.0.as_ptr(), ops);
            (*self.0.as_ptr()).state = bindings::socket_state_SS_CONNECTED;
            bindings::smc_rs_attach(sk.as_raw(), self.0.as_ptr());
        }
    }

    /// Takes the sock out again; the caller grafts or has grafted it to a user's socket.
    pub(crate) fn detach(self) {
        // SAFETY: Ours alone. With `sk` and `ops` NULL, dropping only frees the inode.
        unsafe {
            (*self.0.as_ptr()).sk = core::ptr::null_mut();
            bindings::smc_rs_set_ops(self.0.as_ptr(), core::ptr::null());
        }
    }
}

impl Drop for PrivateSocket {
    fn drop(&mut self) {
        // SAFETY: Allocated by `new`; with a sock attached its TCP ops close it once.
        unsafe { bindings::sock_release(self.0.as_ptr()) }
    }
}

/// Poll events, as in `include/uapi/linux/eventpoll.h`.
pub(crate) mod poll {
    /// EPOLLIN.
    pub(crate) const IN: u32 = 0x1;
    /// EPOLLPRI.
    pub(crate) const PRI: u32 = 0x2;
    /// EPOLLOUT.
    pub(crate) const OUT: u32 = 0x4;
    /// EPOLLERR.
    pub(crate) const ERR: u32 = 0x8;
    /// EPOLLHUP.
    pub(crate) const HUP: u32 = 0x10;
    /// EPOLLRDNORM.
    pub(crate) const RDNORM: u32 = 0x40;
    /// EPOLLWRNORM.
    pub(crate) const WRNORM: u32 = 0x100;
    /// EPOLLRDHUP.
    pub(crate) const RDHUP: u32 = 0x2000;
}
