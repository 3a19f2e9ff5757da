// SPDX-License-Identifier: GPL-2.0

//! Operation sequences on a pair of connections.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| smc_rs_fuzz::targets::conn::run(data));
