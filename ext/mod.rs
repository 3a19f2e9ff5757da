// SPDX-License-Identifier: GPL-2.0

//! Safe wrappers over the kernel: the only layer that may contain `unsafe`.
#![allow(unsafe_code)]

mod abi;
pub(crate) mod accept;
pub(crate) mod create_probe;
pub(crate) mod exit;
pub(crate) mod family;
pub(crate) mod global;
pub(crate) mod host;
pub(crate) mod iov;
pub(crate) mod module;
pub(crate) mod mutex;
pub(crate) mod net;
pub(crate) mod netns;
pub(crate) mod params;
pub(crate) mod proc;
pub(crate) mod proto_ops;
mod proto_ops_adapters;
pub(crate) mod random;
pub(crate) mod ring;
pub(crate) mod route;
pub(crate) mod sk;
pub(crate) mod spinlock_bh;
mod static_cell;
pub(crate) mod static_mutex;
pub(crate) mod sysctl;
pub(crate) mod timer;
pub(crate) mod ulp;
pub(crate) mod verbs;
pub(crate) mod wait;
pub(crate) mod workqueue;
