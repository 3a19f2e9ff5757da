// SPDX-License-Identifier: GPL-2.0

//! The data iterator of a message being sent or received.
//!
//! C header: [`include/linux/uio.h`](srctree/include/linux/uio.h)

use super::abi::bindings;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::prelude::*;

/// The `iov_iter` of a `msghdr`.
///
/// It is not `Send`: the memory it reaches is the calling task's.
///
/// # Invariants
///
/// Points to a valid `iov_iter` that only this value uses during `'a`.
pub(crate) struct MsgIter<'a>(
    NonNull<bindings::iov_iter>,
    PhantomData<&'a mut bindings::iov_iter>,
);

impl MsgIter<'_> {
    /// The iterator of `msg`.
    ///
    /// # Safety
    ///
    /// `msg` must be valid and its iterator must be used by nobody else for the lifetime the
    /// caller picks.
    pub(super) unsafe fn from_msg(msg: NonNull<bindings::msghdr>) -> Self {
        // SAFETY: `msg` is valid by the safety requirements; only the field's address is taken.
        let iter = unsafe { &raw mut (*msg.as_ptr()).msg_iter };
        // SAFETY: The address of a field of a valid object is not null.
        // INVARIANT: By the safety requirements.
        Self(unsafe { NonNull::new_unchecked(iter) }, PhantomData)
    }

    /// Bytes left.
    pub(crate) fn count(&self) -> usize {
        // SAFETY: The iterator is valid by the type invariants.
        unsafe { bindings::smc_rs_iov_iter_count(self.0.as_ptr()) }
    }

    /// The raw iterator.
    pub(super) fn as_raw(&mut self) -> *mut bindings::iov_iter {
        self.0.as_ptr()
    }

    /// Gives one byte to the user; `EFAULT` if his memory can't take it. May sleep.
    pub(crate) fn put_byte(&mut self, byte: u8) -> Result {
        // SAFETY: The iterator is valid and ours; one byte is readable.
        match unsafe { bindings::_copy_to_iter((&raw const byte).cast(), 1, self.as_raw()) } {
            1 => Ok(()),
            _ => Err(EFAULT),
        }
    }
}
