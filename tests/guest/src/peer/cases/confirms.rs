// SPDX-License-Identifier: GPL-2.0
//! The peer is a client and stops, stalls or closes somewhere; its CONFIRM.

use super::HELLO;
use crate::peer::case::*;
use crate::peer::message::*;
use crate::proto::eid::Eid;
use crate::proto::eid::EidSet;
use crate::proto::reason::Reason;
use crate::proto::wire::clc::Kind;
use crate::proto::wire::clc_accept::Accept;
use crate::proto::wire::clc_accept::FirstContact;
use Step::*;

/// All of them.
pub fn cases() -> Vec<Case> {
    [ends(), answered(), confirms(), late()]
        .into_iter()
        .flatten()
        .collect()
}

/// Stops, stalls and closes at each step.
fn ends() -> Vec<Case> {
    let gone = Expect::Dropped;
    let heard = || vec![say(proposal()), Hear(Kind::Accept)];
    let after = |name, mut steps: Vec<Step>, more: Vec<Step>| {
        steps.extend(more);
        client(name, steps, gone)
    };
    vec![
        client("rst_at_once", vec![Rst, Quiet(300)], gone),
        client("silent", vec![Quiet(5_500), Reset], gone),
        client(
            "eyecatcher_and_silent",
            vec![say(proposal().cut(4)), Quiet(5_500), Reset],
            gone,
        ),
        client(
            "half_and_silent",
            vec![say(proposal().cut(100)), Quiet(5_500), Reset],
            gone,
        ),
        client("half_fin", vec![say(proposal().cut(100)), Fin, Reset], gone),
        client(
            "half_rst",
            vec![say(proposal().cut(100)), Rst, Quiet(300)],
            gone,
        ),
        client(
            "half_decline_fin",
            vec![say(decline(Reason::MEM).cut(30)), Fin, Reset],
            gone,
        ),
        client("header_fin", vec![say(proposal().cut(8)), Fin, Reset], gone),
        after("accepted_silent", heard(), vec![Quiet(5_500), Reset]),
        after("accepted_fin", heard(), vec![Fin, Reset]),
        after("accepted_rst", heard(), vec![Rst, Quiet(300)]),
        after(
            "accepted_never_acked",
            vec![say(proposal()), Acks(false)],
            vec![Quiet(5_500), Reset],
        ),
        after("accepted_data", heard(), vec![say(raw(HELLO)), Reset]),
        after(
            "accepted_half_confirm",
            heard(),
            vec![say(confirm().cut(90)), Quiet(5_500), Reset],
        ),
        after(
            "accepted_half_confirm_fin",
            heard(),
            vec![say(confirm().cut(90)), Fin, Reset],
        ),
        after(
            "accepted_proposal_again",
            heard(),
            vec![say(proposal()), Reset],
        ),
        after("accepted_accept", heard(), vec![say(accept()), Reset]),
        after(
            "accepted_urgent_data",
            heard(),
            vec![urgent(raw(HELLO), 1, b""), Reset],
        ),
    ]
}

/// ACCEPT comes, and DECLINE follows it.
fn answered() -> Vec<Case> {
    vec![
        client(
            "byte_by_byte",
            vec![
                bits(proposal(), 1),
                Hear(Kind::Accept),
                bits(decline(Reason::NOSRVLINK), 1),
                plain(HELLO),
            ],
            peer_declined(Reason::NOSRVLINK),
        ),
        client(
            "proposal_urgent",
            vec![
                urgent(proposal(), 20, b""),
                Hear(Kind::Accept),
                say(decline(Reason::NOSRVLINK)),
                plain(HELLO),
            ],
            peer_declined(Reason::NOSRVLINK),
        ),
        client(
            "mac_zero_of_a_known_neighbour",
            vec![
                say(proposal_with(|p| p.mac = [0; 6])),
                Hear(Kind::Accept),
                say(decline(Reason::NOSRVLINK)),
                plain(HELLO),
            ],
            peer_declined(Reason::NOSRVLINK),
        ),
        client(
            "release_0",
            vec![
                say(proposal_with(|p| p.release = 0)),
                Hear(Kind::Accept),
                say(decline(Reason::NOSRVLINK)),
                plain(HELLO),
            ],
            peer_declined(Reason::NOSRVLINK),
        ),
        client(
            "release_15",
            vec![
                say(proposal_with(|p| p.release = 15)),
                Hear(Kind::Accept),
                say(decline(Reason::NOSRVLINK)),
                plain(HELLO),
            ],
            peer_declined(Reason::NOSRVLINK),
        ),
        client(
            "seven_other_eids",
            vec![
                say(proposal_with(|p| {
                    let known = p.eids.clone();
                    p.eids = EidSet::new();
                    for i in 0..7 {
                        p.eids.push(Eid([b'A' + i; 32]));
                    }
                    for eid in known.iter() {
                        p.eids.push(*eid);
                    }
                })),
                Hear(Kind::Accept),
                say(decline(Reason::NOSRVLINK)),
                plain(HELLO),
            ],
            peer_declined(Reason::NOSRVLINK),
        ),
        client(
            "limits_255",
            vec![
                say(proposal_with(|p| (p.max_conns, p.max_links) = (255, 255))),
                Hear(Kind::Accept),
                say(decline(Reason::NOSRVLINK)),
                plain(HELLO),
            ],
            peer_declined(Reason::NOSRVLINK),
        ),
        client(
            "smcd_eyecatchers",
            vec![
                say(proposal().at(3, 0xc4).at(155, 0xc4)),
                Hear(Kind::Accept),
                say(decline(Reason::NOSRVLINK)),
                plain(HELLO),
            ],
            peer_declined(Reason::NOSRVLINK),
        ),
        client(
            "everything_offered",
            vec![
                say(proposal_all()),
                Hear(Kind::Accept),
                say(decline(Reason::NOSRVLINK)),
                plain(HELLO),
            ],
            peer_declined(Reason::NOSRVLINK),
        ),
        client(
            "version_15",
            vec![
                say(proposal().at(7, 0xf2)),
                Hear(Kind::Accept),
                say(decline(Reason::NOSRVLINK)),
                plain(HELLO),
            ],
            peer_declined(Reason::NOSRVLINK),
        ),
        client(
            "accepted_decline_out_of_sync",
            vec![
                say(proposal()),
                Hear(Kind::Accept),
                say_with(decline(Reason::SYNCERR), HELLO),
            ],
            peer_declined(Reason::SYNCERR),
        ),
        client(
            "accepted_decline_fin",
            vec![
                say(proposal()),
                Hear(Kind::Accept),
                say_with(decline(Reason::MEM), HELLO),
                Fin,
            ],
            Expect::Fallback(Reason::PEERDECL, Reason::MEM, End::Eof),
        ),
        client(
            "proposal_after_5_seconds",
            vec![
                Quiet(5_000),
                say(proposal()),
                Hear(Kind::Accept),
                say(decline(Reason::NOSRVLINK)),
                plain(HELLO),
            ],
            peer_declined(Reason::NOSRVLINK),
        ),
    ]
}

/// CONFIRMs that break a rule.
fn confirms() -> Vec<Case> {
    let broken = |name, msg| {
        let steps = vec![say(proposal()), Hear(Kind::Accept), say(msg), Reset];
        client(name, steps, Expect::Dropped)
    };
    vec![
        broken("confirm_length_65535", confirm().claims(65535)),
        broken("confirm_length_47", confirm().claims(47)),
        broken("confirm_length_107", confirm().claims(107)),
        broken("confirm_without_extension", confirm().claims(108).cut(108)),
        broken("confirm_tail", confirm().at(179, 0)),
        broken("confirm_v1_length", confirm().at(7, 0x18)),
        broken("confirm_v1", confirm_with(|c| c.version = 1)),
        broken("confirm_smcd", confirm().at(3, 0xc4)),
        broken("confirm_type_d", confirm().at(7, 0x29)),
        broken("confirm_version_0", confirm().at(7, 0x08)),
        broken("confirm_kind_9", confirm().at(4, 9)),
        broken("confirm_and_data", confirm().then(raw(HELLO))),
        broken("confirm_twice", confirm().then(confirm())),
    ]
}

/// CONFIRMs that can't be: first contact fails after them, so that DECLINEs may cross.
fn late() -> Vec<Case> {
    /// The server declines at once.
    fn wrong(name: &'static str, change: fn(&mut Accept), reason: Reason) -> Case {
        let steps = vec![
            say(proposal()),
            Hear(Kind::Accept),
            say(confirm_with(change)),
            Declined(reason),
            plain(HELLO),
        ];
        client(name, steps, falls(reason))
    }
    let to_confirm = || vec![say(proposal()), Hear(Kind::Accept), say(confirm())];
    let after = |name, more: Vec<Step>, expect| {
        let mut steps = to_confirm();
        steps.extend(more);
        client(name, steps, expect)
    };
    let timeout = Reason::TIMEOUT_CL;
    vec![
        wrong(
            "confirm_other_release",
            |c| c.fce = c.fce.map(|f| FirstContact { release: 0, ..f }),
            Reason::RELEASEERR,
        ),
        wrong(
            "confirm_other_conns",
            |c| c.fce = c.fce.map(|f| FirstContact { max_conns: 16, ..f }),
            Reason::MAXCONNERR,
        ),
        wrong(
            "confirm_other_links",
            |c| c.fce = c.fce.map(|f| FirstContact { max_links: 2, ..f }),
            Reason::MAXLINKERR,
        ),
        wrong("confirm_mtu_0", |c| c.mtu = 0, Reason::ERR_RDYLNK),
        wrong("confirm_mtu_15", |c| c.mtu = 15, Reason::ERR_RDYLNK),
        wrong(
            "confirm_not_first",
            |c| (c.first_contact, c.fce) = (false, None),
            Reason::RELEASEERR,
        ),
        // CONFIRM is right, but CONFIRM LINK is never answered.
        after(
            "unlinked_silent",
            vec![Declined(timeout), plain(HELLO)],
            falls(timeout),
        ),
        after(
            "unlinked_declines",
            vec![say_with(decline(timeout), HELLO)],
            peer_declined(timeout),
        ),
        after(
            "unlinked_declines_cross",
            vec![Declined(timeout), say_with(decline(timeout), HELLO)],
            peer_declined(timeout),
        ),
        after(
            "unlinked_decline_in_halves",
            vec![
                Declined(timeout),
                say(decline(timeout).cut(20)),
                Quiet(500),
                Reset,
            ],
            Expect::Dropped,
        ),
        after(
            "unlinked_data",
            vec![say(raw(HELLO)), Reset],
            Expect::Dropped,
        ),
        after("unlinked_fin", vec![Fin, Reset], Expect::Dropped),
        after("unlinked_rst", vec![Rst, Quiet(300)], Expect::Dropped),
        after(
            "unlinked_never_acked",
            vec![Acks(false), Quiet(8_000), Reset],
            Expect::Dropped,
        ),
        after(
            "unlinked_declined_fin",
            vec![Declined(timeout), Fin],
            Expect::Fallback(timeout, Reason::NONE, End::Eof),
        ),
        client(
            "confirm_index_0",
            vec![
                say(proposal()),
                Hear(Kind::Accept),
                say(confirm_with(|c| c.rmbe_index = 0)),
                Declined(Reason::ERR_RTOK),
                plain(HELLO),
            ],
            falls(Reason::ERR_RTOK),
        ),
        client(
            "confirm_address_overflow",
            vec![
                say(proposal()),
                Hear(Kind::Accept),
                say(confirm_with(|c| (c.rmbe_index, c.vaddr) = (255, u64::MAX))),
                Declined(Reason::ERR_RTOK),
                plain(HELLO),
            ],
            falls(Reason::ERR_RTOK),
        ),
        client(
            "confirm_longer",
            vec![
                say(proposal()),
                Hear(Kind::Accept),
                say(confirm().longer(800)),
                Declined(timeout),
                plain(HELLO),
            ],
            falls(timeout),
        ),
    ]
}
