// SPDX-License-Identifier: GPL-2.0

//! A spinlock that disables bottom halves.
use kernel::bindings;
use kernel::prelude::*;
use kernel::sync::lock::{
    Backend,
    Lock, //
};

extern "C" {
    fn smc_rs_spin_lock_bh(ptr: *mut bindings::spinlock_t);
    fn smc_rs_spin_unlock_bh(ptr: *mut bindings::spinlock_t);
    fn smc_rs_spin_trylock_bh(ptr: *mut bindings::spinlock_t) -> c_int;
}

pub(crate) type SpinLockBh<T> = Lock<T, SpinLockBhBackend>;

pub(crate) struct SpinLockBhBackend;

// SAFETY: `spin_lock_bh` gives mutual exclusion; `relock` uses the default.
unsafe impl Backend for SpinLockBhBackend {
    type State = bindings::spinlock_t;
    type GuardState = ();

    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut bindings::lock_class_key) {
        // SAFETY: By the safety requirements.
        unsafe { bindings::__spin_lock_init(ptr, name, key) }
    }

    unsafe fn lock(ptr: *mut Self::State) -> Self::GuardState {
        // SAFETY: By the safety requirements.
        unsafe { smc_rs_spin_lock_bh(ptr) }
    }

    unsafe fn try_lock(ptr: *mut Self::State) -> Option<Self::GuardState> {
        // SAFETY: By the safety requirements.
        (unsafe { smc_rs_spin_trylock_bh(ptr) } != 0).then_some(())
    }

    unsafe fn unlock(ptr: *mut Self::State, _guard_state: &Self::GuardState) {
        // SAFETY: By the safety requirements.
        unsafe { smc_rs_spin_unlock_bh(ptr) }
    }

    unsafe fn assert_is_held(_ptr: *mut Self::State) {
        // Each lock() comes here; only lockdep can tell.
        #[cfg(CONFIG_LOCKDEP)]
        // SAFETY: By the safety requirements.
        unsafe {
            bindings::spin_assert_is_held(_ptr)
        }
    }
}

/// Makes an initialiser of a [`SpinLockBh`] with a lock class of its own.
macro_rules! new_spinlock_bh {
    ($inner:expr, $name:literal) => {
        $crate::ext::spinlock_bh::SpinLockBh::new(
            $inner,
            ::kernel::c_str!($name),
            ::kernel::static_lock_class!(),
        )
    };
}
pub(crate) use new_spinlock_bh;
