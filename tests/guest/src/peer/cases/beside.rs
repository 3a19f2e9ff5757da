// SPDX-License-Identifier: GPL-2.0
//! A connection beside another one of the same peer that stalls: first contacts with a peer wait
//! for each other, but not for ever.

use super::HELLO;
use crate::peer::case::*;
use crate::peer::message::*;
use crate::proto::reason::Reason;
use crate::proto::wire::clc::Kind;
use Step::*;

/// All of them.
pub fn cases() -> Vec<Case> {
    let accepted = || vec![say(proposal()), Hear(Kind::Accept)];
    let mut confirmed = accepted();
    confirmed.push(say(confirm()));
    let declines = || {
        vec![
            say(proposal()),
            Hear(Kind::Accept),
            say_with(decline(Reason::MEM), HELLO),
        ]
    };
    let mem = peer_declined(Reason::MEM);
    let timeout = Reason::TIMEOUT_CL;
    vec![
        client("beside_silent", declines(), mem).beside(vec![Wait(50)]),
        client("beside_half", declines(), mem).beside(vec![say(proposal().cut(99)), Acked]),
        client("beside_accepted", declines(), mem).beside(accepted()),
        // Its CONFIRM LINK fails: the same pair of ports is not tried again.
        client(
            "beside_unlinked",
            vec![
                Wait(1_000),
                say(proposal()),
                Declined(timeout),
                plain(HELLO),
            ],
            falls(timeout),
        )
        .beside(confirmed),
        client(
            "beside_accepted_plain",
            vec![plain(HELLO)],
            falls(Reason::PEERNOSMC),
        )
        .beside(accepted()),
        client(
            "beside_accepted_no_option",
            vec![plain(HELLO)],
            Expect::Tcp(End::Open),
        )
        .options(&[])
        .beside(accepted()),
    ]
}
