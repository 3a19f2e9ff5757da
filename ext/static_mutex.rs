// SPDX-License-Identifier: GPL-2.0

//! A mutex that can be a static, without an unsafe initialisation step.

use core::{
    cell::UnsafeCell,
    ops::{
        Deref,
        DerefMut, //
    },
};
use kernel::{
    bindings,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        LockClassKey,
    },
    types::{
        NotThreadSafe,
        Opaque, //
    }, //
};

/// The lock is not initialised.
const RAW: u32 = 0;
/// A thread is initialising the lock.
const BUSY: u32 = 1;
/// The lock is usable.
const READY: u32 = 2;

/// A mutex for a static; initialised by whoever takes it first.
///
/// # Invariants
///
/// `raw` is an initialised mutex if `state` is `READY`; `data` is only reached while it is held.
pub(crate) struct StaticMutex<T: 'static> {
    state: Atomic<u32>,
    raw: Opaque<bindings::mutex>,
    data: UnsafeCell<T>,
    name: &'static CStr,
    key: Pin<&'static LockClassKey>,
}

// SAFETY: The mutex gives one thread at a time access to `data`; `raw` is a kernel mutex and is
// initialised by one thread, before the others use it.
unsafe impl<T: Send> Sync for StaticMutex<T> {}

impl<T> StaticMutex<T> {
    /// For the initialiser of a static.
    pub(crate) const fn new(data: T, name: &'static CStr, key: Pin<&'static LockClassKey>) -> Self {
        // INVARIANT: The state is `RAW`.
        Self {
            state: Atomic::new(RAW),
            raw: Opaque::uninit(),
            data: UnsafeCell::new(data),
            name,
            key,
        }
    }

    /// Takes the mutex. May sleep.
    pub(crate) fn lock(&'static self) -> StaticGuard<T> {
        while self.state.load(Acquire) != READY {
            if self.state.cmpxchg(RAW, BUSY, Relaxed).is_ok() {
                // INVARIANT: The mutex is initialised before the state says so.
                // SAFETY: `raw` is a static's, so it doesn't move; only this thread saw `RAW`.
                // Name and key live for ever.
                unsafe {
                    bindings::__mutex_init(
                        self.raw.get(),
                        self.name.as_char_ptr(),
                        self.key.as_ptr(),
                    )
                };
                self.state.store(READY, Release);
            }
            core::hint::spin_loop();
        }
        // SAFETY: By the type invariants the mutex is initialised.
        unsafe { smc_rs_mutex_lock(self.raw.get()) };
        StaticGuard {
            lock: self,
            _not_send: NotThreadSafe,
        }
    }
}

extern "C" {
    fn smc_rs_mutex_lock(lock: *mut bindings::mutex);
}

/// Shows that a [`StaticMutex`] is held; dropping it releases the mutex.
#[must_use = "the mutex is released at once when the guard is unused"]
pub(crate) struct StaticGuard<T: 'static> {
    lock: &'static StaticMutex<T>,
    _not_send: NotThreadSafe,
}

impl<T> Deref for StaticGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: The guard shows that the mutex is held.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T> DerefMut for StaticGuard<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: The guard shows that the mutex is held, and is borrowed mutably.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T> Drop for StaticGuard<T> {
    fn drop(&mut self) {
        // SAFETY: The guard shows that this thread holds the mutex.
        unsafe { bindings::mutex_unlock(self.lock.raw.get()) }
    }
}
