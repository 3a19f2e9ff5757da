// SPDX-License-Identifier: GPL-2.0

//! Two sides of a handshake over a simulated TCP connection with virtual time.
//!
//! Each side is a machine, the worker that drives it (some time after TCP has got something), and
//! lower layers that do what a plan says. After a fallback each side's application sends a text
//! of its own; whatever else an application reads is a CLC byte that leaked.

use std::collections::{
    BTreeMap,
    VecDeque, //
};

use super::proto::{
    clc::{
        samples,
        Client,
        ClientEvent,
        Outcome,
        ResetCause,
        Server,
        ServerEvent,
        PEEK_MAX, //
    },
    reason::Reason,
    time::Ms,
};

/// What the lower layers do at a point, and how long that takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lower {
    /// It works.
    Ok(Ms),
    /// It fails.
    Fail(Ms),
    /// It never ends.
    Hang,
}

/// What a side does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// It is a server, not a client.
    pub(crate) server: bool,
    /// Client: whether it has something to offer, and when. Server: whether it will accept.
    pub(crate) begin: Lower,
    /// Whether it is a first contact (told by the server).
    pub(crate) first: bool,
    /// The second step: client, CONFIRM; server, done.
    pub(crate) middle: Lower,
    /// The client's last step.
    pub(crate) end: Lower,
    /// How late the worker is.
    pub(crate) lag: Ms,
    /// When the application closes the connection, if it does so before anything is decided.
    pub(crate) closes: Option<Ms>,
    /// The application speaks when it can; else it only listens.
    pub(crate) speaks: bool,
}

impl Plan {
    /// A client to whom everything works.
    pub(crate) const CLIENT: Self = Self {
        server: false,
        begin: Lower::Ok(0),
        first: true,
        middle: Lower::Ok(1),
        end: Lower::Ok(1),
        lag: 0,
        closes: None,
        speaks: true,
    };
    /// A server to whom everything works.
    pub(crate) const SERVER: Self = Self {
        server: true,
        ..Self::CLIENT
    };
}

/// The connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Net {
    /// How long a segment travels.
    pub(crate) latency: Ms,
    /// How many bytes a segment has at most.
    pub(crate) segment: usize,
}

/// How a side ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By its own decision.
    Decided(Outcome),
    /// The other side has reset the connection.
    ResetByPeer,
    /// Never.
    Open,
}

/// What both applications say.
const TEXT: &[u8] = b"220 \xe2 hello, this is an application";

/// A machine of either kind.
enum Machine {
    /// A client.
    Client(Client),
    /// A server.
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

/// What can happen.
#[derive(Debug)]
enum Event {
    /// Bytes arrive.
    Data(Vec<u8>),
    /// The other side has got so many bytes in all.
    Ack(usize),
    /// The other side sends no more.
    Fin,
    /// The other side has reset the connection.
    Rst,
    /// The worker runs.
    Run,
    /// The lower layers do their step.
    Step(u8, bool),
    /// The application closes.
    Close,
}

/// One side.
struct Side {
    plan: Plan,
    machine: Machine,
    rx: VecDeque<u8>,
    eof: bool,
    sent: usize,
    acked: usize,
    received: usize,
    end: End,
    dead: bool,
    /// What the application has read.
    app: Vec<u8>,
}

/// Both sides and what is going to happen.
pub(crate) struct Sim {
    now: Ms,
    net: Net,
    sides: [Side; 2],
    events: BTreeMap<(Ms, u64), (usize, Event)>,
    serial: u64,
}

/// Runs a handshake to its end.
pub(crate) fn run(net: Net, plans: [Plan; 2]) -> [End; 2] {
    let mut sim = Sim::new(net, plans);
    sim.run();
    sim.check();
    [sim.sides[0].end, sim.sides[1].end]
}

impl Sim {
    fn new(net: Net, plans: [Plan; 2]) -> Self {
        let side = |plan: Plan| Side {
            plan,
            machine: if plan.server {
                Machine::Server(Server::new(0))
            } else {
                Machine::Client(Client::new(0))
            },
            rx: VecDeque::new(),
            eof: false,
            sent: 0,
            acked: 0,
            received: 0,
            end: End::Open,
            dead: false,
            app: Vec::new(),
        };
        let mut sim = Self {
            now: 0,
            net,
            sides: plans.map(side),
            events: BTreeMap::new(),
            serial: 0,
        };
        for (i, plan) in plans.iter().enumerate() {
            if !plan.server {
                sim.lower(i, 0, plan.begin);
            }
            sim.after(0, i, Event::Run);
            if let Some(at) = plan.closes {
                sim.after(at, i, Event::Close);
            }
        }
        sim
    }

    fn after(&mut self, delay: Ms, side: usize, event: Event) {
        self.serial += 1;
        self.events
            .insert((self.now + delay, self.serial), (side, event));
    }

    fn lower(&mut self, side: usize, step: u8, lower: Lower) {
        match lower {
            Lower::Ok(delay) => self.after(delay, side, Event::Step(step, true)),
            Lower::Fail(delay) => self.after(delay, side, Event::Step(step, false)),
            Lower::Hang => {}
        }
    }

    fn send(&mut self, from: usize, bytes: &[u8]) {
        self.sides[from].sent += bytes.len();
        for part in bytes.chunks(self.net.segment) {
            self.after(self.net.latency, 1 - from, Event::Data(part.to_vec()));
        }
    }

    fn run(&mut self) {
        let mut steps = 0;
        while let Some(((at, _), (i, event))) = self.events.pop_first() {
            steps += 1;
            assert!(steps < 100_000, "no end");
            assert!(at >= self.now);
            self.now = at;
            if self.sides[i].dead {
                continue;
            }
            let lag = self.sides[i].plan.lag;
            match event {
                Event::Data(bytes) => {
                    self.sides[i].received += bytes.len();
                    let received = self.sides[i].received;
                    self.sides[i].rx.extend(bytes);
                    self.after(self.net.latency, 1 - i, Event::Ack(received));
                    self.after(lag, i, Event::Run);
                }
                Event::Ack(n) => {
                    self.sides[i].acked = self.sides[i].acked.max(n);
                    self.after(lag, i, Event::Run);
                }
                Event::Fin => {
                    self.sides[i].eof = true;
                    self.after(lag, i, Event::Run);
                }
                Event::Rst => {
                    self.sides[i].dead = true;
                    if self.sides[i].end == End::Open {
                        self.sides[i].end = End::ResetByPeer;
                    }
                }
                Event::Close => {
                    if self.sides[i].end == End::Open {
                        self.sides[i].dead = true;
                        self.sides[i].end = End::ResetByPeer;
                        self.after(self.net.latency, 1 - i, Event::Fin);
                    }
                }
                Event::Step(step, ok) => self.step(i, step, ok),
                Event::Run => self.work(i),
            }
        }
    }

    /// The lower layers have done a step.
    fn step(&mut self, i: usize, step: u8, ok: bool) {
        let (now, first) = (self.now, self.sides[i].plan.first);
        let reason = Reason::TIMEOUT_CL;
        match (&mut self.sides[i].machine, step, ok) {
            (Machine::Client(c), 0, true) => c.start(Ok(&samples::proposal()), now),
            (Machine::Client(c), 0, false) => c.start(Err(Reason::NOSMCDEV), now),
            (Machine::Client(c), 2, true) => c.contact_done(now),
            (Machine::Client(c), 3 | 4, true) => {
                c.contact_confirm(&samples::accept(step == 3), now);
                self.lower(i, 2, self.sides[i].plan.end);
            }
            (Machine::Client(c), _, _) => c.contact_failed(reason, now),
            (Machine::Server(s), 0, true) => s.contact_accept(&samples::accept(first), now),
            (Machine::Server(s), 1, true) => s.contact_done(now),
            (Machine::Server(s), _, _) => s.contact_failed(reason, now),
        }
        self.work(i);
    }

    /// The worker, as `clc` tells how to drive a machine.
    fn work(&mut self, i: usize) {
        let now = self.now;
        if self.sides[i].end != End::Open {
            return self.application(i);
        }
        loop {
            let side = &mut self.sides[i];
            let peeked: Vec<u8> = side.rx.iter().copied().take(PEEK_MAX).collect();
            let eof = side.eof && peeked.len() == side.rx.len();
            let n = on!(&mut side.machine, m => m.on_input(&peeked, eof, now));
            assert!(n <= peeked.len());
            side.rx.drain(..n);
            if n == 0 {
                break;
            }
        }
        let side = &mut self.sides[i];
        if side.acked == side.sent {
            on!(&mut side.machine, m => m.on_acked(now));
        }
        on!(&mut side.machine, m => m.handle_timeout(now));
        while let Some(msg) = on!(&mut self.sides[i].machine, m => m.poll_transmit()) {
            self.send(i, msg.as_slice());
        }
        self.act(i);
        if self.sides[i].end == End::Open {
            if let Some(at) = on!(&self.sides[i].machine, m => m.poll_timeout()) {
                let delay = at.saturating_sub(now);
                self.after(delay, i, Event::Run);
            }
        }
    }

    /// Acts on the machine's events.
    fn act(&mut self, i: usize) {
        loop {
            let plan = self.sides[i].plan;
            let decided = match &mut self.sides[i].machine {
                Machine::Client(c) => match c.poll() {
                    None => return,
                    Some(ClientEvent::Accept(accept)) => {
                        let step = if accept.first_contact { 3 } else { 4 };
                        self.lower(i, step, plan.middle);
                        continue;
                    }
                    Some(ClientEvent::Decided(outcome)) => outcome,
                },
                Machine::Server(s) => match s.poll() {
                    None => return,
                    Some(ServerEvent::Proposal(proposal)) => {
                        assert_eq!(proposal, samples::proposal());
                        self.lower(i, 0, plan.begin);
                        continue;
                    }
                    Some(ServerEvent::Confirm(_)) => {
                        self.lower(i, 1, plan.middle);
                        continue;
                    }
                    Some(ServerEvent::Decided(outcome)) => outcome,
                },
            };
            assert_eq!(self.sides[i].end, End::Open, "decided twice");
            self.sides[i].end = End::Decided(decided);
            match decided {
                Outcome::Smc => {}
                Outcome::Fallback { .. } if plan.speaks => self.send(i, TEXT),
                Outcome::Fallback { .. } => {}
                Outcome::Reset(_) => {
                    self.sides[i].dead = true;
                    self.after(self.net.latency, 1 - i, Event::Rst);
                }
            }
            self.application(i);
        }
    }

    /// What happens to received bytes after the decision.
    fn application(&mut self, i: usize) {
        let side = &mut self.sides[i];
        match side.end {
            End::Decided(Outcome::Fallback { .. }) => side.app.extend(side.rx.drain(..)),
            // Bytes on the TCP connection of an SMC connection reset it.
            End::Decided(Outcome::Smc) if !side.rx.is_empty() => {
                side.dead = true;
                side.end = End::ResetByPeer;
                self.after(self.net.latency, 1 - i, Event::Rst);
            }
            _ => {}
        }
    }

    /// What must hold at the end, however it went.
    fn check(&self) {
        for (i, side) in self.sides.iter().enumerate() {
            assert!(TEXT.starts_with(&side.app), "side {i} reads {:?}", side.app);
            let other = &self.sides[1 - i];
            if let (End::Decided(Outcome::Smc), End::Decided(Outcome::Fallback { .. })) =
                (side.end, other.end)
            {
                // Only while the other's words are not said.
                assert!(!other.plan.speaks, "half a fallback");
            }
            if matches!(side.end, End::Decided(Outcome::Fallback { .. }))
                && matches!(other.end, End::Decided(Outcome::Fallback { .. }))
                && other.plan.speaks
            {
                assert_eq!(side.app, TEXT, "side {i} lost something");
            }
        }
    }
}

/// Whether a side fell back.
pub(crate) fn fell_back(end: End) -> bool {
    matches!(end, End::Decided(Outcome::Fallback { .. }))
}

/// Whether a side timed out.
pub(crate) fn timed_out(end: End) -> bool {
    end == End::Decided(Outcome::Reset(ResetCause::TimedOut))
}
