// SPDX-License-Identifier: GPL-2.0

//! Malformed LLC messages.

use super::{
    flipped,
    with,
    Broken, //
};
use crate::proto::{
    llc::{
        Llc,
        LlcConfig,
        Role, //
    },
    wire::{
        llc::{
            Body,
            LinkInfo,
            LinkReason,
            LlcVersion,
            Message,
            RkeyList, //
        },
        WireError,
    },
};

/// A link.
const LINK: LinkInfo = LinkInfo {
    mac: [1; 6],
    gid: [2; 16],
    qpn: 3,
    link_num: 4,
    link_uid: [5; 4],
    max_links: 2,
    max_conns: 32,
};

/// Whether a byte means nothing.
type Reserved = fn(usize) -> bool;

/// Each body, and which bytes of the message are reserved.
fn bodies() -> Vec<(Body, Reserved)> {
    vec![
        (
            Body::ConfirmLink {
                no_eyecatcher: true,
                link: LINK,
            },
            |at| at >= 36,
        ),
        (
            Body::AddLink {
                reject: false,
                body: [7; 40],
            },
            |_| false,
        ),
        (
            Body::AddLink {
                reject: true,
                body: [7; 40],
            },
            |_| false,
        ),
        (
            Body::DeleteLink {
                all: true,
                orderly: true,
                link_num: 0,
                reason: LinkReason::PROGRAM,
            },
            |at| at >= 9,
        ),
        (Body::RequestAddLink, |at| at >= 4),
        (
            Body::ConfirmRkey {
                negative: false,
                retry: false,
                others: 1,
                rkey: 6,
                vaddr: 7,
            },
            |at| at >= 17,
        ),
        (Body::TestLink { data: [8; 16] }, |at| at >= 20),
        (
            Body::DeleteRkey {
                negative: false,
                invalid: 0,
                rkeys: RkeyList::one(9),
            },
            // All keys but the first.
            |at| (6..8).contains(&at) || at >= 12,
        ),
    ]
}

/// One good message and what becomes of it.
fn message(good: Message, reserved: Reserved, broken: &mut Broken) {
    let buf = good.emit();
    let bytes = buf.as_slice();
    let v2 = good.version == LlcVersion::V2;
    let mut parse = |bytes: &[u8]| {
        let result = Message::parse(bytes);
        broken.note(&result);
        result
    };
    assert_eq!(parse(bytes), Ok(good));
    for n in 0..bytes.len() {
        assert_eq!(parse(&bytes[..n]), Err(WireError::LlcTruncated));
    }
    // Longer in version 2 if enough arrived; never in version 1.
    let mut long = bytes.to_vec();
    long.resize(300, 0xaa);
    for length in 0..=u16::MAX {
        let [low, high] = length.to_le_bytes();
        let changed = with(&with(&long, 1, low), 2, high);
        let result = parse(&changed);
        if v2 {
            let fits = (44..=300).contains(&length);
            assert_eq!(result.is_ok(), fits);
            assert!(fits || result == Err(WireError::LlcV2Length));
        } else {
            assert_eq!(result.is_ok(), low == 44);
            assert!(low == 44 || result == Err(WireError::LlcV1Length));
        }
    }
    for value in 0..=255 {
        // Type and version: read as something, or dropped as unknown.
        if let Ok(read) = parse(&with(bytes, 0, value)) {
            assert!(matches!(value >> 4, 0 | 2) || read.body == Body::Unknown);
        }
        let flags = parse(&with(bytes, 3, value)).expect("flags break no rule");
        assert_eq!(flags.response, value & 0x80 != 0);
    }
    for at in (4..bytes.len()).filter(|at| reserved(*at)) {
        for bit in 0..8 {
            assert_eq!(
                parse(&flipped(bytes, at, bit)),
                Ok(good),
                "byte {at} bit {bit}"
            );
        }
    }
    for count in 0..=255 {
        let result = parse(&with(bytes, 4, count));
        match good.body {
            Body::DeleteRkey { .. } => {
                let most = if v2 { 9 } else { 8 };
                if let Ok(Body::DeleteRkey { rkeys, .. }) = result.as_ref().map(|m| m.body) {
                    assert_eq!(rkeys.as_slice().len(), usize::from(count));
                }
                assert_eq!(result.is_ok(), count <= most);
                assert!(count <= most || result == Err(WireError::LlcRkeyCount));
            }
            Body::ConfirmRkey { .. } => {
                assert_eq!(result.is_ok(), count <= 2);
                assert!(count <= 2 || result == Err(WireError::LlcRkeyLinks));
            }
            _ => assert!(result.is_ok()),
        }
    }
}

/// LLC messages.
pub fn llc() -> Broken {
    let mut broken = Broken::default();
    for (body, reserved) in bodies() {
        for response in [false, true] {
            for version in [LlcVersion::V1, LlcVersion::V2] {
                // The one type that version 1 does not have.
                if version == LlcVersion::V1 && body == Body::RequestAddLink {
                    continue;
                }
                let good = Message {
                    version,
                    response,
                    body,
                };
                message(good, reserved, &mut broken);
            }
        }
    }
    flood(&mut broken);
    broken
}

/// A peer that does not wait for answers.
fn flood(broken: &mut Broken) {
    let config = LlcConfig {
        role: Role::Server,
        version: LlcVersion::V2,
        link: LINK,
        test_period: 0,
    };
    let mut llc = Llc::new(config, 0);
    let test = Message {
        version: LlcVersion::V2,
        response: false,
        body: Body::TestLink { data: [1; 16] },
    };
    for _ in 0..100 {
        broken.note(&llc.handle(test.emit().as_slice(), 0));
    }
    let answers = std::iter::from_fn(|| llc.poll_transmit()).count();
    assert!((1..=16).contains(&answers));
}
