// SPDX-License-Identifier: GPL-2.0
//! The peer is a client: its SYN, and what it says first.

use super::HELLO;
use crate::peer::case::*;
use crate::peer::message::*;
use crate::proto::eid::Eid;
use crate::proto::eid::EidSet;
use crate::proto::reason::Reason;
use Step::*;

/// All of them.
pub fn cases() -> Vec<Case> {
    [options(), other_bytes(), proposals(), offers(), declines()]
        .into_iter()
        .flatten()
        .collect()
}

/// A message that breaks a rule ends the connection.
fn broken(name: &'static str, msg: Msg) -> Case {
    client(name, vec![say(msg), Reset], Expect::Dropped)
}

/// The SMC option, or what looks like it.
fn options() -> Vec<Case> {
    let tcp = || vec![plain(HELLO)];
    let open = Expect::Tcp(End::Open);
    vec![
        client("no_option", tcp(), open).options(&[]),
        client("option_other_magic", tcp(), open).options(&[254, 6, 0xe2, 0xd4, 0xc3, 0xc4]),
        client("option_cut", tcp(), open).options(&[254, 4, 0xe2, 0xd4]),
        client("option_other_kind", tcp(), open).options(&[253, 6, 0xe2, 0xd4, 0xc3, 0xd9]),
        client(
            "no_option_clc_is_data",
            vec![plain(&[0xe2, 0xd4, 0xc3, 0xd9, 1, 0, 52, 0x10])],
            open,
        )
        .options(&[]),
    ]
}

/// The option, but then an application that speaks itself.
fn other_bytes() -> Vec<Case> {
    let nosmc = falls(Reason::PEERNOSMC);
    let eof = Expect::Fallback(Reason::PEERNOSMC, Reason::NONE, End::Eof);
    vec![
        client("speaks_plain", vec![plain(HELLO)], nosmc),
        client("speaks_plain_eof", vec![plain(HELLO), Fin], eof),
        client("says_nothing_eof", vec![Fin], eof),
        client(
            "part_of_eyecatcher",
            vec![plain(&[0xe2, 0xd4, 0xc3, 0]), plain(HELLO)],
            nosmc,
        ),
        client(
            "part_of_eyecatcher_eof",
            vec![plain(&[0xe2, 0xd4]), Fin],
            eof,
        ),
        client(
            "version_0",
            vec![
                plain(&[0xe2, 0xd4, 0xc3, 0xd9, 1, 0, 52, 0x00]),
                plain(HELLO),
            ],
            nosmc,
        ),
        client(
            "kind_0",
            vec![
                plain(&[0xe2, 0xd4, 0xc3, 0xd9, 0, 0, 52, 0x10]),
                plain(HELLO),
            ],
            nosmc,
        ),
        client(
            "kind_255",
            vec![
                plain(&[0xe2, 0xd4, 0xc3, 0xd9, 255, 0, 52, 0x10]),
                plain(HELLO),
            ],
            nosmc,
        ),
        client("urgent_plain", vec![urgent(raw(b"!"), 1, HELLO)], nosmc),
    ]
}

/// PROPOSALs that break a rule, one for each.
fn proposals() -> Vec<Case> {
    vec![
        broken("length_65535", proposal().claims(65535)),
        broken("length_653", proposal().claims(653)),
        broken("length_51", proposal().claims(51)),
        broken("length_8", proposal().claims(8)),
        broken("length_0", proposal().claims(0)),
        broken("longer_by_1", proposal().longer(1)),
        broken("longer_to_652", proposal().longer(652 - 156)),
        broken("shorter_than_parts", proposal().claims(155)),
        broken(
            "head_of_smcd_tail_broken",
            proposal().at(3, 0xc4).at(152, 0),
        ),
        broken("tail", proposal().at(155, 0)),
        broken("ip_area_offset", proposal().at(39, 41)),
        broken("ip_area_offset_high", proposal().at(38, 255)),
        broken("v2_ext_offset_0", proposal().at(51, 0)),
        broken("v2_ext_offset_173", proposal().at(51, 173)),
        broken("v2_ext_offset_past_end", proposal().at(51, 70)),
        broken("v2_ext_offset_65535", proposal().at(50, 255).at(51, 255)),
        broken("eid_count_9", proposal().at(80, 9)),
        broken("eid_count_255", proposal().at(80, 255)),
        broken("eid_count_2_of_1", proposal().at(80, 2)),
        broken("v1_no_offer", proposal_v1().at(7, 0x12)),
        broken("v1_ip_area_offset", proposal_v1().at(39, 1)),
        broken("v1_smcd_without_area", proposal_v1().at(7, 0x11)),
        broken("v1_prefixes_9", proposal_v1().at(47, 9)),
        broken("v1_prefixes_1_of_0", proposal_v1().at(47, 1)),
        broken("v1_tail", proposal_v1().at(51, 0)),
        broken("all_prefixes_9", proposal_all().at(87, 9)),
        broken("all_prefixes_2_of_1", proposal_all().at(87, 2)),
        broken("all_ism_area", proposal_all().at(39, 39)),
        broken("all_ism_gids_9", proposal_all().at(106, 9)),
        broken("all_ism_gids_2_of_1", proposal_all().at(106, 2)),
        broken("all_dv2_offset_0", proposal_all().at(112, 0)),
        broken("all_dv2_offset_289", proposal_all().at(111, 1).at(112, 33)),
        broken("all_dv2_offset_past_end", proposal_all().at(112, 200)),
        broken("accept_first", accept()),
        broken("confirm_first", confirm()),
        broken("decline_bad_length", decline(Reason::MEM).at(7, 0x10)),
        broken("decline_v1_bad_length", decline_v1(Reason::MEM).at(7, 0x20)),
        broken("proposal_and_data", proposal().then(raw(HELLO))),
        broken("proposal_twice", proposal().then(proposal())),
        broken("proposal_and_confirm", proposal().then(confirm())),
        client(
            "proposal_fin",
            vec![Acks(false), say(proposal()), Fin, Reset],
            Expect::Dropped,
        ),
    ]
}

/// PROPOSALs that are right, but of no use here: DECLINE, and TCP goes on.
fn offers() -> Vec<Case> {
    let declined = |name, msg, reason| {
        let steps = vec![say(msg), Declined(reason), plain(HELLO)];
        client(name, steps, falls(reason))
    };
    let none = |name, change| declined(name, proposal_with(change), Reason::NOROUTE);
    vec![
        declined("v1_only", proposal_v1(), Reason::VERSMISMAT),
        declined("smcd_only", proposal_all().at(7, 0x27), Reason::NOSMCDDEV),
        declined(
            "nothing_offered",
            proposal()
                .at(7, 0x2a)
                .claims(84)
                .cut(80)
                .then(raw(&[0xe2, 0xd4, 0xc3, 0xd9])),
            Reason::PEERNOSMC,
        ),
        declined(
            "no_eid",
            proposal_with(|p| p.eids = EidSet::new()),
            Reason::NOUEID,
        ),
        declined("unknown_eid", proposal().at(120, b'X'), Reason::NOSMCRDEV),
        declined(
            "eight_unknown_eids",
            proposal_with(|p| {
                p.eids = EidSet::new();
                for i in 0..8 {
                    p.eids.push(Eid([b'A' + i; 32]));
                }
            }),
            Reason::NOSMCRDEV,
        ),
        none("gid_zero", |p| p.gid_v2 = [0; 16]),
        none("gid_ipv6", |p| p.gid_v2 = [0xfd; 16]),
        none("gid_without_route", |p| {
            p.gid_v2[12..].copy_from_slice(&[192, 0, 2, 1])
        }),
        none("gid_multicast", |p| {
            p.gid_v2[12..].copy_from_slice(&[224, 0, 0, 1])
        }),
        none("gid_loopback", |p| {
            p.gid_v2[12..].copy_from_slice(&[127, 0, 0, 1])
        }),
        none("gid_broadcast", |p| {
            p.gid_v2[12..].copy_from_slice(&[10, 2, 255, 255])
        }),
        none("gid_unknown_neighbour_mac_zero", |p| {
            p.gid_v2[12..].copy_from_slice(&[10, 2, 200, 200]);
            p.mac = [0; 6];
        }),
        declined(
            "max_conns_15",
            proposal_with(|p| p.max_conns = 15),
            Reason::MAXCONNERR,
        ),
        declined(
            "max_links_0",
            proposal_with(|p| p.max_links = 0),
            Reason::MAXLINKERR,
        ),
    ]
}

/// DECLINEs, in place of a PROPOSAL or with one.
fn declines() -> Vec<Case> {
    vec![
        client(
            "decline_byte_by_byte",
            vec![bits(decline(Reason::MEM), 1), plain(HELLO)],
            peer_declined(Reason::MEM),
        ),
        client(
            "decline_v1",
            vec![say_with(decline_v1(Reason::IPSEC), HELLO)],
            peer_declined(Reason::IPSEC),
        ),
        client(
            "decline_unknown_reason",
            vec![say(decline(Reason(0xffff_ffff))), plain(HELLO)],
            peer_declined(Reason(0xffff_ffff)),
        ),
        client(
            "decline_tail_broken",
            vec![say(decline(Reason::MEM).at(43, 0)), plain(HELLO)],
            peer_declined(Reason::MEM),
        ),
        client(
            "decline_urgent",
            vec![urgent(decline(Reason::MEM), 10, b""), plain(HELLO)],
            peer_declined(Reason::MEM),
        ),
        client(
            "decline_clc_after_it_is_data",
            vec![
                say_with(
                    decline(Reason::MEM),
                    &[0xe2, 0xd4, 0xc3, 0xd9, 2, 0, 68, 0x10],
                ),
                plain(HELLO),
            ],
            peer_declined(Reason::MEM),
        ),
        client(
            "decline_fin",
            vec![say_with(decline(Reason::MEM), HELLO), Fin],
            Expect::Fallback(Reason::PEERDECL, Reason::MEM, End::Eof),
        ),
        client(
            "decline_then_rst",
            vec![say(decline(Reason::MEM)), Acked, Quiet(2_000), Rst],
            Expect::Fallback(Reason::PEERDECL, Reason::MEM, End::Error(libc::ECONNRESET)),
        ),
        client(
            "proposal_and_decline",
            vec![say_with(proposal().then(decline(Reason::SYNCERR)), HELLO)],
            peer_declined(Reason::SYNCERR),
        ),
        client(
            "useless_proposal_and_decline",
            vec![say_with(
                proposal_v1().then(decline_v1(Reason::SYNCERR)),
                HELLO,
            )],
            peer_declined(Reason::SYNCERR),
        ),
        client(
            "declined_zero_window",
            vec![
                say(proposal_v1()),
                Quiet(300),
                Window(65_535),
                Declined(Reason::VERSMISMAT),
                plain(HELLO),
            ],
            falls(Reason::VERSMISMAT),
        )
        .window(0),
    ]
}
