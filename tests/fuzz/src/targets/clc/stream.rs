// SPDX-License-Identifier: GPL-2.0

//! One machine of the handshake against any stream, cut anywhere, with any delays, while the
//! lower layers do anything at any time.

use super::super::Input;
use crate::proto::{
    clc::{
        samples,
        Client,
        ClientEvent,
        Outcome,
        Server,
        ServerEvent,
        PEEK_MAX, //
    },
    reason::Reason,
    wire::{
        clc::{
            ClcBuf,
            Header,
            Kind, //
        },
        clc_accept::Accept,
        clc_decline::Decline,
    },
};

/// A machine of either kind.
#[derive(Clone)]
enum Machine {
    Client(Client),
    Server(Server),
}

/// Runs the same call on either machine.
macro_rules! on {
    ($machine:expr, $m:ident => $call:expr) => {
        match $machine {
            Machine::Client($m) => $call,
            Machine::Server($m) => $call,
        }
    };
}

/// What a machine tells.
#[derive(PartialEq, Debug)]
enum Told {
    Proposal,
    Accept(bool),
    Confirm,
    Decided(Outcome),
}

impl Machine {
    /// The next event.
    fn poll(&mut self) -> Option<Told> {
        Some(match self {
            Self::Client(c) => match c.poll()? {
                ClientEvent::Accept(accept) => Told::Accept(accept.first_contact),
                ClientEvent::Decided(outcome) => Told::Decided(outcome),
            },
            Self::Server(s) => match s.poll()? {
                ServerEvent::Proposal(_) => Told::Proposal,
                ServerEvent::Confirm(_) => Told::Confirm,
                ServerEvent::Decided(outcome) => Told::Decided(outcome),
            },
        })
    }

    /// Sends all and tells all; for machines that are thrown away afterwards.
    fn rest(mut self) -> (Vec<Vec<u8>>, Vec<Told>) {
        let mut sent = Vec::new();
        while let Some(msg) = on!(&mut self, m => m.poll_transmit()) {
            sent.push(msg.as_slice().to_vec());
        }
        let told = std::iter::from_fn(|| self.poll()).collect();
        (sent, told)
    }
}

/// The machine and what is known of it.
struct Bench {
    machine: Machine,
    /// What the peer sent and the machine has not consumed.
    rx: Vec<u8>,
    /// So much of it has arrived.
    arrived: usize,
    eof: bool,
    now: u64,
    /// What was consumed.
    got: Vec<Kind>,
    /// What was sent, and whether TCP has acknowledged it.
    sent: Vec<Kind>,
    acked: bool,
    outcome: Option<Outcome>,
    /// `contact_done` was called.
    done: bool,
}

/// A message of the peer, with up to three bytes changed.
fn message(how: u8, input: &mut Input) -> Vec<u8> {
    let first = how & 0x20 == 0;
    let buf = match how % 8 {
        0 | 1 => samples::proposal_bytes(),
        2 | 3 => samples::accept_bytes(&samples::accept(first)),
        4 | 5 => samples::confirm_bytes(&samples::accept(first)),
        6 => samples::decline_bytes(Reason::SYNCERR),
        _ => {
            let mut buf = ClcBuf::new();
            Decline::new(1, [0; 8], Reason::MEM).emit(&mut buf);
            buf
        }
    };
    let mut bytes = buf.as_slice().to_vec();
    for _ in 0..how >> 6 {
        let at = usize::from(input.or_zero());
        let value = input.or_zero();
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
    }
    bytes
}

impl Bench {
    fn new(client: bool) -> Self {
        Self {
            machine: if client {
                Machine::Client(Client::new(0))
            } else {
                Machine::Server(Server::new(0))
            },
            rx: Vec::new(),
            arrived: 0,
            eof: false,
            now: 0,
            got: Vec::new(),
            sent: Vec::new(),
            acked: true,
            outcome: None,
            done: false,
        }
    }

    /// Whatever the machine says at once about bytes, it says too if they arrive one by one.
    fn one_by_one(&self, peeked: &[u8]) {
        let (mut whole, mut bits) = (self.machine.clone(), self.machine.clone());
        let want = on!(&mut whole, m => m.on_input(peeked, false, self.now));
        let mut got = 0;
        for n in 0..=peeked.len() {
            got = on!(&mut bits, m => m.on_input(&peeked[..n], false, self.now));
            if got > 0 {
                break;
            }
        }
        assert_eq!(got, want);
        assert_eq!(bits.rest(), whole.rest());
    }

    /// Gives what has arrived to the machine, as long as it consumes something.
    fn input(&mut self) {
        loop {
            let n = self.arrived.min(PEEK_MAX);
            let peeked = &self.rx[..n];
            self.one_by_one(peeked);
            let eof = self.eof && n == self.rx.len();
            let now = self.now;
            let used = on!(&mut self.machine, m => m.on_input(peeked, eof, now));
            if used == 0 {
                return;
            }
            assert!(self.outcome.is_none());
            // Whole messages only.
            let header = Header::parse(peeked).expect("consumed without a header");
            assert_eq!(header.length, used);
            self.got.push(header.kind);
            self.rx.drain(..used);
            self.arrived -= used;
        }
    }

    /// What the machine sends is a message that it may send now.
    fn transmit(&mut self) {
        while let Some(msg) = on!(&mut self.machine, m => m.poll_transmit()) {
            let bytes = msg.as_slice();
            super::parse(bytes);
            let header = Header::parse(bytes).expect("own message");
            assert_eq!(header.length, bytes.len());
            let client = matches!(self.machine, Machine::Client(_));
            let fits = match (client, header.kind) {
                (true, Kind::Proposal) | (false, Kind::Accept) => self.sent.is_empty(),
                (true, Kind::Confirm) => self.sent == [Kind::Proposal],
                (_, Kind::Decline) => self.may_decline(client),
                _ => false,
            };
            assert!(fits, "{:?} after {:?}", header.kind, self.sent);
            assert!(self.outcome.is_none(), "sent after the decision");
            self.sent.push(header.kind);
            self.acked = false;
        }
    }

    /// A DECLINE may be sent only while the peer is sure to look for one: to a client that waits
    /// for ACCEPT or CONFIRM LINK, to a server that waits for PROPOSAL or CONFIRM, or for the end
    /// of a first contact.
    fn may_decline(&self, client: bool) -> bool {
        let waits = if client {
            self.sent.is_empty() || self.got.contains(&Kind::Accept)
        } else {
            let confirmed = self.got.contains(&Kind::Confirm);
            self.got.contains(&Kind::Proposal) && (self.sent.is_empty() || confirmed)
        };
        waits && !self.sent.contains(&Kind::Decline)
    }

    /// Nobody falls back alone: a DECLINE came or was sent, or a PROPOSAL crossed ours, or no
    /// message was exchanged at all.
    fn may_fall_back(&self) -> bool {
        let declined = self.got.contains(&Kind::Decline) || self.sent.contains(&Kind::Decline);
        let client = matches!(self.machine, Machine::Client(_));
        let crossed = client && self.got == [Kind::Proposal];
        declined || crossed || (self.got.is_empty() && self.sent.is_empty())
    }

    /// What the machine tells, and the answers of obliging lower layers.
    fn events(&mut self, oblige: bool) {
        while let Some(told) = self.machine.poll() {
            assert!(self.outcome.is_none(), "told after the decision");
            if let Told::Decided(outcome) = told {
                assert!(outcome != Outcome::Smc || self.done);
                let fell_back = matches!(outcome, Outcome::Fallback { .. });
                assert!(!fell_back || self.may_fall_back(), "alone: {outcome:?}");
                self.outcome = Some(outcome);
            } else if oblige {
                self.lower(told);
            }
        }
    }

    /// The lower layers do what they are asked.
    fn lower(&mut self, told: Told) {
        let now = self.now;
        match (&mut self.machine, told) {
            (Machine::Client(c), Told::Accept(first)) => {
                c.contact_confirm(&samples::accept(first), now);
            }
            (Machine::Server(s), Told::Proposal) => {
                s.contact_accept(&samples::accept(now % 2 == 0), now);
            }
            (Machine::Server(s), Told::Confirm) => {
                s.contact_done(now);
                self.done = true;
            }
            _ => {}
        }
    }

    /// The worker, as `clc` tells how to drive a machine.
    fn work(&mut self, oblige: bool) {
        // What the machine tells may make it send.
        for _ in 0..2 {
            let now = self.now;
            self.input();
            if self.acked {
                on!(&mut self.machine, m => m.on_acked(now));
            }
            on!(&mut self.machine, m => m.handle_timeout(now));
            if let Some(at) = on!(&self.machine, m => m.poll_timeout()) {
                assert!(at > now, "a time-out that is not handled");
            }
            self.transmit();
            self.events(oblige);
        }
        if self.outcome.is_some() {
            assert_eq!(on!(&self.machine, m => m.poll_timeout()), None);
            assert!(on!(&mut self.machine, m => m.poll_transmit()).is_none());
        }
    }

    /// One operation.
    fn step(&mut self, op: u8, input: &mut Input) {
        let now = self.now;
        match op % 32 {
            0..=5 => {
                let how = input.or_zero();
                self.rx.extend(message(how, input));
            }
            6 => {
                let n = usize::from(input.or_zero());
                self.rx.extend(input.take(n));
            }
            7 => {
                let [kind, hi, lo, flags] = input.word().to_be_bytes();
                self.rx
                    .extend([0xe2, 0xd4, 0xc3, 0xd9, kind % 6, hi % 5, lo, flags]);
                let n = usize::from(input.or_zero());
                self.rx.extend(input.take(n));
            }
            8..=11 => self.arrived = self.rx.len(),
            12..=13 => {
                let n = self.arrived + usize::from(input.or_zero());
                self.arrived = n.min(self.rx.len());
            }
            14 => self.eof = true,
            15..=16 => self.acked = true,
            17 => self.now += u64::from(input.or_zero()),
            18..=19 => self.now += u64::from(input.or_zero()) * 40,
            20..=22 => {
                if let Machine::Client(c) = &mut self.machine {
                    c.start(Ok(&samples::proposal()), now);
                }
            }
            23 => {
                let reason = if op & 0x20 == 0 {
                    Reason::NOSMCDEV
                } else {
                    Reason::PEERNOSMC
                };
                if let Machine::Client(c) = &mut self.machine {
                    c.start(Err(reason), now);
                }
            }
            24 => {
                if let Machine::Client(c) = &mut self.machine {
                    c.plain_open();
                }
            }
            25 => on!(&mut self.machine, m => m.contact_failed(Reason::MEM, now)),
            26 => {
                on!(&mut self.machine, m => m.contact_done(now));
                self.done = true;
            }
            27 => self.contact(op & 0x20 == 0),
            _ => {}
        }
        // Most of the time the worker runs.
        if op & 0xc0 != 0xc0 {
            self.work(op & 0x80 == 0);
        }
    }

    /// The lower layers are ready, whether asked or not.
    fn contact(&mut self, first: bool) {
        let now = self.now;
        match &mut self.machine {
            Machine::Client(c) => c.contact_confirm(&samples::accept(first), now),
            Machine::Server(s) => s.contact_accept(&samples::accept(first), now),
        }
    }

    /// Whatever the peer does, when the lower layers give up there is a decision in bounded time.
    fn finish(&mut self) {
        self.work(false);
        on!(&mut self.machine, m => m.contact_failed(Reason::MEM, self.now));
        for _ in 0..20 {
            self.acked = true;
            self.work(false);
            self.now += 1_000;
        }
        assert!(self.outcome.is_some(), "undecided");
        assert_eq!(
            on!(&mut self.machine, m => m.on_input(&self.rx, true, self.now)),
            0
        );
        assert_eq!(self.machine.poll(), None);
    }
}

/// Operations with their arguments.
pub(super) fn run(client: bool, mut input: Input) {
    let mut bench = Bench::new(client);
    while let Some(op) = input.byte() {
        bench.step(op, &mut input);
    }
    bench.finish();
}
