// SPDX-License-Identifier: GPL-2.0
//! The host under test has no RDMA device.

use super::HELLO;
use crate::peer::case::*;
use crate::peer::message::*;
use crate::peer::tcp::SMC;
use crate::proto::reason::Reason;
use crate::proto::wire::clc::Kind;
use Step::*;

/// All of them.
pub fn cases() -> Vec<Case> {
    bare()
}

/// The host has no RDMA device: it declines instead of proposing.
fn bare() -> Vec<Case> {
    let none = Reason::NOSMCDEV;
    let list = vec![
        server(
            "bare_server",
            vec![Declined(none), plain(HELLO)],
            falls(none),
        ),
        server(
            "bare_server_fin",
            vec![Declined(none), plain(HELLO), Fin],
            Expect::Fallback(none, Reason::NONE, End::Eof),
        ),
        server(
            "bare_no_option",
            vec![plain(HELLO)],
            falls(Reason::PEERNOSMC),
        )
        .options(&[]),
        server(
            "bare_zero_window",
            vec![Quiet(1_000), Window(65_535), Declined(none), plain(HELLO)],
            falls(none),
        )
        .window(0),
        crossed(
            "bare_crossed_proposal",
            vec![say(proposal()), Declined(none), plain(HELLO)],
            falls(none),
        ),
        crossed(
            "bare_crossed_decline",
            vec![say(decline(none)), plain(HELLO), MayHear(Kind::Decline)],
            peer_declined(none),
        ),
        crossed(
            "bare_crossed_plain",
            vec![Declined(none), plain(HELLO)],
            falls(none),
        )
        .options(SMC),
        client(
            "bare_client",
            vec![say(proposal()), Declined(none), plain(HELLO)],
            falls(none),
        ),
        client(
            "bare_client_declines",
            vec![say_with(decline(none), HELLO)],
            peer_declined(none),
        ),
        client(
            "bare_client_plain",
            vec![plain(HELLO)],
            falls(Reason::PEERNOSMC),
        ),
        client(
            "bare_client_broken",
            vec![say(proposal().at(80, 9)), Reset],
            Expect::Dropped,
        ),
    ];
    list.into_iter().map(Case::bare).collect()
}
