// SPDX-License-Identifier: GPL-2.0

//! References to this module: while one is held its text stays.
//!
//! C header: [`include/linux/module.h`](srctree/include/linux/module.h)

use super::abi::bindings;

/// This module's `struct module`, in our bindings' type.
pub(super) const fn this() -> *mut bindings::module {
    kernel::module::this_module::<crate::LocalModule>()
        .as_ptr()
        .cast()
}

/// A reference to this module; any context. Dropped: the reference is put, and the text of the
/// dropper is kept until module exit has waited for all tasks (`synchronize_rcu_tasks`).
pub(crate) struct ModuleRef(());

impl ModuleRef {
    /// Takes a reference unless the module is going away.
    pub(crate) fn try_get() -> Option<Self> {
        // SAFETY: `this()` is the module whose code is running.
        unsafe { bindings::try_module_get(this()) }.then_some(Self(()))
    }

    /// Takes a reference where another one is known to be held.
    pub(crate) fn get() -> Self {
        // SAFETY: As above; the caller's path holds a reference (a socket's ops or state).
        unsafe { bindings::smc_rs_module_get(this()) };
        Self(())
    }

    /// Takes over a reference that C code took for us.
    pub(super) fn adopt() -> Self {
        Self(())
    }

    /// Hands the reference to C code, which will put it.
    pub(super) fn leave(self) {
        core::mem::forget(self);
    }
}

impl Drop for ModuleRef {
    fn drop(&mut self) {
        // SAFETY: The reference is ours by construction.
        unsafe { bindings::module_put(this()) }
    }
}
