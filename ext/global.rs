// SPDX-License-Identifier: GPL-2.0

//! A global that is there from module init to module exit.

use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full, //
        },
        rcu,
        Arc, //
    },
};

/// A static that holds a counted object, or nothing.
///
/// # Invariants
///
/// The pointer is null or stands for one reference, from [`Arc::into_raw`]; that reference is
/// given up only after a grace period.
pub(crate) struct Global<T>(Atomic<*mut T>, PhantomData<Arc<T>>);

// SAFETY: It is an `Arc<T>` that can be cloned and taken from any thread.
unsafe impl<T: Send + Sync> Sync for Global<T> {}

impl<T: Send + Sync> Global<T> {
    /// Nothing.
    pub(crate) const fn new() -> Self {
        Self(Atomic::new(ptr::null_mut()), PhantomData)
    }

    /// Fills it; `EBUSY` if it is filled already.
    pub(crate) fn set(&self, value: Arc<T>) -> Result {
        let new = Arc::into_raw(value).cast_mut();
        match self.0.cmpxchg(ptr::null_mut(), new, Full) {
            Ok(_) => Ok(()),
            Err(_) => {
                // SAFETY: `new` came from `into_raw` above and was not stored.
                drop(unsafe { Arc::from_raw(new) });
                Err(EBUSY)
            }
        }
    }

    /// A reference to what it holds. Any context.
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        let _rcu = rcu::read_lock();
        let ptr = self.0.load(Acquire);
        if ptr.is_null() {
            return None;
        }
        // SAFETY: By the type invariants `ptr` stands for a reference that is not given up inside
        // this read-side section; `ManuallyDrop` leaves it where it is.
        let held = unsafe { ManuallyDrop::new(Arc::from_raw(ptr)) };
        Some(Arc::clone(&held))
    }

    /// Empties it. Sleeps for a grace period.
    pub(crate) fn take(&self) -> Option<Arc<T>> {
        let ptr = self.0.xchg(ptr::null_mut(), Full);
        if ptr.is_null() {
            return None;
        }
        rcu::synchronize_rcu();
        // SAFETY: By the type invariants `ptr` stands for a reference, and nobody sees it any
        // more.
        Some(unsafe { Arc::from_raw(ptr) })
    }
}
