// SPDX-License-Identifier: GPL-2.0

//! The two LLC machines of a link group under any sequence of operations: each request gets the
//! answer that the other side gave, once; both sides know the same link; everything ends. Between
//! the machines is a link that keeps order and loses nothing until it dies.

use super::{
    llc::link,
    Input, //
};
use crate::proto::{
    llc::{
        Llc,
        LlcConfig,
        LlcEvent,
        Refusal,
        RkeyAnswer,
        Role, //
    },
    wire::llc::{
        LinkReason,
        LlcVersion,
        Message, //
    },
};
use std::collections::{
    BTreeMap,
    BTreeSet,
    VecDeque, //
};

/// What a request is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ask {
    /// CONFIRM RKEY.
    Confirm,
    /// DELETE RKEY.
    Delete,
}

/// One machine and the layers above it.
struct Side {
    llc: Llc,
    /// Messages that are on their way to it.
    inbox: VecDeque<Vec<u8>>,
    /// Its requests that were not answered yet. The number of a request is its key too.
    open: BTreeMap<u32, Ask>,
    /// The other's keys that it was told of.
    noted: BTreeSet<u32>,
    /// The other's keys that it knows no more.
    gone: BTreeSet<u32>,
    /// A request of the other that waits for an answer.
    waiting: Option<Ask>,
    /// The key that waits, if it is one key.
    key: u32,
    confirmed: u32,
    ended: bool,
}

/// Both.
struct Group {
    sides: [Side; 2],
    now: u64,
    next: u32,
}

/// The answer to a CONFIRM RKEY depends on nothing but the key.
fn answer(rkey: u32) -> RkeyAnswer {
    match rkey % 5 {
        0 => RkeyAnswer::Refused,
        1 => RkeyAnswer::Retry,
        _ => RkeyAnswer::Ok,
    }
}

impl Side {
    fn new(role: Role, version: LlcVersion, test_period: u64) -> Self {
        let tag = if role == Role::Server { 5 } else { 1 };
        let config = LlcConfig {
            role,
            version,
            link: link(tag),
            test_period,
        };
        Self {
            llc: Llc::new(config, 0),
            inbox: VecDeque::new(),
            open: BTreeMap::new(),
            noted: BTreeSet::new(),
            gone: BTreeSet::new(),
            waiting: None,
            key: 0,
            confirmed: 0,
            ended: false,
        }
    }

    /// The answer that was waited for.
    fn reply(&mut self) {
        match self.waiting.take() {
            None => {}
            Some(Ask::Confirm) => {
                self.llc.answer_rkey(answer(self.key));
                if answer(self.key) == RkeyAnswer::Ok {
                    self.noted.insert(self.key);
                }
            }
            Some(Ask::Delete) => {
                let gone = &mut self.gone;
                self.llc.answer_delete_rkeys(|rkey| {
                    gone.insert(rkey);
                    rkey % 2 == 0
                });
            }
        }
    }
}

impl Group {
    /// The next event of a side; `slow` ones are answered later.
    fn event(&mut self, i: usize, slow: bool) -> bool {
        let now = self.now;
        let [a, b] = &mut self.sides;
        let (side, other) = if i == 0 { (a, b) } else { (b, a) };
        let Some(event) = side.llc.poll() else {
            return false;
        };
        match event {
            LlcEvent::ConfirmRequested { peer } => {
                assert_eq!(i, 0, "the client is asked");
                assert_eq!(peer, link(5));
                if !slow {
                    side.llc.reply_confirm_link(now);
                }
            }
            LlcEvent::LinkConfirmed { peer } => {
                side.confirmed += 1;
                assert_eq!(side.confirmed, 1);
                // The client takes the number that the server gave the link.
                assert_eq!(peer.link_num, 5);
                assert_eq!(peer.mac, link(if i == 0 { 5 } else { 1 }).mac);
                assert!(i == 0 || other.confirmed == 1 || other.ended || other.llc.active());
            }
            LlcEvent::RkeyConfirmed { id } => {
                let rkey = u32::try_from(id).expect("small");
                assert_eq!(side.open.remove(&rkey), Some(Ask::Confirm));
                assert!(other.noted.contains(&rkey), "nobody noted it");
            }
            LlcEvent::RkeyRefused { id, why } => {
                let rkey = u32::try_from(id).expect("small");
                assert_eq!(side.open.remove(&rkey), Some(Ask::Confirm));
                match why {
                    Refusal::Negative => assert_eq!(answer(rkey), RkeyAnswer::Refused),
                    Refusal::Retry => assert_eq!(answer(rkey), RkeyAnswer::Retry),
                    Refusal::TimedOut | Refusal::LinkDown => {}
                }
            }
            LlcEvent::RkeyDeleted { rkey, ok } => {
                assert_eq!(side.open.remove(&rkey), Some(Ask::Delete));
                assert!(!ok || (other.gone.contains(&rkey) && rkey % 2 == 0));
            }
            LlcEvent::PeerRkey { rkey, vaddr } => {
                assert_eq!(vaddr, u64::from(rkey) << 12);
                assert_eq!(side.waiting, None, "two requests at a time");
                (side.waiting, side.key) = (Some(Ask::Confirm), rkey);
                if !slow {
                    side.reply();
                }
            }
            LlcEvent::PeerDeletesRkeys(rkeys) => {
                assert_eq!(rkeys.as_slice().len(), 1);
                assert_eq!(side.waiting, None, "two requests at a time");
                side.waiting = Some(Ask::Delete);
                if !slow {
                    side.reply();
                }
            }
            LlcEvent::LinkFailed(_) | LlcEvent::TestLinkFailed => side.ended = true,
            LlcEvent::PeerDeletesLink { all, reason, .. } => {
                assert!(all && reason == LinkReason::PROGRAM && other.ended);
                side.ended = true;
            }
        }
        true
    }

    /// Up to `most` messages of a side get on their way.
    fn transmit(&mut self, i: usize, most: usize) -> bool {
        let mut any = false;
        for _ in 0..most {
            let Some(buf) = self.sides[i].llc.poll_transmit() else {
                break;
            };
            self.sides[1 - i].inbox.push_back(buf.as_slice().to_vec());
            any = true;
        }
        any
    }

    /// The next message arrives. Who is flooded ends the link.
    fn deliver(&mut self, i: usize) -> bool {
        let now = self.now;
        let side = &mut self.sides[i];
        let Some(bytes) = side.inbox.pop_front() else {
            return false;
        };
        assert!(Message::parse(&bytes).is_ok());
        if side.llc.handle(&bytes, now).is_err() {
            side.llc.link_down();
            side.ended = true;
        }
        true
    }

    /// A request of a side.
    fn ask(&mut self, i: usize, what: Ask) {
        let (rkey, now) = (self.next, self.now);
        self.next += 1;
        let side = &mut self.sides[i];
        let asked = match what {
            Ask::Confirm => {
                let vaddr = u64::from(rkey) << 12;
                side.llc.confirm_rkey(u64::from(rkey), rkey, vaddr, now)
            }
            Ask::Delete => side.llc.delete_rkey(rkey, now),
        };
        if asked.is_ok() {
            side.open.insert(rkey, what);
        }
    }

    /// Time goes by, for both.
    fn time(&mut self, ms: u64) {
        self.now += ms;
        for side in &mut self.sides {
            side.llc.handle_timeout(self.now);
            assert!(side.llc.poll_timeout().is_none_or(|at| at > self.now));
        }
    }

    /// One operation.
    fn step(&mut self, op: u8, arg: u8) {
        let i = usize::from(op & 1);
        match (op >> 1) % 32 {
            0..=3 => self.ask(i, Ask::Confirm),
            4..=6 => self.ask(i, Ask::Delete),
            7..=11 => drop(self.transmit(i, 16)),
            12 => drop(self.transmit(i, usize::from(arg % 4))),
            13..=18 => drop(self.deliver(i)),
            19..=20 => self.sides[i].reply(),
            21..=23 => self.time(u64::from(arg)),
            24 => self.time(u64::from(arg) * 50),
            25..=26 => {
                let now = self.now;
                self.sides[0].llc.expect_confirm_link(now);
            }
            27..=28 => {
                let now = self.now;
                self.sides[1].llc.start_confirm_link(now);
            }
            29 => self.sides[i].llc.test_link(self.now),
            30 => self.sides[0].llc.reply_confirm_link(self.now),
            _ => self.ending(i, arg),
        }
        // The layers above look at everything at once, but may answer later.
        for i in [0, 1] {
            let mut n = 0;
            while self.event(i, arg & 1 != 0) {
                n += 1;
                assert!(n < 64, "no end of events");
            }
            let side = &self.sides[i];
            assert!(!(side.ended && side.llc.active()), "back from the dead");
        }
    }

    /// A rare operation: some way to end, or nothing.
    fn ending(&mut self, i: usize, arg: u8) {
        let side = &mut self.sides[i];
        match arg {
            0..=7 => side.llc.link_down(),
            8..=23 => side.llc.delete_link_all(LinkReason::PROGRAM, arg & 1 != 0),
            _ => return,
        }
        side.ended = true;
    }

    /// Everybody does what is to be done until nothing happens.
    fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 10_000, "no end of messages");
            let mut busy = false;
            for i in [0, 1] {
                while self.event(i, false) {
                    busy = true;
                }
                self.sides[i].reply();
                busy |= self.transmit(i, 16);
                busy |= self.deliver(i);
            }
            if !busy {
                return;
            }
        }
    }

    /// With time and attention every request ends, whether the link was confirmed or not.
    fn finish(&mut self) {
        self.settle();
        // A request that came while one was not answered is dropped and has to time out.
        for _ in 0..200 {
            if self.sides.iter().all(|s| s.open.is_empty()) {
                break;
            }
            self.time(500);
            self.settle();
        }
        if self.sides.iter().all(|s| s.llc.active()) {
            for side in &self.sides {
                assert!(side.open.is_empty(), "{:?}", side.open);
            }
        }
        for side in &mut self.sides {
            side.llc.link_down();
        }
        self.settle();
        for side in &self.sides {
            assert!(side.open.is_empty(), "{:?}", side.open);
            assert_eq!(side.llc.poll_timeout(), None);
        }
    }
}

/// Byte 0: version, how often to test the link, whether the link is confirmed at the beginning.
/// Then operations, two bytes each.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let flags = input.or_zero();
    let version = if flags & 1 == 0 {
        LlcVersion::V2
    } else {
        LlcVersion::V1
    };
    let period = u64::from(flags >> 2) * 250;
    let mut group = Group {
        sides: [
            Side::new(Role::Client, version, period),
            Side::new(Role::Server, version, period),
        ],
        now: 0,
        next: 1,
    };
    if flags & 2 == 0 {
        group.sides[0].llc.expect_confirm_link(0);
        group.sides[1].llc.start_confirm_link(0);
        group.settle();
        assert!(group.sides.iter().all(|s| s.llc.active()));
    }
    for op in input.0.chunks_exact(2) {
        group.step(op[0], op[1]);
    }
    group.finish();
}
