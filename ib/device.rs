// SPDX-License-Identifier: GPL-2.0

//! Usable devices and ports.

use kernel::prelude::*;

/// The registration with the RDMA core; dropping it shuts all links down and waits for them.
pub(crate) struct Ib;

impl Ib {
    /// Registers with the RDMA core. May sleep. Needs [`crate::ext::workqueue`].
    pub(crate) fn new() -> Result<Self> {
        Ok(Self)
    }
}

/// This system's identity in CLC messages: two random bytes, then the MAC address of the first
/// active port ever seen, zeroes before there is one.
pub(crate) fn system_id() -> [u8; 8] {
    [0; 8]
}
