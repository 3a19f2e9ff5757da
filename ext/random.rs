// SPDX-License-Identifier: GPL-2.0

//! Random numbers.
//!
//! C header: [`include/linux/random.h`](srctree/include/linux/random.h)

use kernel::bindings;

/// Fills an array with random bytes fit for secrets; any context.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut out = [0u8; N];
    // SAFETY: The pointer is valid for writes of `N` bytes.
    unsafe { bindings::get_random_bytes(out.as_mut_ptr().cast(), N) };
    out
}

/// A random word; any context.
pub(crate) fn word() -> u32 {
    u32::from_ne_bytes(bytes())
}
