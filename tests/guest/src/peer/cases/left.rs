// SPDX-License-Identifier: GPL-2.0
//! The application leaves while the peer stalls somewhere: the connection is reset.

use crate::peer::case::*;
use crate::peer::message::*;
use crate::proto::reason::Reason;
use crate::proto::wire::clc::Kind;
use Step::*;

/// All of them.
pub fn cases() -> Vec<Case> {
    let left = |name, steps: Vec<Step>| {
        let steps = steps.into_iter().chain([Leave, Reset]).collect();
        client(name, steps, Expect::Left)
    };
    let gives_up = |name, steps: Vec<Step>| {
        let steps = steps.into_iter().chain([Leave, Reset]).collect();
        server(name, steps, Expect::Left)
    };
    vec![
        left("left_silent", vec![Wait(100)]),
        left("left_half_proposal", vec![say(proposal().cut(60)), Acked]),
        left("left_accepted", vec![say(proposal()), Hear(Kind::Accept)]),
        left(
            "left_half_confirm",
            vec![
                say(proposal()),
                Hear(Kind::Accept),
                say(confirm().cut(60)),
                Acked,
            ],
        ),
        left(
            "left_unlinked",
            vec![
                say(proposal()),
                Hear(Kind::Accept),
                say(confirm()),
                Acked,
                Wait(100),
            ],
        ),
        left(
            "left_unlinked_declined",
            vec![
                say(proposal()),
                Hear(Kind::Accept),
                say(confirm()),
                Declined(Reason::TIMEOUT_CL),
                say(decline(Reason::TIMEOUT_CL).cut(10)),
            ],
        ),
        gives_up("left_proposed", vec![Hear(Kind::Proposal)]),
        gives_up(
            "left_half_accept",
            vec![Hear(Kind::Proposal), say(accept().cut(60)), Acked],
        ),
        gives_up(
            "left_confirmed",
            vec![Hear(Kind::Proposal), say(accept()), Hear(Kind::Confirm)],
        ),
        gives_up(
            "left_confirmed_declined",
            vec![
                Hear(Kind::Proposal),
                say(accept()),
                Hear(Kind::Confirm),
                Declined(Reason::TIMEOUT_CL),
                say(decline(Reason::TIMEOUT_CL).cut(10)),
            ],
        ),
    ]
}
