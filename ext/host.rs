// SPDX-License-Identifier: GPL-2.0

//! What this host is called.

use kernel::prelude::*;

extern "C" {
    fn smc_rs_hostname(buf: *mut c_char, len: usize);
}

/// The host's name, padded with NUL; any context. A name being changed may come out mixed.
pub(crate) fn name() -> [u8; 32] {
    let mut name = [0u8; 32];
    // SAFETY: The pointer is valid for writes of that many bytes.
    unsafe { smc_rs_hostname(name.as_mut_ptr().cast(), name.len()) };
    name
}
