// SPDX-License-Identifier: GPL-2.0

//! Two LLC machines under random requests, losses of time, and hostile messages.
#![allow(dead_code, unused_imports)]

#[path = "../../../proto/mod.rs"]
mod proto;

use proptest::prelude::*;
use proto::{
    llc::{
        Llc,
        LlcConfig,
        LlcEvent,
        Refusal,
        RkeyAnswer,
        Role, //
    },
    wire::llc::{
        LinkInfo,
        LinkReason,
        LlcVersion, //
    },
};
use std::collections::{
    BTreeSet,
    VecDeque, //
};

/// A machine.
fn llc(role: Role, version: LlcVersion) -> Llc {
    let config = LlcConfig {
        role,
        version,
        link: LinkInfo {
            mac: [1; 6],
            gid: [2; 16],
            qpn: 3,
            link_num: 4,
            link_uid: [5; 4],
            max_links: 1,
            max_conns: 255,
        },
        test_period: 1_000,
    };
    Llc::new(config, 0)
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Op {
    Confirm(usize),
    Delete(usize),
    Test(usize),
    /// Messages to this side arrive.
    Deliver(usize),
    /// The upper layer of this side acts.
    Act(usize),
    Time(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let side = 0usize..2;
    prop_oneof![
        side.clone().prop_map(Op::Confirm),
        side.clone().prop_map(Op::Delete),
        side.clone().prop_map(Op::Test),
        side.clone().prop_map(Op::Deliver),
        side.clone().prop_map(Op::Deliver),
        side.clone().prop_map(Op::Act),
        side.prop_map(Op::Act),
        (0u64..900).prop_map(Op::Time),
    ]
}

/// Both sides.
struct Both {
    llc: [Llc; 2],
    wire: [VecDeque<Vec<u8>>; 2],
    /// Requests that were not answered yet.
    open: [BTreeSet<u64>; 2],
    next: u64,
    now: u64,
}

impl Both {
    fn flush(&mut self) {
        for i in 0..2 {
            while let Some(msg) = self.llc[i].poll_transmit() {
                assert_eq!(msg.as_slice().len(), 44);
                self.wire[1 - i].push_back(msg.as_slice().to_vec());
            }
        }
    }

    fn act(&mut self, i: usize) {
        while let Some(event) = self.llc[i].poll() {
            match event {
                LlcEvent::ConfirmRequested { .. } => self.llc[i].reply_confirm_link(self.now),
                LlcEvent::PeerRkey { rkey, .. } => {
                    self.llc[i].answer_rkey(match rkey % 5 {
                        0 => RkeyAnswer::Refused,
                        1 => RkeyAnswer::Retry,
                        _ => RkeyAnswer::Ok,
                    });
                }
                LlcEvent::PeerDeletesRkeys(_) => {
                    self.llc[i].answer_delete_rkeys(|rkey| rkey % 2 == 0)
                }
                LlcEvent::RkeyConfirmed { id } => {
                    assert!(id % 5 > 1);
                    assert!(self.open[i].remove(&id), "answered twice");
                }
                LlcEvent::RkeyRefused { id, why } => {
                    assert!(self.open[i].remove(&id), "answered twice");
                    match why {
                        Refusal::Negative => assert_eq!(id % 5, 0),
                        Refusal::Retry => assert_eq!(id % 5, 1),
                        _ => {}
                    }
                }
                LlcEvent::RkeyDeleted { rkey, ok } => {
                    assert!(!ok || rkey % 2 == 0);
                    assert!(self.open[i].remove(&u64::from(rkey)), "answered twice");
                }
                _ => {}
            }
        }
        self.flush();
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Confirm(i) => {
                self.next += 1;
                let rkey = u32::try_from(self.next).expect("small");
                if self.llc[i]
                    .confirm_rkey(self.next, rkey, 7, self.now)
                    .is_ok()
                {
                    self.open[i].insert(self.next);
                }
            }
            Op::Delete(i) => {
                self.next += 1;
                let rkey = u32::try_from(self.next).expect("small");
                if self.llc[i].delete_rkey(rkey, self.now).is_ok() {
                    self.open[i].insert(self.next);
                }
            }
            Op::Test(i) => self.llc[i].test_link(self.now),
            Op::Deliver(i) => {
                if let Some(msg) = self.wire[i].pop_front() {
                    let _ = self.llc[i].handle(&msg, self.now);
                }
            }
            Op::Act(i) => self.act(i),
            Op::Time(ms) => {
                self.now += ms;
                for llc in &mut self.llc {
                    llc.handle_timeout(self.now);
                    assert!(llc.poll_timeout().is_none_or(|at| at > self.now));
                }
            }
        }
        self.flush();
    }
}

/// So many cases, unless the environment says how many.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(2_000);
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..Default::default()
    }
}

proptest! {
    #![proptest_config(config())]

    /// Each request is answered exactly once, with the answer that belongs to it.
    #[test]
    fn requests_are_answered_once(
        ops in prop::collection::vec(op(), 0..200),
        v2 in any::<bool>(),
    ) {
        let version = if v2 { LlcVersion::V2 } else { LlcVersion::V1 };
        let mut both = Both {
            llc: [llc(Role::Client, version), llc(Role::Server, version)],
            wire: Default::default(),
            open: Default::default(),
            next: 0,
            now: 0,
        };
        both.llc[0].expect_confirm_link(0);
        both.llc[1].start_confirm_link(0);
        both.flush();
        for op in ops {
            both.step(op);
        }
        // The end: everything gets its answer, or fails with the link.
        for _ in 0..4000 {
            for i in 0..2 {
                both.step(Op::Deliver(i));
                both.step(Op::Act(i));
            }
            if both.open.iter().all(BTreeSet::is_empty) {
                break;
            }
            both.step(Op::Time(100));
        }
        prop_assert!(both.open.iter().all(BTreeSet::is_empty), "{:?}", both.open);
    }

    /// Any bytes in any state: no panic.
    #[test]
    fn any_bytes_do_no_harm(
        msgs in prop::collection::vec((any::<u8>(), any::<u8>(), prop::collection::vec(any::<u8>(), 0..60)), 0..60),
        state in 0u8..4,
        server in any::<bool>(),
    ) {
        let role = if server { Role::Server } else { Role::Client };
        let mut llc = llc(role, LlcVersion::V2);
        if state > 0 { llc.start_confirm_link(0); llc.expect_confirm_link(0); }
        if state > 1 { let _ = llc.confirm_rkey(1, 2, 3, 0); let _ = llc.delete_rkey(4, 0); }
        if state > 2 { llc.delete_link_all(LinkReason::PROTOCOL, false); }
        for (i, (kind, flags, mut msg)) in msgs.into_iter().enumerate() {
            if i % 3 != 0 && msg.len() >= 44 {
                let version = if kind & 0x80 != 0 { 0x20 } else { 0 };
                msg[..4].copy_from_slice(&[version | (kind & 0xf), 44, 0, flags]);
            }
            let _ = llc.handle(&msg, 10);
            match llc.poll() {
                Some(LlcEvent::PeerRkey { .. }) if i % 2 == 0 => llc.answer_rkey(RkeyAnswer::Ok),
                Some(LlcEvent::PeerDeletesRkeys(_)) => llc.answer_delete_rkeys(|_| false),
                Some(LlcEvent::ConfirmRequested { .. }) => llc.reply_confirm_link(10),
                _ => {}
            }
            if i % 4 == 0 { llc.poll_transmit(); }
            if i % 16 == 0 { llc.handle_timeout(u64::try_from(i).expect("small") * 1000); }
        }
    }
}
