// SPDX-License-Identifier: GPL-2.0

//! The probe, by kretprobes on `inet_create` and `inet6_create`.
//!
//! C headers: [`include/linux/kprobes.h`](srctree/include/linux/kprobes.h)

use super::{
    super::{
        abi::bindings,
        module::ModuleRef,
        net::NetPtr,
        proto_ops, //
    },
    Policy, //
};
use core::ptr::NonNull;
use kernel::{
    error::to_result,
    prelude::*, //
};

/// The probe on `inet_create` and `inet6_create`, armed. Dropped: disarmed (may sleep).
pub(crate) struct CreateProbe(KVec<Pin<KBox<kernel::types::Opaque<bindings::kretprobe>>>>);

// SAFETY: Probes are registered and removed by whoever holds the value.
unsafe impl Send for CreateProbe {}
// SAFETY: As above.
unsafe impl Sync for CreateProbe {}

/// What the entry handler leaves for the return handler.
#[repr(C)]
struct Created {
    sock: *mut bindings::socket,
    net: *mut bindings::net,
    kern: c_int,
}

impl CreateProbe {
    /// Arms the probe. May sleep.
    pub(crate) fn arm<P: Policy>() -> Result<Self> {
        let mut this = Self(KVec::new());
        this.add::<P>(c"inet_create")?;
        // SAFETY: No preconditions.
        if unsafe { bindings::smc_rs_ipv6_enabled() } {
            this.add::<P>(c"inet6_create")?;
        }
        Ok(this)
    }

    fn add<P: Policy>(&mut self, symbol: &'static CStr) -> Result {
        let mut rp: bindings::kretprobe = pin_init::zeroed();
        rp.kp.symbol_name = symbol.as_char_ptr();
        rp.entry_handler = Some(on_entry);
        rp.handler = Some(on_return::<P>);
        rp.data_size = size_of::<Created>();
        rp.maxactive = 256;
        let rp = KBox::pin(kernel::types::Opaque::new(rp), GFP_KERNEL)?;
        self.0.reserve(1, GFP_KERNEL)?;
        // SAFETY: Pinned until unregistered in `drop`.
        to_result(unsafe { bindings::register_kretprobe(rp.get()) })?;
        self.0.push(rp, GFP_KERNEL)?;
        Ok(())
    }
}

impl Drop for CreateProbe {
    fn drop(&mut self) {
        for rp in &self.0 {
            // SAFETY: Registered by `add`.
            unsafe { bindings::unregister_kretprobe(rp.get()) }
        }
    }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn on_entry(
    ri: *mut bindings::kretprobe_instance,
    regs: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: `data_size` bytes of data belong to the instance; the arguments are those of
    // `inet_create(net, sock, protocol, kern)`.
    unsafe {
        let data = (*ri).data.as_mut_ptr().cast::<Created>();
        (*data).net = bindings::smc_rs_regs_arg(regs, 0) as *mut bindings::net;
        (*data).sock = bindings::smc_rs_regs_arg(regs, 1) as *mut bindings::socket;
        (*data).kern = bindings::smc_rs_regs_arg(regs, 3) as c_int;
    }
    0
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn on_return<P: Policy>(
    ri: *mut bindings::kretprobe_instance,
    regs: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: As in `on_entry`; on success the socket has its sock, and only its creator has the
    // socket.
    unsafe {
        if bindings::smc_rs_regs_ret(regs) as c_int != 0 {
            return 0;
        }
        let data = (*ri).data.as_mut_ptr().cast::<Created>();
        let (sock, Some(net)) = ((*data).sock, NonNull::new((*data).net)) else {
            return 0;
        };
        if (*data).kern != 0 || (*sock).sk.is_null() {
            return 0;
        }
        let v6 = if (*sock).ops == &raw const bindings::inet_stream_ops {
            false
        } else if (*sock).ops == &raw const bindings::inet6_stream_ops {
            true
        } else {
            return 0;
        };
        if !bindings::smc_rs_sk_is_tcp((*sock).sk) || !P::wanted(NetPtr::from_raw(net)) {
            return 0;
        }
        // The kernel takes the ops' reference itself after this; ours makes sure that it can.
        if let Some(module) = ModuleRef::try_get() {
            module.leave();
            bindings::smc_rs_set_ops(sock, proto_ops::fresh(v6));
        }
    }
    0
}
