// SPDX-License-Identifier: GPL-2.0

//! One connection against any CDC messages.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| smc_rs_fuzz::targets::cdc::run(data));
