// SPDX-License-Identifier: GPL-2.0
//! What a case is: how the peer opens the connection, what it does, and how that must end for
//! the application on the host under test.

use super::message::raw;
use super::message::Msg;
use super::tcp::Open;
use super::tcp::SMC;
use crate::proto::reason::Reason;
use crate::proto::wire::clc::Kind;

/// One thing that the peer does.
pub enum Step {
    /// Says a message, and after it, in the same segments, bytes for the application.
    Say {
        msg: Msg,
        plain: &'static [u8],
        /// Longest segment.
        mss: usize,
        /// Which byte is urgent, from 1 on.
        urgent: Option<u16>,
    },
    /// The host says a whole message of this type, and has said nothing else so far.
    Hear(Kind),
    /// The host may have said a message of this type before what it says next.
    MayHear(Kind),
    /// The host says DECLINE with this reason.
    Declined(Reason),
    /// The host resets the connection and has said nothing else.
    Reset,
    /// For so many milliseconds the host says nothing and does not reset.
    Quiet(u64),
    /// For so many milliseconds whatever comes is taken.
    Wait(u64),
    /// The host has reset the connection already.
    HasReset,
    /// Waits until the host's TCP has acknowledged everything.
    Acked,
    /// The application closes its socket (its listener, where the peer is the client).
    Leave,
    /// FIN.
    Fin,
    /// RST.
    Rst,
    /// Tells this receive window.
    Window(u16),
    /// Acknowledges what comes, or doesn't.
    Acks(bool),
}

/// How a connection goes on for the application that has read everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is open; both sides send and receive.
    Open,
    /// End of file; the other direction is open.
    Eof,
    /// recv() fails.
    Error(i32),
}

/// What the application must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// TCP that never was anything else: neither a handshake nor a fallback is counted.
    Tcp(End),
    /// A connection that fell back, for this reason and that one of the peer's.
    Fallback(Reason, Reason, End),
    /// connect() fails.
    Connect(i32),
    /// accept() never gives the connection.
    Dropped,
    /// The application leaves in the middle of the handshake.
    Left,
}

/// One case.
pub struct Case {
    pub name: &'static str,
    pub open: Open,
    pub steps: Vec<Step>,
    pub expect: Expect,
    /// The application's connect() is non-blocking, where it must fail (where it must not, it
    /// is always).
    pub nonblocking: bool,
    /// The host has no RDMA device.
    pub bare: bool,
    /// Receive window at the begin.
    pub window: u16,
    /// What another connection of the same peer does before; then it stalls.
    pub twin: Vec<Step>,
    /// Its times are too exact to run beside others.
    pub alone: bool,
}

impl Case {
    fn new(name: &'static str, open: Open, steps: Vec<Step>, expect: Expect) -> Self {
        Self {
            name,
            open,
            steps,
            expect,
            nonblocking: false,
            bare: false,
            window: 65_535,
            twin: Vec::new(),
            alone: false,
        }
    }

    /// The peer's SYN or SYN-ACK has these options.
    pub fn options(mut self, options: &'static [u8]) -> Self {
        self.open = match self.open {
            Open::Client(_) => Open::Client(options),
            Open::Server(_) => Open::Server(options),
            Open::Crossed(_) => Open::Crossed(options),
        };
        self
    }

    /// Non-blocking connect().
    pub fn nonblocking(mut self) -> Self {
        self.nonblocking = true;
        self
    }

    /// The host has no RDMA device.
    pub fn bare(mut self) -> Self {
        self.bare = true;
        self
    }

    /// The peer's receive window at the begin.
    pub fn window(mut self, window: u16) -> Self {
        self.window = window;
        self
    }

    /// Beside a connection that does this and then stalls.
    pub fn beside(mut self, steps: Vec<Step>) -> Self {
        self.twin = steps;
        self
    }

    /// Runs when all others are over.
    pub fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// The peer's role: `client`, `server`, or `server_crossed` if it is a client, too.
    pub fn role(&self) -> &'static str {
        match self.open {
            Open::Client(_) => "client",
            Open::Server(_) => "server",
            Open::Crossed(_) => "server_crossed",
        }
    }

    /// Whether it takes seconds by design.
    pub fn slow(&self) -> bool {
        let waits = |s: &Step| match s {
            Step::Quiet(ms) => *ms > 400,
            Step::Declined(reason) => *reason == Reason::TIMEOUT_CL,
            _ => false,
        };
        self.steps.iter().any(waits)
            || !self.twin.is_empty()
            || self.expect == Expect::Connect(libc::ETIMEDOUT)
    }

    /// What the application must receive.
    pub fn plain(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for step in &self.steps {
            if let Step::Say { plain, .. } = step {
                bytes.extend_from_slice(plain);
            }
        }
        bytes
    }
}

/// The peer is the client.
pub fn client(name: &'static str, steps: Vec<Step>, expect: Expect) -> Case {
    Case::new(name, Open::Client(SMC), steps, expect)
}

/// The peer is the server.
pub fn server(name: &'static str, steps: Vec<Step>, expect: Expect) -> Case {
    Case::new(name, Open::Server(SMC), steps, expect)
}

/// Both are clients.
pub fn crossed(name: &'static str, steps: Vec<Step>, expect: Expect) -> Case {
    Case::new(name, Open::Crossed(SMC), steps, expect)
}

/// Says a message in one segment.
pub fn say(msg: Msg) -> Step {
    say_with(msg, b"")
}

/// Says a message and the application's bytes in one segment.
pub fn say_with(msg: Msg, plain: &'static [u8]) -> Step {
    Step::Say {
        msg,
        plain,
        mss: usize::MAX,
        urgent: None,
    }
}

/// Says a message in segments of so many bytes.
pub fn bits(msg: Msg, mss: usize) -> Step {
    Step::Say {
        msg,
        plain: b"",
        mss,
        urgent: None,
    }
}

/// Says a message whose n-th byte is urgent, and the application's bytes.
pub fn urgent(msg: Msg, n: u16, plain: &'static [u8]) -> Step {
    Step::Say {
        msg,
        plain,
        mss: usize::MAX,
        urgent: Some(n),
    }
}

/// Says bytes for the application.
pub fn plain(plain: &'static [u8]) -> Step {
    say_with(raw(b""), plain)
}

/// It falls back for this reason and goes on.
pub fn falls(reason: Reason) -> Expect {
    Expect::Fallback(reason, Reason::NONE, End::Open)
}

/// It falls back since the peer declined for this reason, and goes on.
pub fn peer_declined(reason: Reason) -> Expect {
    Expect::Fallback(Reason::PEERDECL, reason, End::Open)
}
