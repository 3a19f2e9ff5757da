// SPDX-License-Identifier: GPL-2.0

//! CLC streams: one machine against any bytes, two machines against each other.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| smc_rs_fuzz::targets::clc::run(data));
