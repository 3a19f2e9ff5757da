// SPDX-License-Identifier: GPL-2.0
//! The cases, by the peer's role and what goes wrong.

mod answers;
mod bare;
mod beside;
mod confirms;
mod crossed;
mod left;
mod proposals;
mod server_ends;

use super::case::server;
use super::case::Case;
use super::case::Expect;
use super::case::Step;
use crate::proto::wire::clc::Kind;

/// All cases.
pub fn all() -> Vec<Case> {
    [
        proposals::cases(),
        confirms::cases(),
        answers::cases(),
        server_ends::cases(),
        crossed::cases(),
        left::cases(),
        beside::cases(),
        bare::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Bytes for the application.
const HELLO: &[u8] = b"hello from the peer";

/// PROPOSAL is heard first.
fn hears(name: &'static str, steps: Vec<Step>, expect: Expect) -> Case {
    let mut all = vec![Step::Hear(Kind::Proposal)];
    all.extend(steps);
    server(name, all, expect)
}
