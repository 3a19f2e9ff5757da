// SPDX-License-Identifier: GPL-2.0
//! The peer is a server: its SYN-ACK, and how it answers the PROPOSAL.

use super::hears;
use super::HELLO;
use crate::peer::case::*;
use crate::peer::message::*;
use crate::proto::reason::Reason;
use crate::proto::wire::clc::Kind;
use crate::proto::wire::clc_accept::Accept;
use crate::proto::wire::clc_accept::FirstContact;
use libc::EPROTO;
use Step::*;

/// All of them.
pub fn cases() -> Vec<Case> {
    [options(), broken_answers(), declined_answers(), declines()]
        .into_iter()
        .flatten()
        .collect()
}

/// The SMC option, or what looks like it.
fn options() -> Vec<Case> {
    let nosmc = falls(Reason::PEERNOSMC);
    let tcp = |name, options| server(name, vec![plain(HELLO)], nosmc).options(options);
    vec![
        tcp("server_no_option", &[]),
        tcp(
            "server_option_other_magic",
            &[254, 6, 0xe2, 0xd4, 0xc3, 0xc4],
        ),
        tcp("server_option_cut", &[254, 4, 0xe2, 0xd4]),
        tcp("server_option_odd", &[254, 7, 0xe2, 0xd4, 0xc3, 0xd9, 0]),
    ]
}

/// What breaks a rule ends the connection.
fn broken_answers() -> Vec<Case> {
    let broken = |name, msg| hears(name, vec![say(msg), Reset], Expect::Connect(EPROTO));
    vec![
        broken("speaks_first", raw(b"220 hello\r\n")).nonblocking(),
        broken("one_other_byte", raw(b"S")),
        broken("accept_length_65535", accept().claims(65535)),
        broken("accept_length_1025", accept().claims(1025)),
        broken("accept_length_47", accept().claims(47)),
        broken("accept_length_107", accept().claims(107)),
        broken("accept_without_extension", accept().claims(108).cut(108)),
        broken("accept_tail", accept().at(159, 0)),
        broken("accept_v1_length", accept().at(7, 0x18)),
        broken("accept_version_0", accept().at(7, 0x08)),
        broken("accept_kind_0", accept().at(4, 0)),
        broken("accept_then_accept", accept().then(accept())),
        broken("accept_then_data", accept().then(raw(HELLO))).nonblocking(),
        broken("confirm_not_accept", confirm()),
        broken(
            "server_decline_v1_length",
            decline_v1(Reason::MEM).at(7, 0x20),
        ),
        broken("server_decline_length", decline(Reason::MEM).at(7, 0x10)),
        broken("server_decline_length_45", decline(Reason::MEM).claims(45)),
        broken("proposal_broken", proposal().at(80, 9)),
    ]
}

/// ACCEPTs that are right, but of no use: DECLINE, and TCP goes on.
fn declined_answers() -> Vec<Case> {
    let declined = |name, msg, reason| {
        let steps = vec![say(msg), Declined(reason), plain(HELLO)];
        hears(name, steps, falls(reason))
    };
    fn fce(a: &mut Accept, change: fn(FirstContact) -> FirstContact) {
        a.fce = a.fce.map(change);
    }
    vec![
        declined(
            "accept_v1",
            accept_with(|a| a.version = 1),
            Reason::MODEUNSUPP,
        ),
        declined("accept_smcd", accept().at(3, 0xc4), Reason::MODEUNSUPP),
        declined("accept_type_d", accept().at(7, 0x29), Reason::MODEUNSUPP),
        declined(
            "accept_other_eid",
            accept().at(64, b'X'),
            Reason::MODEUNSUPP,
        ),
        declined(
            "accept_mtu_0",
            accept_with(|a| a.mtu = 0),
            Reason::ERR_RDYLNK,
        ),
        declined(
            "accept_mtu_6",
            accept_with(|a| a.mtu = 6),
            Reason::ERR_RDYLNK,
        ),
        declined(
            "accept_release_2",
            accept_with(|a| fce(a, |f| FirstContact { release: 2, ..f })),
            Reason::RELEASEERR,
        ),
        declined(
            "accept_conns_15",
            accept_with(|a| fce(a, |f| FirstContact { max_conns: 15, ..f })),
            Reason::MAXCONNERR,
        ),
        declined(
            "accept_links_0",
            accept_with(|a| fce(a, |f| FirstContact { max_links: 0, ..f })),
            Reason::MAXLINKERR,
        ),
        declined(
            "accept_links_3",
            accept_with(|a| fce(a, |f| FirstContact { max_links: 3, ..f })),
            Reason::MAXLINKERR,
        ),
        declined(
            "accept_indirect",
            accept_with(|a| fce(a, |f| FirstContact { direct: false, ..f })),
            Reason::NOINDIRECT,
        ),
        declined(
            "accept_unknown_group",
            accept_with(|a| (a.first_contact, a.fce) = (false, None)),
            Reason::SYNCERR,
        ),
        declined(
            "accept_gid_zero",
            accept_with(|a| a.gid = [0; 16]),
            Reason::NOROUTE,
        ),
        declined(
            "accept_gid_without_route",
            accept_with(|a| a.gid[12..].copy_from_slice(&[192, 0, 2, 1])),
            Reason::NOROUTE,
        ),
    ]
}

/// DECLINEs.
fn declines() -> Vec<Case> {
    let mem = peer_declined(Reason::MEM);
    vec![
        hears(
            "server_declines",
            vec![say(decline(Reason::MEM)), plain(HELLO)],
            mem,
        ),
        hears(
            "server_declines_v1",
            vec![say(decline_v1(Reason::MEM)), plain(HELLO)],
            mem,
        ),
        hears(
            "server_decline_and_data",
            vec![say_with(decline(Reason::MEM), HELLO)],
            mem,
        ),
        hears(
            "server_decline_bits",
            vec![bits(decline(Reason::MEM), 1), plain(HELLO)],
            mem,
        ),
        hears(
            "server_decline_urgent",
            vec![urgent(decline(Reason::MEM), 20, b""), plain(HELLO)],
            mem,
        ),
        hears(
            "server_decline_urgent_last",
            vec![urgent(decline(Reason::MEM), 44, b""), plain(HELLO)],
            mem,
        ),
        server(
            "server_declines_first",
            vec![
                say(decline(Reason::MEM)),
                plain(HELLO),
                MayHear(Kind::Proposal),
            ],
            mem,
        ),
        hears(
            "server_decline_fin",
            vec![say_with(decline(Reason::MEM), HELLO), Fin],
            Expect::Fallback(Reason::PEERDECL, Reason::MEM, End::Eof),
        ),
        hears(
            "server_decline_clc_after_it_is_data",
            vec![
                say_with(
                    decline(Reason::MEM),
                    &[0xe2, 0xd4, 0xc3, 0xd9, 4, 0, 28, 0x10],
                ),
                plain(HELLO),
            ],
            mem,
        ),
        hears(
            "decline_after_5_seconds",
            vec![Quiet(5_000), say_with(decline(Reason::MEM), HELLO)],
            mem,
        ),
        server(
            "server_zero_window",
            vec![
                Quiet(7_000),
                Window(65_535),
                Hear(Kind::Proposal),
                say_with(decline(Reason::MEM), HELLO),
            ],
            mem,
        )
        .window(0),
        server(
            "server_tiny_window",
            vec![Hear(Kind::Proposal), say_with(decline(Reason::MEM), HELLO)],
            mem,
        )
        .window(60),
        server(
            "proposal_unacked_7_seconds",
            vec![
                Acks(false),
                Quiet(7_000),
                Acks(true),
                Hear(Kind::Proposal),
                say_with(decline(Reason::MEM), HELLO),
            ],
            mem,
        ),
    ]
}
