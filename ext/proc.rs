// SPDX-License-Identifier: GPL-2.0

//! Read-only files below `/proc/net`.
//!
//! C header: [`include/linux/proc_fs.h`](srctree/include/linux/proc_fs.h)

use super::{
    abi::bindings,
    net::NetPtr, //
};
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    seq_file::SeqFile, //
};

/// What a file shows, whole on each read. Process context, may sleep.
pub(crate) trait Show: 'static {
    /// The file's name.
    const NAME: &'static CStr;

    /// Prints the file for `net`.
    fn show(m: &SeqFile, net: NetPtr<'_>);
}

/// Creates `T`'s file in `net`. May sleep.
pub(crate) fn create<T: Show>(net: NetPtr<'_>) -> Result {
    // SAFETY: A live namespace whose files are removed before the module goes.
    let entry =
        unsafe { bindings::smc_rs_proc_net(net.as_raw(), T::NAME.as_char_ptr(), Some(show::<T>)) };
    if entry.is_null() {
        return Err(ENOMEM);
    }
    Ok(())
}

/// Removes `T`'s file from `net`. May sleep.
pub(crate) fn remove<T: Show>(net: NetPtr<'_>) {
    // SAFETY: A live namespace.
    unsafe { bindings::smc_rs_proc_net_remove(net.as_raw(), T::NAME.as_char_ptr()) }
}

/// The kernel calls this.
///
/// # Safety
///
/// Only the kernel may call it, with the arguments that the operation is defined to have.
unsafe extern "C" fn show<T: Show>(m: *mut bindings::seq_file, _: *mut c_void) -> c_int {
    // SAFETY: The kernel passes a seq_file of a namespace's file, which holds the namespace.
    unsafe {
        let net = NetPtr::from_raw(NonNull::new_unchecked(bindings::smc_rs_seq_net(m)));
        T::show(SeqFile::from_raw(m.cast()), net);
    }
    0
}
