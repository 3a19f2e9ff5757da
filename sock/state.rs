// SPDX-License-Identifier: GPL-2.0

//! What hangs in a TCP sock's ULP slot while SMC is possible, active, or winding up.

use super::{
    closing::Closing,
    fallback,
    handshake::Handshake,
    listen::{
        Listener,
        Parent, //
    },
    table, //
};
use crate::{
    cdc::{
        Conn,
        Events,
        Owner, //
    },
    ext::{
        sk::{
            poll,
            Sk, //
        },
        spinlock_bh::{
            new_spinlock_bh,
            SpinLockBh, //
        },
        timer::now_ms,
        ulp::{
            SlotOwner,
            UlpSocket, //
        }, //
    },
    lgr::Wake,
    proto::reason::Reason, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc,
        Mutex, //
    }, //
};

/// A socket's state, as users hold it.
pub(crate) type State = Arc<UlpSocket<SmcSock>>;

/// Where a socket is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Phase {
    /// Nothing under way: TCP answers; connect() and listen() start anew.
    Idle = 0,
    /// connect() was called; TCP or the handshake is under way.
    Connecting = 1,
    /// A listener.
    Listening = 2,
    /// A listener's child in its handshake.
    Child = 3,
    /// It is decided that it is TCP; the next operation on it makes the socket plain.
    FellBack = 4,
    /// An SMC connection.
    Active = 5,
    /// The user closed it; the rest happens without him.
    Closing = 6,
}

impl Phase {
    fn from_u32(n: u32) -> Self {
        match n {
            1 => Self::Connecting,
            2 => Self::Listening,
            3 => Self::Child,
            4 => Self::FellBack,
            5 => Self::Active,
            6 => Self::Closing,
            _ => Self::Idle,
        }
    }

    /// Whether a handshake is under way.
    pub(crate) fn undecided(self) -> bool {
        matches!(self, Self::Connecting | Self::Child)
    }
}

/// The state of one socket.
#[pin_data]
pub(crate) struct SmcSock {
    /// Its key in the table of sockets.
    pub(super) id: u64,
    phase: Atomic<u32>,
    /// Why it fell back; 0: it did not.
    reason: Atomic<u32>,
    /// The peer's reason, from its DECLINE.
    peer_reason: Atomic<u32>,
    /// Whether it ever was a server's child.
    server: Atomic<bool>,
    /// shutdown(SHUT_RD) was called.
    pub(super) rcv_shut: Atomic<bool>,
    /// The connection said CLOSED: nothing more is to be done with the peer.
    pub(super) over: Atomic<bool>,
    /// Goes up at each connect(AF_UNSPEC): sleepers of the old connection leave.
    pub(super) generation: Atomic<u32>,
    /// SO_RCVLOWAT of the user while the handshake has 1; 0: not changed.
    pub(super) rcvlowat: Atomic<i32>,
    /// When the last bytes came in a server's handshake; 0: before it began.
    pub(super) heard: Atomic<u64>,
    /// The handshake; a step never sleeps on the peer.
    #[pin]
    pub(super) hs: Mutex<Handshake>,
    /// The connection, from the decision to the end of closing.
    #[pin]
    conn: SpinLockBh<Option<Arc<Conn>>>,
    /// The listener's side of it.
    #[pin]
    pub(super) listener: Listener,
    /// The listener whose child it is, until it is accepted.
    #[pin]
    pub(super) parent: SpinLockBh<Option<Parent>>,
    /// What is left after close().
    #[pin]
    pub(super) closing: Mutex<Option<Closing>>,
}

impl SmcSock {
    /// The phase; pairs with [`SmcSock::set_phase`].
    pub(crate) fn phase(&self) -> Phase {
        Phase::from_u32(self.phase.load(Acquire))
    }

    /// Publishes a phase and all that was written before.
    pub(super) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u32, Release);
    }

    /// The connection, if there is one; any context.
    pub(crate) fn conn(&self) -> Option<Arc<Conn>> {
        self.conn.lock().clone()
    }

    /// Sets the connection; what was there is returned, to be dropped without a lock.
    pub(super) fn set_conn(&self, conn: Option<Arc<Conn>>) -> Option<Arc<Conn>> {
        core::mem::replace(&mut *self.conn.lock(), conn)
    }

    /// Why it fell back, and the peer's reason.
    pub(crate) fn reasons(&self) -> (Reason, Reason) {
        (
            Reason(self.reason.load(Relaxed)),
            Reason(self.peer_reason.load(Relaxed)),
        )
    }

    /// Notes why it falls back.
    pub(super) fn set_reasons(&self, reason: Reason, peer: Reason) {
        self.reason.store(reason.0, Relaxed);
        self.peer_reason.store(peer.0, Relaxed);
    }

    /// Whether it is a server's end.
    pub(crate) fn is_server(&self) -> bool {
        self.server.load(Relaxed)
    }

    /// Makes it a server's end.
    pub(super) fn set_server(&self) {
        self.server.store(true, Relaxed);
    }
}

impl SlotOwner for SmcSock {
    fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            id: table::next_id(),
            phase: Atomic::new(Phase::Idle as u32),
            reason: Atomic::new(0),
            peer_reason: Atomic::new(0),
            server: Atomic::new(false),
            rcv_shut: Atomic::new(false),
            over: Atomic::new(false),
            generation: Atomic::new(0),
            rcvlowat: Atomic::new(0),
            heard: Atomic::new(0),
            hs <- new_mutex!(Handshake::None, "smc_rs_hs"),
            conn <- new_spinlock_bh!(None, "smc_rs_sock_conn"),
            listener <- Listener::new(),
            parent <- new_spinlock_bh!(None, "smc_rs_sock_parent"),
            closing <- new_mutex!(None, "smc_rs_closing"),
        })
    }

    fn state_change(this: &State) {
        match this.phase() {
            Phase::Idle | Phase::FellBack => this.original_state_change(),
            _ => UlpSocket::kick(this),
        }
    }

    fn data_ready(this: &State) {
        match this.phase() {
            Phase::Idle | Phase::FellBack => this.original_data_ready(),
            // A FIN, or bytes that nobody may send: TCP is only watched for its end.
            Phase::Active | Phase::Closing => {}
            Phase::Child => {
                this.heard.store(now_ms(), Relaxed);
                UlpSocket::kick(this);
            }
            _ => UlpSocket::kick(this),
        }
    }

    fn write_space(this: &State) {
        match this.phase() {
            Phase::Idle | Phase::FellBack => this.original_write_space(),
            _ => {}
        }
    }

    fn error_report(this: &State) {
        match this.phase() {
            Phase::Idle | Phase::FellBack => this.original_error_report(),
            _ => UlpSocket::kick(this),
        }
    }

    fn released(this: &State) {
        table::remove(this.id);
    }

    fn congested(this: &State) -> bool {
        this.listener.congested()
    }

    fn work(this: &State) {
        match this.phase() {
            Phase::Connecting => super::handshake::client_work(this),
            Phase::Child => super::handshake::server_work(this),
            Phase::Listening => super::listen::work(this),
            Phase::Active => super::closing::watch_tcp(this),
            Phase::Closing => super::closing::work(this),
            Phase::Idle | Phase::FellBack => {}
        }
    }
}

/// How lower layers reach the socket: they hold it, and it holds them, until the handshake or the
/// connection is over.
pub(super) struct Handle(pub(super) State);

impl Wake for Handle {
    fn wake(&self) {
        UlpSocket::kick(&self.0);
    }
}

impl Owner for Handle {
    fn on_event(&self, events: Events) {
        let sk: &Sk = self.0.sk();
        if events.has(Events::CLOSED) {
            self.0.over.store(true, Relaxed);
        }
        if self.0.phase() == Phase::Closing {
            // A lingering close() sleeps on the same queue.
            sk.wake(poll::OUT | poll::WRNORM);
            return UlpSocket::kick(&self.0);
        }
        if events.has(Events::ERROR) {
            fallback::publish_error(&self.0);
        }
        let mut key = 0;
        if events.has(Events::READABLE) {
            key |= poll::IN | poll::RDNORM;
        }
        if events.has(Events::RCV_CLOSED) {
            key |= poll::IN | poll::RDNORM | poll::RDHUP;
        }
        if key != 0 {
            sk.wake(key);
        }
        if events.has(Events::URGENT) {
            sk.signal_urgent();
        }
        if events.has(Events::WRITABLE) {
            sk.wake(poll::OUT | poll::WRNORM);
        }
        if events.has(Events::ERROR) {
            sk.wake(poll::ERR | poll::HUP | poll::IN | poll::OUT);
        }
    }
}
