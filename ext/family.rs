// SPDX-License-Identifier: GPL-2.0

//! The ways to make a socket of ours: AF_SMC and IPPROTO_SMC. (The third, a probe on TCP's own
//! creation, is [`super::create_probe`].)
//!
//! A fresh socket is a TCP socket with our `fresh` ops and one module reference beside the one
//! that goes with the ops; [`take_fresh_ref`] hands it to whoever leaves that state.
//!
//! C headers: [`include/linux/net.h`](srctree/include/linux/net.h),
//! [`include/net/protocol.h`](srctree/include/net/protocol.h)

use super::{
    abi::bindings,
    module::{
        self,
        ModuleRef, //
    },
    proto_ops::{
        self,
        Table, //
    },
    sk::{
        SkLocked,
        Socket, //
    },
    static_cell::StaticCell, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Release, //
    }, //
};

/// Protocol number of IPPROTO_SMC.
const IPPROTO_SMC: c_ushort = 256;

static FAMILY: StaticCell<bindings::net_proto_family> = StaticCell::new(pin_init::zeroed());
static PROTO4: StaticCell<bindings::proto> = StaticCell::new(pin_init::zeroed());
static PROTO6: StaticCell<bindings::proto> = StaticCell::new(pin_init::zeroed());
static SW4: StaticCell<bindings::inet_protosw> = StaticCell::new(pin_init::zeroed());
static SW6: StaticCell<bindings::inet_protosw> = StaticCell::new(pin_init::zeroed());

/// Whether AF_SMC sockets may be made.
static OPEN: Atomic<bool> = Atomic::new(false);

/// AF_SMC, registered.
pub(crate) struct SmcFamily(());

impl SmcFamily {
    /// Lets sockets be made; the rest of the module must be there.
    pub(crate) fn open(&self) {
        OPEN.store(true, Release);
    }

    /// Registers AF_SMC; `socket()` fails with EAFNOSUPPORT until [`SmcFamily::open`]. `EEXIST`:
    /// `smc.ko` is loaded. May sleep.
    pub(crate) fn register() -> Result<Self> {
        // SAFETY: The table is static and filled before the kernel sees it.
        to_result(unsafe {
            *FAMILY.get() = bindings::net_proto_family {
                family: bindings::AF_SMC as c_int,
                create: Some(create),
                owner: module::this(),
            };
            bindings::sock_register(FAMILY.get())
        })?;
        Ok(Self(()))
    }
}

impl Drop for SmcFamily {
    fn drop(&mut self) {
        // SAFETY: Registered by `register`.
        unsafe { bindings::sock_unregister(bindings::AF_SMC as c_int) }
    }
}

/// `socket(AF_SMC, SOCK_STREAM, 0 or 1)`.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn create(
    net: *mut bindings::net,
    sock: *mut bindings::socket,
    protocol: c_int,
    kern: c_int,
) -> c_int {
    if !OPEN.load(Acquire) {
        return EAFNOSUPPORT.to_errno();
    }
    // SAFETY: The kernel passes a fresh socket.
    if i32::from(unsafe { (*sock).type_ }) != bindings::sock_type_SOCK_STREAM as i32 {
        return ESOCKTNOSUPPORT.to_errno();
    }
    let (family, v6) = match protocol {
        0 => (bindings::AF_INET, false),
        1 => (bindings::AF_INET6, true),
        _ => return EPROTONOSUPPORT.to_errno(),
    };
    let mut taken = core::ptr::null_mut();
    // SAFETY: Arguments of this call; on success the sock is grafted to `sock`.
    let rc = unsafe { bindings::smc_rs_create_inner(net, family as c_int, sock, kern, &mut taken) };
    if rc == 0 {
        // The fresh state's reference, unless the probe has taken it for the inner socket. The
        // family's owner is referenced during this call.
        if taken.is_null() {
            ModuleRef::get().leave();
        }
        // SAFETY: As above; nobody else has the socket yet.
        unsafe { bindings::smc_rs_set_ops(sock, proto_ops::fresh(v6)) };
    }
    rc
}

/// IPPROTO_SMC for AF_INET and AF_INET6, registered.
pub(crate) struct InetProtocols {
    v6: bool,
}

impl InetProtocols {
    /// Registers both; with IPv6 disabled at boot only IPv4's. May sleep.
    pub(crate) fn register() -> Self {
        // SAFETY: The tables are static; TCP's protos are constant in what is copied. The copies
        // share TCP's slabs and counters and are never registered themselves.
        unsafe {
            *PROTO4.get() = core::ptr::read(&raw const bindings::tcp_prot);
            (*PROTO4.get()).owner = module::this();
            (*PROTO4.get()).init = Some(init4);
            fill_sw(SW4.get(), PROTO4.get(), proto_ops::fresh(false));
            bindings::inet_register_protosw(SW4.get());
        }
        // SAFETY: As above.
        let v6 = unsafe { bindings::smc_rs_ipv6_enabled() };
        if v6 {
            // SAFETY: As above.
            unsafe {
                *PROTO6.get() = core::ptr::read(&raw const bindings::tcpv6_prot);
                (*PROTO6.get()).owner = module::this();
                (*PROTO6.get()).init = Some(init6);
                fill_sw(SW6.get(), PROTO6.get(), proto_ops::fresh(true));
                bindings::inet6_register_protosw(SW6.get());
            }
        }
        Self { v6 }
    }
}

impl Drop for InetProtocols {
    fn drop(&mut self) {
        // SAFETY: Registered by `register`.
        unsafe {
            bindings::inet_unregister_protosw(SW4.get());
            if self.v6 {
                bindings::inet6_unregister_protosw(SW6.get());
            }
        }
    }
}

/// Fills a protosw entry.
///
/// # Safety
///
/// `sw` is not registered; `prot` and `ops` are static and filled.
unsafe fn fill_sw(
    sw: *mut bindings::inet_protosw,
    prot: *mut bindings::proto,
    ops: *const bindings::proto_ops,
) {
    // SAFETY: By the safety requirements.
    unsafe {
        (*sw).type_ = bindings::sock_type_SOCK_STREAM as c_ushort;
        (*sw).protocol = IPPROTO_SMC;
        (*sw).prot = prot;
        (*sw).ops = ops;
        (*sw).flags = bindings::INET_PROTOSW_ICSK as c_uchar;
    }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn init4(sk: *mut bindings::sock) -> c_int {
    // SAFETY: A sock being created; TCP's init is TCP's.
    unsafe { init(sk, &raw mut bindings::tcp_prot) }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn init6(sk: *mut bindings::sock) -> c_int {
    // SAFETY: As above.
    unsafe { init(sk, &raw mut bindings::tcpv6_prot) }
}

/// Makes the new sock TCP's in all but `sk_prot_creator`, which owns a reference to this module
/// (put when creation fails later) until [`take_fresh_ref`].
///
/// # Safety
///
/// `sk` is being created from our copy of `tcp`.
unsafe fn init(sk: *mut bindings::sock, tcp: *mut bindings::proto) -> c_int {
    // SAFETY: By the safety requirements.
    unsafe {
        let rc = match (*tcp).init {
            Some(f) => f(sk),
            None => 0,
        };
        if rc == 0 {
            bindings::smc_rs_sk_become_tcp(sk, tcp);
        }
        rc
    }
}

/// Takes the module reference of a fresh socket over, which leaves that state; under the lock.
pub(crate) fn take_fresh_ref(sk: &SkLocked<'_>) -> ModuleRef {
    // SAFETY: The socket is locked. Its creator may be our copy, whose reference to this module
    // the caller takes over; the slab is the same.
    unsafe {
        let raw = sk.as_raw();
        bindings::smc_rs_sk_replace_creator(raw, PROTO4.get(), &raw mut bindings::tcp_prot);
        bindings::smc_rs_sk_replace_creator(raw, PROTO6.get(), &raw mut bindings::tcpv6_prot);
    }
    ModuleRef::adopt()
}

/// Puts the reference that went with ops of ours which were just replaced by TCP's; for sockets
/// without a state to keep it. The caller must be inside an operation whose path holds another.
pub(crate) fn put_ops_ref() {
    drop(ModuleRef::adopt());
}

/// Leaves the fresh state towards TCP: TCP's own ops, both references put. Under the lock, in an
/// operation that pins the file. `false`: the socket was not fresh any more.
pub(crate) fn fresh_to_tcp(sock: &Socket, sk: &SkLocked<'_>) -> bool {
    if proto_ops::table_of(sock) != Table::Fresh {
        return false;
    }
    let state = take_fresh_ref(sk);
    proto_ops::set_table(sock, sk, Table::Other);
    drop(state);
    put_ops_ref();
    true
}
