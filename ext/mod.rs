// SPDX-License-Identifier: GPL-2.0

//! Safe wrappers over the kernel: the only layer that may contain `unsafe`.
#![allow(unsafe_code)]

mod abi;
pub(crate) mod family;
pub(crate) mod iov;
pub(crate) mod module;
pub(crate) mod net;
pub(crate) mod netns;
pub(crate) mod proc;
pub(crate) mod proto_ops;
mod proto_ops_adapters;
pub(crate) mod ring;
pub(crate) mod sk;
pub(crate) mod spinlock_bh;
mod static_cell;
pub(crate) mod sysctl;
pub(crate) mod ulp;
pub(crate) mod wait;
pub(crate) mod workqueue;
