// SPDX-License-Identifier: GPL-2.0

//! A mutex whose waiters can be interrupted by a signal, which `kernel::sync::Mutex` cannot do.
//!
//! C header: [`include/linux/mutex.h`](srctree/include/linux/mutex.h)

use core::{
    cell::UnsafeCell,
    ops::{
        Deref,
        DerefMut, //
    },
    pin::Pin,
};
use kernel::{
    bindings,
    error::to_result,
    prelude::*,
    sync::LockClassKey,
    types::{
        NotThreadSafe,
        Opaque, //
    }, //
};

extern "C" {
    fn smc_rs_mutex_lock(lock: *mut bindings::mutex);
    fn smc_rs_mutex_lock_interruptible(lock: *mut bindings::mutex) -> c_int;
}

/// A mutex taken interruptibly.
///
/// # Invariants
///
/// `raw` is an initialised mutex; `data` is only reached while it is held.
#[pin_data]
pub(crate) struct IntrMutex<T> {
    #[pin]
    raw: Opaque<bindings::mutex>,
    data: UnsafeCell<T>,
}

// SAFETY: The mutex gives one thread at a time access to `data`.
unsafe impl<T: Send> Send for IntrMutex<T> {}
// SAFETY: The mutex gives one thread at a time access to `data`.
unsafe impl<T: Send> Sync for IntrMutex<T> {}

impl<T> IntrMutex<T> {
    /// Makes an initialiser; use `new_intr_mutex!`.
    pub(crate) fn new(
        data: T,
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            // INVARIANT: The mutex is initialised here.
            raw <- Opaque::ffi_init(move |slot| {
                // SAFETY: `slot` is valid for writes; name and key live for ever.
                unsafe { bindings::__mutex_init(slot, name.as_char_ptr(), key.as_ptr()) }
            }),
            data: UnsafeCell::new(data),
        })
    }

    /// Takes the mutex; `ERESTARTSYS` if a signal came first. May sleep.
    pub(crate) fn lock(&self) -> Result<IntrGuard<'_, T>> {
        // SAFETY: By the type invariants the mutex is initialised.
        to_result(unsafe { smc_rs_mutex_lock_interruptible(self.raw.get()) })?;
        Ok(IntrGuard {
            lock: self,
            _not_send: NotThreadSafe,
        })
    }

    /// Takes the mutex whatever signals come, for work that has to be done. May sleep.
    pub(crate) fn lock_always(&self) -> IntrGuard<'_, T> {
        // SAFETY: By the type invariants the mutex is initialised.
        unsafe { smc_rs_mutex_lock(self.raw.get()) };
        IntrGuard {
            lock: self,
            _not_send: NotThreadSafe,
        }
    }
}

/// Shows that an [`IntrMutex`] is held; dropping it releases the mutex.
#[must_use = "the mutex is released at once when the guard is unused"]
pub(crate) struct IntrGuard<'a, T> {
    lock: &'a IntrMutex<T>,
    _not_send: NotThreadSafe,
}

impl<T> Deref for IntrGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: The guard shows that the mutex is held.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T> DerefMut for IntrGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: The guard shows that the mutex is held, and is borrowed mutably.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T> Drop for IntrGuard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: The guard shows that this thread holds the mutex.
        unsafe { bindings::mutex_unlock(self.lock.raw.get()) }
    }
}

/// Makes an initialiser of an [`IntrMutex`] with a lock class of its own.
macro_rules! new_intr_mutex {
    ($inner:expr, $name:literal) => {
        $crate::ext::mutex::IntrMutex::new(
            $inner,
            ::kernel::c_str!($name),
            ::kernel::static_lock_class!(),
        )
    };
}
pub(crate) use new_intr_mutex;
