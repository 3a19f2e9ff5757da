// SPDX-License-Identifier: GPL-2.0

//! The protocol core of smc_rs compiled on the host; `cargo test` runs its inline tests here and
//! the property tests and simulations in `tests/`.
#![allow(dead_code, unused_imports)]

#[path = "../../../proto/mod.rs"]
mod proto;
