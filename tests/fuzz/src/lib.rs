// SPDX-License-Identifier: GPL-2.0

//! Fuzz targets of the protocol core. `tests/host/tests/corpus.rs` includes the same targets and
//! replays the corpus.
#![allow(dead_code, unused_imports)]

#[path = "../../host/tests/handshake/mod.rs"]
mod handshake;
pub mod malformed;
#[path = "../../host/tests/pair/mod.rs"]
mod pair;
#[path = "../../../proto/mod.rs"]
mod proto;
pub mod targets;
