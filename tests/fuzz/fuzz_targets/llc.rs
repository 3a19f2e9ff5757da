// SPDX-License-Identifier: GPL-2.0

//! One LLC machine against any messages.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| smc_rs_fuzz::targets::llc::run(data));
