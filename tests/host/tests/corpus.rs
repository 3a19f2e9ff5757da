// SPDX-License-Identifier: GPL-2.0

//! The fuzz targets on their corpus, and malformed messages made by hand.
#![allow(dead_code, unused_imports)]

#[path = "../../../proto/mod.rs"]
mod proto;

mod handshake;
#[path = "../../fuzz/src/malformed/mod.rs"]
mod malformed;
mod pair;
#[path = "../../fuzz/src/targets/mod.rs"]
mod targets;

use std::path::Path;

/// Runs a target on every file of its corpus.
fn replay(name: &str) {
    let (_, run) = targets::ALL
        .iter()
        .find(|(target, _)| *target == name)
        .expect("a target");
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/corpus")
        .join(name);
    let mut files: Vec<_> = std::fs::read_dir(&dir)
        .expect("corpus")
        .map(|entry| entry.expect("entry").path())
        .collect();
    files.sort();
    if cfg!(miri) {
        // Miri is some thousand times slower.
        files = files.into_iter().step_by(16).collect();
    }
    assert!(!files.is_empty(), "{} is empty", dir.display());
    for file in &files {
        // Shown if the target fails.
        println!("{}", file.display());
        run(&std::fs::read(file).expect("file"));
    }
}

#[test]
fn corpus_cdc() {
    replay("cdc");
}

#[test]
fn corpus_clc() {
    replay("clc");
}

#[test]
fn corpus_conn() {
    replay("conn");
}

#[test]
fn corpus_group() {
    replay("group");
}

#[test]
fn corpus_llc() {
    replay("llc");
}

/// No target without a replay, no corpus without a target.
#[test]
fn each_target_is_replayed() {
    let names: Vec<_> = targets::ALL.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["cdc", "clc", "conn", "group", "llc"]);
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    for entry in std::fs::read_dir(corpus).expect("corpus") {
        let name = entry.expect("entry").file_name();
        assert!(names.contains(&name.to_str().expect("name")), "{name:?}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "hours")]
fn malformed_cdc() {
    malformed::cdc();
}

/// Every rule of CLC and LLC is broken by some message.
#[test]
#[cfg_attr(miri, ignore = "hours")]
fn malformed_clc_and_llc() {
    let mut broken = malformed::clc();
    broken.add(malformed::llc());
    for rule in malformed::rules() {
        assert!(broken.has(rule), "nothing breaks {rule:?}");
    }
}
