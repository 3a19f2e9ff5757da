// SPDX-License-Identifier: GPL-2.0

//! Messages of Linux's own smc.ko, cut out of captures by `examples/record.rs`: all of them are
//! understood, and what is read is written back byte for byte where we would write it ourselves.
#![allow(dead_code, unused_imports)]

#[path = "../../../proto/mod.rs"]
mod proto;

use std::fs;
use std::path::Path;

use proto::wire::{
    cdc::Cdc,
    clc::{
        Header,
        Kind, //
    },
    clc_accept::Accept,
    clc_decline::Decline,
    clc_proposal::Proposal,
    llc::{
        Body,
        Message, //
    }, //
};

/// Name and bytes of every recorded message of a sort; there must be some.
fn recorded(sort: &str) -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus/recorded")
        .join(sort);
    let mut found: Vec<_> = fs::read_dir(&dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no message in {}", dir.display());
    found
}

#[test]
fn clc_of_upstream_is_understood() {
    let mut kinds = Vec::new();
    for (name, bytes) in recorded("clc") {
        let header = Header::parse(&bytes).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_eq!(header.length, bytes.len(), "{name}");
        let parsed = match header.kind {
            Kind::Proposal => Proposal::parse(&bytes).map(drop),
            Kind::Accept | Kind::Confirm => Accept::parse(&bytes).map(drop),
            Kind::Decline => Decline::parse(&bytes).map(drop),
        };
        assert_eq!(parsed, Ok(()), "{name}");
        if !kinds.contains(&header.kind) {
            kinds.push(header.kind);
        }
    }
    assert_eq!(kinds.len(), 4, "{kinds:?}");
}

#[test]
fn llc_of_upstream_is_understood() {
    for (name, bytes) in recorded("llc") {
        let message = Message::parse(&bytes).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_ne!(message.body, Body::Unknown, "{name}");
    }
}

#[test]
fn cdc_of_upstream_is_written_back() {
    for (name, bytes) in recorded("cdc") {
        let cdc = Cdc::parse(&bytes).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_eq!(cdc.emit().as_slice(), &bytes[..], "{name}");
    }
}
