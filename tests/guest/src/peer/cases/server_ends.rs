// SPDX-License-Identifier: GPL-2.0
//! The peer is a server and stops, stalls or closes somewhere; CONFIRM LINK never comes.

use super::hears;
use super::HELLO;
use crate::peer::case::*;
use crate::peer::message::*;
use crate::proto::reason::Reason;
use crate::proto::wire::clc::Kind;
use crate::proto::wire::clc_accept::FirstContact;
use libc::ECONNRESET;
use libc::EPROTO;
use libc::ETIMEDOUT;
use Step::*;

/// All of them.
pub fn cases() -> Vec<Case> {
    [ends(), late()].into_iter().flatten().collect()
}

/// Stops, stalls and closes at each step.
fn ends() -> Vec<Case> {
    let reset = Expect::Connect(ECONNRESET);
    let late = Expect::Connect(ETIMEDOUT);
    vec![
        server("server_rst_at_once", vec![Rst], reset),
        server("server_fin_at_once", vec![Fin], reset),
        hears("server_fin", vec![Fin, Reset], reset).nonblocking(),
        hears("server_rst", vec![Rst], reset).nonblocking(),
        hears("server_silent", vec![Quiet(5_500), Reset], late),
        hears("server_silent_nonblocking", vec![Quiet(5_500), Reset], late).nonblocking(),
        hears(
            "accept_after_6_1_seconds",
            vec![Quiet(5_500), Wait(600), HasReset, say(accept())],
            late,
        )
        .alone(),
        hears(
            "half_accept_fin",
            vec![say(accept().cut(100)), Fin, Reset],
            reset,
        ),
        hears("half_accept_rst", vec![say(accept().cut(100)), Rst], reset),
        hears(
            "half_accept_silent",
            vec![say(accept().cut(100)), Quiet(5_500), Reset],
            late,
        ),
        hears(
            "eyecatcher_silent",
            vec![say(accept().cut(3)), Quiet(5_500), Reset],
            late,
        ),
        hears(
            "half_server_decline_fin",
            vec![say(decline(Reason::MEM).cut(43)), Fin, Reset],
            reset,
        ),
        hears(
            "accept_fin",
            vec![Acks(false), say(accept()), Fin, Reset],
            reset,
        ),
    ]
}

/// ACCEPT is right, but CONFIRM LINK never comes.
fn late() -> Vec<Case> {
    let confirmed = |name, more: Vec<Step>, expect| {
        let mut steps = vec![say(accept()), Hear(Kind::Confirm)];
        steps.extend(more);
        hears(name, steps, expect)
    };
    let timeout = Reason::TIMEOUT_CL;
    let reset = Expect::Connect(ECONNRESET);
    vec![
        confirmed(
            "confirmed_silent",
            vec![Declined(timeout), plain(HELLO)],
            falls(timeout),
        ),
        confirmed(
            "confirmed_declines",
            vec![say_with(decline(timeout), HELLO)],
            peer_declined(timeout),
        ),
        confirmed(
            "confirmed_declines_late",
            vec![Quiet(4_500), say_with(decline(timeout), HELLO)],
            peer_declined(timeout),
        ),
        confirmed(
            "confirmed_declines_cross",
            vec![Declined(timeout), say_with(decline(timeout), HELLO)],
            peer_declined(timeout),
        ),
        confirmed(
            "confirmed_data",
            vec![say(raw(HELLO)), Reset],
            Expect::Connect(EPROTO),
        ),
        confirmed(
            "confirmed_accept",
            vec![say(accept()), Reset],
            Expect::Connect(EPROTO),
        ),
        confirmed("confirmed_fin", vec![Fin, Reset], reset),
        confirmed("confirmed_rst", vec![Rst], reset),
        confirmed(
            "confirmed_half_decline",
            vec![Declined(timeout), say(decline(timeout).cut(30)), Reset],
            Expect::Connect(ETIMEDOUT),
        ),
        confirmed(
            "confirmed_declined_fin",
            vec![Declined(timeout), Fin],
            Expect::Fallback(timeout, Reason::NONE, End::Eof),
        ),
        hears(
            "accept_bits",
            vec![
                bits(accept(), 1),
                Hear(Kind::Confirm),
                say_with(decline(timeout), HELLO),
            ],
            peer_declined(timeout),
        ),
        hears(
            "accept_longer",
            vec![
                say(accept().longer(800)),
                Hear(Kind::Confirm),
                say_with(decline(timeout), HELLO),
            ],
            peer_declined(timeout),
        ),
        hears(
            "accept_urgent",
            vec![
                urgent(accept(), 50, b""),
                Hear(Kind::Confirm),
                say_with(decline(timeout), HELLO),
            ],
            peer_declined(timeout),
        ),
        hears(
            "accept_ring_of_512_mib",
            vec![
                say(accept().at(50, 0xf3)),
                Hear(Kind::Confirm),
                say_with(decline(timeout), HELLO),
            ],
            peer_declined(timeout),
        ),
        hears(
            "accept_release_0",
            vec![
                say(accept_with(|a| {
                    a.fce = a.fce.map(|f| FirstContact { release: 0, ..f });
                })),
                Hear(Kind::Confirm),
                say_with(decline(timeout), HELLO),
            ],
            peer_declined(timeout),
        ),
    ]
}
