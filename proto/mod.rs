// SPDX-License-Identifier: GPL-2.0

//! The protocol core: pure, no kernel imports, no allocation, no clock.
#![forbid(unsafe_code)]

// Not all layers above exist yet.
#[allow(dead_code, unused_imports)]
pub(crate) mod conn;
#[allow(dead_code)]
pub(crate) mod cursor;
#[allow(dead_code)]
pub(crate) mod ring;
#[allow(dead_code)]
pub(crate) mod wire;
