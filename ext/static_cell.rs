// SPDX-License-Identifier: GPL-2.0

//! Tables of C type that are filled once at module init and only read afterwards.

use kernel::types::Opaque;

/// A C table in static memory, with an address that identifies it.
#[repr(transparent)]
pub(super) struct StaticCell<T>(Opaque<T>);

// SAFETY: Written only by module init, before the kernel is told the address.
unsafe impl<T> Sync for StaticCell<T> {}

impl<T> StaticCell<T> {
    /// A cell with its value.
    pub(super) const fn new(value: T) -> Self {
        Self(Opaque::new(value))
    }

    /// The table's address.
    pub(super) const fn get(&self) -> *mut T {
        self.0.get()
    }
}
