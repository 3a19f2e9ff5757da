// SPDX-License-Identifier: GPL-2.0

//! Properties of the CLC and LLC wire formats: nothing panics on any bytes, and what is written
//! is read back as it was.
#![allow(dead_code, unused_imports)]

#[path = "../../../proto/mod.rs"]
mod proto;

use proptest::prelude::*;
use proto::{
    eid::{
        Eid,
        EidSet, //
    },
    reason::Reason,
    size::SizeCode,
    wire::{
        clc::{
            ClcBuf,
            Header,
            Kind, //
        },
        clc_accept::{
            Accept,
            FirstContact, //
        },
        clc_decline::Decline,
        clc_proposal::Proposal,
        llc::{
            Body,
            LinkInfo,
            LinkReason,
            LlcVersion,
            Message,
            RkeyList, //
        },
    },
};

/// So many cases, unless the environment says how many.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(5000);
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..Default::default()
    }
}

/// A PROPOSAL that can be sent.
fn proposal() -> impl Strategy<Value = Proposal> {
    (
        any::<([u8; 8], [u8; 16], [u8; 6], u8, u8, u16)>(),
        prop::collection::vec(any::<[u8; 32]>(), 0..=8),
        0u8..16,
    )
        .prop_map(|((id, gid, mac, conns, links, features), eids, release)| {
            let mut set = EidSet::new();
            for eid in eids {
                set.push(Eid(eid));
            }
            Proposal {
                release,
                features,
                ..Proposal::new(id, gid, mac, set, conns, links)
            }
        })
}

/// A first contact extension.
fn first_contact() -> impl Strategy<Value = FirstContact> {
    any::<(bool, u8, u8, [u8; 32], u8, u8, u16)>().prop_map(
        |(direct, os, release, host, max_conns, max_links, features)| FirstContact {
            direct,
            os: os & 0xf,
            release: release & 0xf,
            host,
            max_conns,
            max_links,
            features,
        },
    )
}

/// An ACCEPT or CONFIRM of either version.
fn accept() -> impl Strategy<Value = Accept> {
    (
        any::<([u8; 8], [u8; 16], [u8; 6], u32, u32, u8)>(),
        any::<(u32, u8, u64, u32, [u8; 32])>(),
        1u8..=2,
        any::<bool>(),
        first_contact(),
    )
        .prop_map(|(one, two, version, first, fce)| {
            let (peer_id, gid, mac, qpn, rkey, rmbe_index) = one;
            let (token, size_mtu, vaddr, psn, eid) = two;
            Accept {
                version,
                first_contact: first,
                peer_id,
                gid,
                mac,
                qpn: qpn & 0xff_ffff,
                rkey,
                rmbe_index,
                token,
                rmbe_size: SizeCode::from_high_nibble(size_mtu),
                mtu: size_mtu & 0xf,
                vaddr,
                psn: psn & 0xff_ffff,
                eid: if version == 1 { Eid::BLANK } else { Eid(eid) },
                fce: (first && version == 2).then_some(fce),
            }
        })
}

/// A valid message of any type.
fn valid_clc() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proposal().prop_map(|p| {
            let mut buf = ClcBuf::new();
            p.emit(&mut buf);
            buf.as_slice().to_vec()
        }),
        (accept(), any::<bool>()).prop_map(|(a, confirm)| {
            let mut buf = ClcBuf::new();
            if confirm {
                a.emit_confirm(&mut buf);
            } else {
                a.emit_accept(&mut buf);
            }
            buf.as_slice().to_vec()
        }),
        (1u8..=2, any::<u32>()).prop_map(|(version, reason)| {
            let mut buf = ClcBuf::new();
            Decline::new(version, [3; 8], Reason(reason)).emit(&mut buf);
            buf.as_slice().to_vec()
        }),
    ]
}

/// Changes to a message: some bytes, its length.
fn mutation() -> impl Strategy<Value = (Vec<(prop::sample::Index, u8)>, Option<usize>)> {
    (
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        prop::option::of(0usize..700),
    )
}

/// Applies them.
fn mutate(bytes: &mut Vec<u8>, (changes, len): &(Vec<(prop::sample::Index, u8)>, Option<usize>)) {
    if let Some(len) = len {
        bytes.resize(*len, 0x5a);
    }
    for (at, value) in changes {
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = *value;
        }
    }
}

/// Reads bytes as everything; none may panic, and only whole messages may be read.
fn read_all(bytes: &[u8]) {
    let header = Header::parse(bytes);
    let results = [
        Proposal::parse(bytes).map(|_| Kind::Proposal),
        Accept::parse(bytes).map(|_| Kind::Accept),
        Decline::parse(bytes).map(|_| Kind::Decline),
    ];
    for kind in results.into_iter().flatten() {
        let header = header.expect("a message without a header");
        assert!(header.length <= bytes.len());
        assert!(kind == header.kind || (kind, header.kind) == (Kind::Accept, Kind::Confirm));
    }
    let _ = Message::parse(bytes);
}

/// A message of LLC that can be sent.
fn llc() -> impl Strategy<Value = Message> {
    let link = any::<([u8; 6], [u8; 16], u32, u8, [u8; 4], u8, u8)>().prop_map(
        |(mac, gid, qpn, link_num, link_uid, max_links, max_conns)| LinkInfo {
            mac,
            gid,
            qpn: qpn & 0xff_ffff,
            link_num,
            link_uid,
            max_links,
            max_conns,
        },
    );
    let body = prop_oneof![
        (any::<bool>(), link).prop_map(|(no_eyecatcher, link)| Body::ConfirmLink {
            no_eyecatcher,
            link
        }),
        (any::<bool>(), any::<[[u8; 20]; 2]>()).prop_map(|(reject, halves)| Body::AddLink {
            reject,
            body: halves.concat().try_into().expect("40 bytes"),
        }),
        any::<(bool, bool, u8, u32)>().prop_map(|(all, orderly, link_num, reason)| {
            Body::DeleteLink {
                all,
                orderly,
                link_num,
                reason: LinkReason(reason),
            }
        }),
        any::<(bool, bool, u32, u64)>().prop_flat_map(|(negative, retry, rkey, vaddr)| {
            (0u8..=2).prop_map(move |others| Body::ConfirmRkey {
                negative,
                retry,
                others,
                rkey,
                vaddr,
            })
        }),
        any::<[u8; 16]>().prop_map(|data| Body::TestLink { data }),
        any::<(bool, u8, u32)>().prop_map(|(negative, invalid, rkey)| Body::DeleteRkey {
            negative,
            invalid,
            rkeys: RkeyList::one(rkey),
        }),
    ];
    (body, any::<bool>(), any::<bool>()).prop_map(|(body, response, v2)| Message {
        version: if v2 { LlcVersion::V2 } else { LlcVersion::V1 },
        response,
        body,
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..800)) {
        read_all(&bytes);
    }

    #[test]
    fn random_bytes_behind_a_header_do_no_harm(
        kind in 0u8..6,
        flags in any::<u8>(),
        cut in -3isize..4,
        mut bytes in prop::collection::vec(any::<u8>(), 12..800),
    ) {
        let len = u16::try_from(bytes.len().saturating_add_signed(cut)).expect("short");
        let [hi, lo] = len.to_be_bytes();
        bytes[..8].copy_from_slice(&[0xe2, 0xd4, 0xc3, 0xd9, kind, hi, lo, flags]);
        read_all(&bytes);
    }

    #[test]
    fn changed_messages_do_no_harm(mut bytes in valid_clc(), change in mutation()) {
        mutate(&mut bytes, &change);
        read_all(&bytes);
    }

    #[test]
    fn a_valid_message_with_more_behind_it_is_read(bytes in valid_clc(), more in 0usize..50) {
        let mut longer = bytes.clone();
        longer.resize(bytes.len() + more, 0xaa);
        let header = Header::parse(&longer).expect("header");
        prop_assert_eq!(header.length, bytes.len());
        let ok = match header.kind {
            Kind::Proposal => Proposal::parse(&longer) == Proposal::parse(&bytes),
            Kind::Accept | Kind::Confirm => Accept::parse(&longer) == Accept::parse(&bytes),
            Kind::Decline => Decline::parse(&longer) == Decline::parse(&bytes),
        };
        prop_assert!(ok);
    }

    #[test]
    fn proposals_come_back(proposal in proposal()) {
        let mut buf = ClcBuf::new();
        proposal.emit(&mut buf);
        prop_assert_eq!(Proposal::parse(buf.as_slice()), Ok(proposal));
    }

    #[test]
    fn accepts_and_confirms_come_back(accept in accept()) {
        let mut buf = ClcBuf::new();
        accept.emit_accept(&mut buf);
        prop_assert_eq!(Accept::parse(buf.as_slice()), Ok(accept));
        accept.emit_confirm(&mut buf);
        prop_assert_eq!(Accept::parse(buf.as_slice()), Ok(accept));
    }

    #[test]
    fn declines_come_back(version in 1u8..=2, id in any::<[u8; 8]>(), reason in any::<u32>()) {
        let decline = Decline::new(version, id, Reason(reason));
        let mut buf = ClcBuf::new();
        decline.emit(&mut buf);
        prop_assert_eq!(Decline::parse(buf.as_slice()), Ok(decline));
    }

    #[test]
    fn llc_messages_come_back(msg in llc()) {
        prop_assert_eq!(Message::parse(msg.emit().as_slice()), Ok(msg));
    }

    #[test]
    fn changed_llc_messages_do_no_harm(msg in llc(), change in mutation()) {
        let mut bytes = msg.emit().as_slice().to_vec();
        mutate(&mut bytes, &change);
        read_all(&bytes);
    }
}
