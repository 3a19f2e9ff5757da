// SPDX-License-Identifier: GPL-2.0

//! Wire formats: bytes to valid values and back.

pub(crate) mod cdc;
