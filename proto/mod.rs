// SPDX-License-Identifier: GPL-2.0

//! The protocol core: pure, no kernel imports, no allocation, no clock.
//!
//! Wire formats are in `wire`, the CLC handshake machines in `clc`, the LLC machine of a link
//! group in `llc`, the connection's data path in `conn`. Everything that comes from a peer is
//! hostile: it is parsed into types that are valid by construction, and nothing here panics on
//! any input. Time comes in as an argument, messages go out by `poll_transmit`, decisions by
//! `poll`.
#![forbid(unsafe_code)]
#![warn(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

pub(crate) mod clc;
pub(crate) mod conn;
pub(crate) mod cursor;
pub(crate) mod eid;
pub(crate) mod llc;
pub(crate) mod reason;
pub(crate) mod ring;
pub(crate) mod size;
pub(crate) mod time;
pub(crate) mod wire;
