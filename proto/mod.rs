// SPDX-License-Identifier: GPL-2.0

//! The protocol core: pure, no kernel imports, no allocation, no clock.
#![forbid(unsafe_code)]
