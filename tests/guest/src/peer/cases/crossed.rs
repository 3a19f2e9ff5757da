// SPDX-License-Identifier: GPL-2.0
//! Both sides are clients.

use super::hears;
use super::HELLO;
use crate::peer::case::*;
use crate::peer::message::*;
use crate::proto::reason::Reason;
use crate::proto::wire::clc::Kind;
use libc::EPROTO;
use Step::*;

/// All of them.
pub fn cases() -> Vec<Case> {
    both()
}

/// Both sides are clients.
fn both() -> Vec<Case> {
    let both = |name, steps, expect| crossed(name, steps, expect);
    vec![
        both(
            "crossed_proposals",
            vec![say(proposal()), Hear(Kind::Proposal), plain(HELLO)],
            falls(Reason::MODEUNSUPP),
        ),
        both(
            "crossed_after_its_proposal",
            vec![Hear(Kind::Proposal), say_with(proposal(), HELLO)],
            falls(Reason::MODEUNSUPP),
        ),
        both(
            "crossed_bits",
            vec![Hear(Kind::Proposal), bits(proposal(), 1), plain(HELLO)],
            falls(Reason::MODEUNSUPP),
        ),
        both(
            "crossed_proposal_v1",
            vec![Hear(Kind::Proposal), say_with(proposal_v1(), HELLO)],
            falls(Reason::MODEUNSUPP),
        ),
        both(
            "crossed_decline",
            vec![
                Hear(Kind::Proposal),
                say_with(decline(Reason::NOSMCDEV), HELLO),
            ],
            peer_declined(Reason::NOSMCDEV),
        ),
        both(
            "crossed_data",
            vec![Hear(Kind::Proposal), say(raw(HELLO)), Reset],
            Expect::Connect(EPROTO),
        ),
        both(
            "crossed_broken",
            vec![Hear(Kind::Proposal), say(proposal().at(80, 9)), Reset],
            Expect::Connect(EPROTO),
        ),
        both(
            "crossed_no_option",
            vec![plain(HELLO)],
            falls(Reason::PEERNOSMC),
        )
        .options(&[]),
        // Not crossed at all, but it says what only a client says.
        hears(
            "server_proposes",
            vec![say_with(proposal(), HELLO)],
            falls(Reason::MODEUNSUPP),
        ),
    ]
}
