// SPDX-License-Identifier: GPL-2.0

//! Safe wrappers over the kernel: the only layer that may contain `unsafe`.
#![allow(unsafe_code)]

mod abi;
pub(crate) mod global;
pub(crate) mod host;
pub(crate) mod iov;
pub(crate) mod mutex;
pub(crate) mod net;
pub(crate) mod random;
pub(crate) mod ring;
pub(crate) mod route;
pub(crate) mod spinlock_bh;
pub(crate) mod static_mutex;
pub(crate) mod timer;
pub(crate) mod verbs;
pub(crate) mod workqueue;
