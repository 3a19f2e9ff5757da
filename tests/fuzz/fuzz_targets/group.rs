// SPDX-License-Identifier: GPL-2.0

//! Operation sequences on the two machines of a link group.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| smc_rs_fuzz::targets::group::run(data));
