// SPDX-License-Identifier: GPL-2.0

//! Replays the malformed messages made by hand, and corpora; to measure what they cover.
//!
//! `replay malformed`, or `replay TARGET DIR...`.

use smc_rs_fuzz::{
    malformed,
    targets, //
};

/// Runs a target on every file of a directory.
fn corpus(run: fn(&[u8]), dir: &str) -> std::io::Result<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir(dir)? {
        run(&std::fs::read(entry?.path())?);
        count += 1;
    }
    Ok(count)
}

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_default();
    if what == "malformed" {
        malformed::cdc();
        malformed::clc();
        malformed::llc();
        return Ok(());
    }
    let Some((name, run)) = targets::ALL.iter().find(|(name, _)| *name == what) else {
        eprintln!("usage: replay malformed | replay TARGET DIR...");
        std::process::exit(2);
    };
    for dir in args {
        println!("{name}: {} inputs in {dir}", corpus(*run, &dir)?);
    }
    Ok(())
}
