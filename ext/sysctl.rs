// SPDX-License-Identifier: GPL-2.0

//! Integer sysctls of a network namespace.
//!
//! C header: [`include/linux/sysctl.h`](srctree/include/linux/sysctl.h)

use super::{
    abi::bindings,
    net::NetPtr,
    netns::Setting,
    static_mutex::StaticMutex, //
};
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    static_lock_class,
    sync::atomic::{
        Full,
        Relaxed, //
    }, //
};

/// What a sysctl accepts.
pub(crate) enum Kind {
    /// An integer in a range.
    Range(&'static i32, &'static i32),
    /// 0 or 1; the callback runs when it changes, before the new value is stored, and may refuse.
    Switch(fn(bool) -> Result),
}

/// One sysctl: a name, where its value is, and what it accepts.
pub(crate) struct Entry<'a> {
    /// The file's name.
    pub(crate) name: &'static CStr,
    /// The value; lives as long as the namespace.
    pub(crate) value: &'a Setting,
    /// What it accepts.
    pub(crate) kind: Kind,
}

/// A registered table; dropped: the files go away (may sleep).
pub(crate) struct NetTable {
    header: NonNull<bindings::ctl_table_header>,
    _table: KVec<bindings::ctl_table>,
}

// SAFETY: Registration and removal are serialised by the kernel.
unsafe impl Send for NetTable {}
// SAFETY: As above.
unsafe impl Sync for NetTable {}

impl NetTable {
    /// Registers `entries` below `path` (such as `net/smc`). May sleep. The values must live
    /// until the table is dropped: they lie in the namespace's state, which is freed after it.
    pub(crate) fn register(
        net: NetPtr<'_>,
        path: &'static CStr,
        entries: &[Entry<'_>],
    ) -> Result<Self> {
        let mut table = KVec::with_capacity(entries.len(), GFP_KERNEL)?;
        for e in entries {
            let (handler, extra1, extra2): (bindings::proc_handler, _, _) = match e.kind {
                Kind::Range(min, max) => (
                    Some(bindings::proc_dointvec_minmax),
                    core::ptr::from_ref(min).cast_mut().cast(),
                    core::ptr::from_ref(max).cast_mut().cast(),
                ),
                Kind::Switch(f) => (Some(switch), f as *mut c_void, core::ptr::null_mut()),
            };
            table.push(
                bindings::ctl_table {
                    procname: e.name.as_char_ptr(),
                    data: core::ptr::from_ref(e.value).cast_mut().cast(),
                    maxlen: size_of::<c_int>() as c_int,
                    mode: 0o644,
                    proc_handler: handler,
                    extra1,
                    extra2,
                    ..pin_init::zeroed()
                },
                GFP_KERNEL,
            )?;
        }
        // SAFETY: The table's memory lives until the table is unregistered.
        let header = unsafe {
            bindings::register_net_sysctl_sz(
                net.as_raw(),
                path.as_char_ptr(),
                table.as_mut_ptr(),
                table.len(),
            )
        };
        Ok(Self {
            header: NonNull::new(header).ok_or(ENOMEM)?,
            _table: table,
        })
    }
}

impl Drop for NetTable {
    fn drop(&mut self) {
        // SAFETY: Registered by `register`.
        unsafe { bindings::unregister_net_sysctl_table(self.header.as_ptr()) }
    }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn switch(
    table: *const bindings::ctl_table,
    write: c_int,
    buffer: *mut c_void,
    len: *mut usize,
    pos: *mut bindings::loff_t,
) -> c_int {
    // SAFETY: Our entries' data is a `Setting` that outlives the table.
    let value = unsafe { &*(*table).data.cast::<Setting>() };
    let mut new = value.load(Relaxed);
    let copy = bindings::ctl_table {
        data: (&raw mut new).cast(),
        maxlen: size_of::<c_int>() as c_int,
        extra1: (&raw const ZERO).cast_mut().cast(),
        extra2: (&raw const ONE).cast_mut().cast(),
        ..pin_init::zeroed()
    };
    // SAFETY: The arguments are the kernel's; `copy` lives during the call.
    let rc = unsafe { bindings::proc_dointvec_minmax(&copy, write, buffer, len, pos) };
    if rc != 0 || write == 0 {
        return rc;
    }
    // SAFETY: `extra1` of a switch is the callback that `register` put there.
    let change =
        unsafe { core::mem::transmute::<*mut c_void, fn(bool) -> Result>((*table).extra1) };
    // Only the writer that changes the value calls back; a refusal restores it. One at a time:
    // the callbacks come in the order of the changes.
    let _one = SWITCHES.lock();
    let old = value.xchg(new, Full);
    if old != new {
        if let Err(e) = change(new != 0) {
            value.store(old, Relaxed);
            return e.to_errno();
        }
    }
    0
}

static SWITCHES: StaticMutex<()> =
    StaticMutex::new((), c"smc_rs_sysctl_switches", static_lock_class!());
static ZERO: c_int = 0;
static ONE: c_int = 1;
