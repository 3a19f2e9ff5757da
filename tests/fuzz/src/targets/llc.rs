// SPDX-License-Identifier: GPL-2.0

//! One LLC machine whose peer sends any messages at any time while the layers above ask and
//! answer. Each request ends once, what is sent is well formed, and no peer makes it more than
//! it asked for.

use super::Input;
use crate::proto::{
    llc::{
        Llc,
        LlcConfig,
        LlcEvent,
        RkeyAnswer,
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
use std::collections::BTreeSet;

/// The machine and what is known of it.
struct Bench {
    llc: Llc,
    version: LlcVersion,
    server: bool,
    now: u64,
    /// CONFIRM RKEY requests that were not answered yet.
    confirms: BTreeSet<u64>,
    /// Keys of DELETE RKEY requests that were not answered yet, each with their number.
    deletes: Vec<u32>,
    next: u64,
    /// Requests of the peer that were accepted, and answers to them that were sent.
    asked: u32,
    answered: u32,
    /// The link was confirmed.
    confirmed: bool,
    /// The link is known to be gone.
    down: bool,
}

/// The link of the tests.
pub(super) fn link(tag: u8) -> LinkInfo {
    LinkInfo {
        mac: [tag; 6],
        gid: [tag; 16],
        qpn: u32::from(tag),
        link_num: tag,
        link_uid: [tag; 4],
        max_links: 1,
        max_conns: 32,
    }
}

/// A body out of a few bytes; keys and numbers are small, so that they often fit.
fn body(input: &mut Input) -> Body {
    let (kind, flags, arg) = (input.or_zero(), input.or_zero(), input.or_zero());
    let has = |bit: u8| flags & bit != 0;
    match kind % 9 {
        0 => Body::ConfirmLink {
            no_eyecatcher: !has(1),
            link: link(arg),
        },
        1 => Body::AddLink {
            reject: has(1),
            body: [arg; 40],
        },
        2 => Body::DeleteLink {
            all: has(1),
            orderly: has(2),
            link_num: arg % 8,
            reason: LinkReason(u32::from(arg) << 16),
        },
        3 => Body::RequestAddLink,
        4 => Body::ConfirmRkey {
            negative: has(1),
            retry: has(2),
            others: arg % 3,
            rkey: u32::from(arg % 32),
            vaddr: u64::from(arg),
        },
        5 => Body::TestLink { data: [arg; 16] },
        6 => Body::DeleteRkey {
            negative: has(1),
            invalid: flags,
            rkeys: RkeyList::one(u32::from(arg % 32)),
        },
        7 => Body::ConfirmRkey {
            negative: has(1),
            retry: has(2),
            others: 0,
            rkey: u32::from(arg),
            vaddr: 0,
        },
        _ => Body::Unknown,
    }
}

impl Bench {
    /// A fresh machine.
    fn new(flags: u8) -> Self {
        let version = if flags & 1 == 0 {
            LlcVersion::V2
        } else {
            LlcVersion::V1
        };
        let server = flags & 2 != 0;
        let config = LlcConfig {
            role: if server { Role::Server } else { Role::Client },
            version,
            link: link(5),
            test_period: u64::from(flags >> 2) * 500,
        };
        Self {
            llc: Llc::new(config, 0),
            version,
            server,
            now: 0,
            confirms: BTreeSet::new(),
            deletes: Vec::new(),
            next: 0,
            asked: 0,
            answered: 0,
            confirmed: false,
            down: false,
        }
    }

    /// A message comes.
    fn message(&mut self, bytes: &[u8]) {
        let parsed = Message::parse(bytes);
        let active = self.llc.active();
        let result = self.llc.handle(bytes, self.now);
        match (parsed, result) {
            (Err(want), got) => {
                assert_eq!(got, Err(want));
                assert_eq!(self.llc.active(), active);
            }
            (Ok(msg), Ok(())) => {
                assert!(bytes.len() >= 44);
                let echo = Message::parse(msg.emit().as_slice());
                let simple = !matches!(msg.body, Body::Unknown);
                assert!(!simple || echo == Ok(msg) || matches!(msg.body, Body::DeleteRkey { .. }));
                let asks = !matches!(msg.body, Body::ConfirmLink { .. } | Body::Unknown);
                let asks = asks && (msg.version, self.version) != (LlcVersion::V2, LlcVersion::V1);
                self.asked += u32::from(!msg.response && asks);
            }
            (Ok(_), Err(error)) => assert_eq!(error, WireError::LlcFlood),
        }
        self.events(bytes.first().copied().unwrap_or(0));
    }

    /// Everything that the machine wants to tell; `how` says how some of it is answered.
    fn events(&mut self, how: u8) {
        let mut n = 0;
        while let Some(event) = self.llc.poll() {
            n += 1;
            assert!(n < 64, "no end of events");
            self.event(event, how);
        }
    }

    /// Acts on an event.
    fn event(&mut self, event: LlcEvent, how: u8) {
        match event {
            LlcEvent::ConfirmRequested { .. } => {
                assert!(!self.server);
                if how & 0x40 == 0 {
                    self.llc.reply_confirm_link(self.now);
                }
            }
            LlcEvent::LinkConfirmed { .. } => {
                assert!(!self.confirmed, "confirmed twice");
                self.confirmed = true;
            }
            LlcEvent::LinkFailed(_) | LlcEvent::TestLinkFailed => {
                assert!(!self.llc.active());
                self.down = true;
            }
            LlcEvent::PeerDeletesLink { .. } => {
                assert!(!self.llc.active());
                self.down = true;
            }
            LlcEvent::RkeyConfirmed { id } => {
                assert!(self.confirms.remove(&id), "answered twice")
            }
            LlcEvent::RkeyRefused { id, .. } => {
                assert!(self.confirms.remove(&id), "answered twice")
            }
            LlcEvent::RkeyDeleted { rkey, .. } => {
                let at = self.deletes.iter().position(|&r| r == rkey);
                self.deletes.swap_remove(at.expect("answered twice"));
            }
            LlcEvent::PeerRkey { .. } => match how & 0x30 {
                0x00 => self.llc.answer_rkey(RkeyAnswer::Ok),
                0x10 => self.llc.answer_rkey(RkeyAnswer::Retry),
                0x20 => self.llc.answer_rkey(RkeyAnswer::Refused),
                _ => {}
            },
            LlcEvent::PeerDeletesRkeys(_) => {
                if how & 0x20 == 0 {
                    self.llc.answer_delete_rkeys(|rkey| rkey & 1 == 0);
                }
            }
        }
    }

    /// Messages go out.
    fn transmit(&mut self, most: usize) {
        for n in 0..=most {
            let Some(buf) = self.llc.poll_transmit() else {
                return;
            };
            assert!(n <= 16, "no end of messages");
            let msg = Message::parse(buf.as_slice()).expect("own message");
            assert_eq!(msg.version, self.version);
            assert_ne!(msg.body, Body::Unknown);
            self.answered += u32::from(msg.response && !confirms_link(&msg));
            assert!(self.answered <= self.asked, "an answer to nothing");
        }
    }

    /// Time goes by.
    fn time(&mut self, ms: u64) {
        self.now += ms;
        self.llc.handle_timeout(self.now);
        if let Some(at) = self.llc.poll_timeout() {
            assert!(at > self.now, "a time-out that is not handled");
        }
        self.events(0);
    }

    /// One operation.
    fn step(&mut self, op: u8, input: &mut Input) {
        let how = op;
        match op % 32 {
            0..=9 => {
                let response = input.or_zero() & 1 != 0;
                let msg = Message {
                    version: self.version,
                    response,
                    body: body(input),
                };
                self.message(msg.emit().as_slice());
            }
            10..=12 => {
                let mut bytes = [0; 44];
                let n = usize::from(input.or_zero() % 45);
                let tail = input.take(n);
                bytes[..tail.len()].copy_from_slice(tail);
                self.message(&bytes);
            }
            13 => {
                let n = usize::from(input.or_zero());
                let bytes = input.take(n);
                self.message(bytes);
            }
            14..=15 => {
                let id = self.next;
                self.next += 1;
                if self.llc.confirm_rkey(id, (id % 32) as u32, 7, self.now) == Ok(()) {
                    self.confirms.insert(id);
                }
            }
            16..=17 => {
                let rkey = u32::from(input.or_zero() % 32);
                if self.llc.delete_rkey(rkey, self.now) == Ok(()) {
                    self.deletes.push(rkey);
                }
            }
            18..=19 => self.transmit(16),
            20 => self.transmit(usize::from(input.or_zero() % 4)),
            21..=22 => self.time(u64::from(input.or_zero()) * 10),
            23 => self.time(u64::from(input.or_zero()) * 1000),
            24 => self.llc.start_confirm_link(self.now),
            25 => self.llc.expect_confirm_link(self.now),
            26 => self.llc.reply_confirm_link(self.now),
            27 => self.llc.test_link(self.now),
            28 => self.llc.answer_rkey(RkeyAnswer::Ok),
            29 => self.llc.answer_delete_rkeys(|rkey| rkey & 2 == 0),
            30 => self
                .llc
                .note_rx(self.now.saturating_sub(u64::from(input.or_zero()))),
            _ => match input.or_zero() {
                0..=15 => self.llc.link_down(),
                16..=31 => self.llc.delete_link_all(LinkReason::PROTOCOL, false),
                _ => {}
            },
        }
        self.events(how);
        assert!(!(self.down && self.llc.active()), "back from the dead");
    }

    /// The link goes; every request must have ended then.
    fn finish(&mut self) {
        self.llc.link_down();
        self.events(0);
        assert!(self.confirms.is_empty() && self.deletes.is_empty());
        assert!(!self.llc.active());
        assert_eq!(self.llc.poll_timeout(), None);
        self.transmit(16);
        assert!(self.llc.poll_transmit().is_none());
        assert!(self.llc.poll().is_none());
    }
}

/// Whether it is a CONFIRM LINK.
fn confirms_link(msg: &Message) -> bool {
    matches!(msg.body, Body::ConfirmLink { .. })
}

/// Byte 0: version, role, how often to test the link. Then operations with their arguments.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut bench = Bench::new(input.or_zero());
    while let Some(op) = input.byte() {
        bench.step(op, &mut input);
    }
    bench.finish();
}
