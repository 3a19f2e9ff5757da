// SPDX-License-Identifier: GPL-2.0

//! Module parameters that are strings, which `module!` does not have.

use super::abi::bindings;
use kernel::prelude::*;

/// The parameter `eids` as given at load; not UTF-8: `EINVAL`.
pub(crate) fn eids() -> Result<&'static str> {
    // SAFETY: The buffer is written by the module loader before init only, NUL-terminated.
    let s = unsafe { CStr::from_char_ptr((&raw const bindings::smc_rs_eids).cast()) };
    s.to_str().map_err(|_| EINVAL)
}
