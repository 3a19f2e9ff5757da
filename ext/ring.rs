// SPDX-License-Identifier: GPL-2.0

//! Ring memory: what send buffers and RMBs are made of.
//!
//! A NIC or a peer writes to this memory at any time, so it is never a `&[u8]`: bytes come and go
//! by raw copies only, here and nowhere else.

use super::{
    abi::bindings,
    iov::MsgIter, //
};
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Memory of one ring, zeroed when allocated.
///
/// # Invariants
///
/// `ptr` points to `len` bytes that belong to this value, page aligned, from the page allocator
/// if `contiguous`, from vmalloc otherwise.
pub(crate) struct RingMem {
    /// The first byte.
    ptr: NonNull<u8>,
    /// Size in bytes: a power of two of at least a page.
    len: usize,
    /// Whether it is physically contiguous.
    contiguous: bool,
}

// SAFETY: The memory is owned, and reached by raw copies only.
unsafe impl Send for RingMem {}
// SAFETY: As above: concurrent raw copies may mix bytes but touch nothing else.
unsafe impl Sync for RingMem {}

impl RingMem {
    /// Allocates `len` bytes (a power of two): contiguous pages, else vmalloc. May sleep.
    pub(crate) fn new(len: usize) -> Result<Arc<Self>> {
        if !len.is_power_of_two() || len < kernel::page::PAGE_SIZE {
            return Err(EINVAL);
        }
        let mut contiguous = false;
        // SAFETY: `len` is a power of two of at least a page, `contiguous` may be written.
        let ptr = unsafe { bindings::smc_rs_ring_alloc(len, &mut contiguous) };
        let ptr = NonNull::new(ptr.cast::<u8>()).ok_or(ENOMEM)?;
        // INVARIANT: The allocation has just been made and is given to this value.
        Ok(Arc::new(
            Self {
                ptr,
                len,
                contiguous,
            },
            GFP_KERNEL,
        )?)
    }

    /// Size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.len
    }

    /// Whether the memory is physically contiguous.
    pub(crate) fn is_contiguous(&self) -> bool {
        self.contiguous
    }

    /// The part of `offset..offset + len` that lies inside.
    fn clamp(&self, offset: usize, len: usize) -> (*mut u8, usize) {
        let offset = offset.min(self.len);
        // The addition stays inside the allocation, one past its end at most.
        (
            self.ptr.as_ptr().wrapping_add(offset),
            len.min(self.len - offset),
        )
    }

    /// Copies up to `len` bytes from `from` to `offset`; returns how many were copied. May sleep.
    pub(crate) fn copy_from_iter(
        &self,
        offset: usize,
        len: usize,
        from: &mut MsgIter<'_>,
    ) -> usize {
        let (ptr, len) = self.clamp(offset, len);
        // SAFETY: `ptr` is valid for writes of `len` bytes by `clamp` and the type invariants; the
        // iterator is valid by its type invariants.
        unsafe { bindings::_copy_from_iter(ptr.cast(), len, from.as_raw()) }
    }

    /// Copies up to `len` bytes at `offset` to `to`; returns how many were copied. May sleep.
    pub(crate) fn copy_to_iter(&self, offset: usize, len: usize, to: &mut MsgIter<'_>) -> usize {
        let (ptr, len) = self.clamp(offset, len);
        // SAFETY: As in `copy_from_iter`, for reads.
        unsafe { bindings::_copy_to_iter(ptr.cast(), len, to.as_raw()) }
    }

    /// Copies one byte out (urgent data). Any context.
    pub(crate) fn byte_at(&self, offset: usize) -> Option<u8> {
        let (ptr, len) = self.clamp(offset, 1);
        // SAFETY: `ptr` is valid for one byte if `len` is 1.
        (len == 1).then(|| unsafe { ptr.read_volatile() })
    }

    /// Zeroes `offset..offset + len`. Any context.
    pub(crate) fn zero(&self, offset: usize, len: usize) {
        let (ptr, len) = self.clamp(offset, len);
        // SAFETY: `ptr` is valid for writes of `len` bytes by `clamp`.
        unsafe { ptr.write_bytes(0, len) }
    }

    /// The address, for mapping.
    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }
}

impl Drop for RingMem {
    fn drop(&mut self) {
        // SAFETY: The memory came from `smc_rs_ring_alloc` with the same `contiguous` and size;
        // nobody uses it any more, as mappings hold a reference.
        unsafe { bindings::smc_rs_ring_free(self.ptr.as_ptr().cast(), self.len, self.contiguous) }
    }
}
