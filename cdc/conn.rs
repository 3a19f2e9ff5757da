// SPDX-License-Identifier: GPL-2.0

//! The connection: life, closing, telling the user.

use super::{
    events::{
        Events,
        Owner, //
    }, //
    state::{
        Core,
        PeerRmb,
        Rings, //
        RmbEnd,
    },
};
use crate::{
    ext::{
        mutex::{
            new_intr_mutex,
            IntrMutex, //
        },
        spinlock_bh::{
            new_spinlock_bh,
            SpinLockBh, //
        },
        timer,
        workqueue, //
    },
    ib::Link,
    lgr::{
        Phase,
        Seat, //
    },
    proto::{
        conn::{
            ConnConfig,
            Connection, //
        },
        ring::RingSize, //
    },
    rmb::Ring, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc, //
    },
    workqueue::{
        impl_has_work,
        new_work,
        Work,
        WorkItem, //
    }, //
};

/// Half of SOCK_MIN_SNDBUF: fewer read bytes are not worth a message of their own.
const ACK_FLOOR: u32 = 2304;

/// Like upstream's default of the autocorking sysctl.
const AUTOCORK: u32 = 65_536;

/// A connection over a link. The user must end with [`Conn::close`] or [`Conn::abort`], also after
/// an error: until then the rings are kept for him.
///
/// Locks: `tx` and `rx` before `core`; `core` and `owner` never together, and nothing is called
/// under either.
#[pin_data]
pub(crate) struct Conn {
    /// Our name for the connection.
    pub(super) token: u32,
    /// The place in the link group.
    pub(super) seat: Seat,
    /// The link.
    pub(super) link: Arc<Link>,
    /// One sender at a time, and the ring that he fills.
    #[pin]
    pub(super) tx: IntrMutex<Option<Arc<Ring>>>,
    /// One receiver at a time, and the ring that he empties.
    #[pin]
    pub(super) rx: IntrMutex<Option<Arc<Ring>>>,
    /// Arithmetic and flags.
    #[pin]
    pub(super) core: SpinLockBh<Core>,
    /// The user.
    #[pin]
    owner: SpinLockBh<Option<Arc<dyn Owner>>>,
    /// Bytes few enough to wait for a completion.
    pub(super) autocork: Atomic<u32>,
    /// Whether it is in the queue for slots.
    pub(super) queued: Atomic<bool>,
    /// Winds the connection up.
    #[pin]
    work: Work<Conn>,
}

impl_has_work! {
    impl HasWork<Self> for Conn { self.work }
}

impl Conn {
    /// A connection without peer and rings, entered in the token table of its group. Not being
    /// used by anybody it counts as left by its user until [`Conn::start`]. May sleep.
    pub(super) fn new(seat: Seat, link: Arc<Link>) -> Result<Arc<Self>> {
        let group = Arc::clone(&seat);
        group.tokens.insert(|token| {
            Arc::pin_init(
                pin_init!(Self {
                    token,
                    seat,
                    link,
                    tx <- new_intr_mutex!(None, "smc_rs_conn_tx"),
                    rx <- new_intr_mutex!(None, "smc_rs_conn_rx"),
                    core <- new_spinlock_bh!(Core::new(), "smc_rs_conn_core"),
                    owner <- new_spinlock_bh!(None, "smc_rs_conn_owner"),
                    autocork: Atomic::new(AUTOCORK),
                    queued: Atomic::new(false),
                    work <- new_work!("smc_rs_conn_work"),
                }),
                GFP_KERNEL,
            )
        })
    }

    /// Our name for the connection.
    pub(crate) fn token(&self) -> u32 {
        self.token
    }

    /// Gives it its rings. May sleep.
    pub(super) fn set_rings(&self, rings: Rings) {
        *self.tx.lock_always() = Some(rings.snd.clone());
        *self.rx.lock_always() = Some(rings.rmb.clone());
        self.core.lock().rings = Some(rings);
    }

    /// The peer's half is known: from now on data may flow. Messages that came early count.
    pub(super) fn start(self: &Arc<Self>, peer: PeerRmb) -> Result {
        let (events, push) = {
            let mut core = self.core.lock();
            let rings = core.rings.as_ref().ok_or(ENOTCONN)?;
            let config = ConnConfig {
                sndbuf: RingSize::new(rings.snd.size()).ok_or(EINVAL)?,
                rmb: RingSize::new(rings.rmb.size()).ok_or(EINVAL)?,
                peer_rmb: RingSize::new(peer.size).ok_or(EINVAL)?,
                peer_token: peer.token,
                ack_floor: ACK_FLOOR,
            };
            core.start(Connection::new(config), peer)
        };
        self.tell(events);
        if push {
            self.push();
        }
        // The group may have gone down before there was a machine to hear it.
        match self.seat.phase() {
            Phase::Dead => self.cut(ECONNABORTED, true),
            Phase::Dying => self.cut(ECONNABORTED, false),
            Phase::Forming | Phase::Live => {}
        }
        Ok(())
    }

    /// Names the user, who hears at once of what is there already.
    pub(crate) fn set_owner(&self, owner: Arc<dyn Owner>) {
        let old = self.owner.lock().replace(owner);
        drop(old);
        let status = self.status();
        let gone = status.error.is_some() || status.peer_aborted;
        self.tell(
            Events::READABLE.when(status.readable > 0)
                | Events::WRITABLE.when(status.tx_space > 0)
                | Events::RCV_CLOSED.when(status.peer_done)
                | Events::ERROR.when(gone),
        );
    }

    /// Tells the user, if there is one and something to tell.
    pub(super) fn tell(&self, events: Events) {
        if events.is_empty() {
            return;
        }
        let owner = self.owner.lock().clone();
        if let Some(owner) = owner {
            owner.on_event(events);
        }
    }

    /// The user will write no more; the peer hears of it after all data. Never sleeps.
    pub(crate) fn shutdown_write(self: &Arc<Self>) {
        self.with_machine(Connection::shutdown_write);
        self.push();
    }

    /// The user is done: data is still sent, then the peer is told. DRAINED and CLOSED will come.
    /// Never sleeps.
    pub(crate) fn close(self: &Arc<Self>) {
        let broken = self.core.lock().error.is_some();
        if broken {
            return self.abort();
        }
        self.leave(Connection::close, None);
    }

    /// The user gives up: what isn't sent is lost, the peer is told. CLOSED comes soon; what
    /// remains to be done with the peer is no business of the user. Never sleeps.
    pub(crate) fn abort(self: &Arc<Self>) {
        self.leave(Connection::abort, Some(timer::now_ms()));
        self.say_closed();
        if !self.core.lock().released {
            self.seat.lingers();
        }
    }

    /// Cuts the connection off with an error, without leaving it: what arrived can still be read.
    /// Never sleeps.
    pub(crate) fn terminate(self: &Arc<Self>, error: Error) {
        let gone = {
            let mut core = self.core.lock();
            core.error = core.error.or(Some(error));
            core.user_gone
        };
        self.tell(Events::READABLE | Events::WRITABLE | Events::ERROR);
        if gone {
            self.abort();
        }
    }

    /// The group goes down: nothing can be sent any more; `link_gone`: nothing arrives either.
    pub(super) fn cut(self: &Arc<Self>, error: Error, link_gone: bool) {
        let (news, release, gone) = {
            let mut core = self.core.lock();
            let news = core.error.is_none();
            core.error = core.error.or(Some(error));
            core.link_gone |= link_gone;
            if let Some(conn) = core.conn.as_mut() {
                conn.kill();
            }
            (news, core.take_release(), core.user_gone)
        };
        if news {
            let all = Events::READABLE | Events::WRITABLE | Events::ERROR;
            self.tell(all | Events::RCV_CLOSED | Events::DRAINED.when(gone));
        }
        if gone {
            self.say_closed();
        }
        if release {
            self.release_soon();
        }
    }

    /// Runs something on the machine, if there is one.
    fn with_machine(&self, f: impl FnOnce(&mut Connection)) {
        if let Some(conn) = self.core.lock().conn.as_mut() {
            f(conn);
        }
    }

    /// The user leaves by way of `f`.
    fn leave(self: &Arc<Self>, f: impl FnOnce(&mut Connection), gone_at: Option<u64>) {
        self.with_machine(f);
        let (events, release) = {
            let mut core = self.core.lock();
            core.user_gone = true;
            core.gone_at = core.gone_at.or(gone_at);
            (
                Events::DRAINED.when(core.take_drained()),
                core.take_release(),
            )
        };
        self.tell(events);
        self.push();
        // All completions are needed from now on.
        self.link.want_sent();
        if release {
            self.release_soon();
        }
    }

    /// Tells the user that it is over, and forgets him.
    fn say_closed(&self) {
        let owner = self.owner.lock().take();
        if let Some(owner) = owner {
            owner.on_event(Events::CLOSED);
        }
    }

    /// Winds the connection up from a worker. Any context; called once.
    pub(super) fn release_soon(self: &Arc<Self>) {
        let _ = workqueue::queue().enqueue(self.clone());
    }

    /// Winds the connection up: it leaves the table, and the rings go back. May sleep.
    pub(super) fn release(self: &Arc<Self>) {
        self.seat.tokens.remove(self.token);
        // Whoever copied is done: that was a condition of the release.
        drop(self.tx.lock_always().take());
        drop(self.rx.lock_always().take());
        let rings = self.core.lock().take_rings();
        if let Some((Rings { snd, rmb }, end)) = rings {
            self.seat.put_snd(snd);
            match end {
                RmbEnd::Reuse(touched) => self.seat.put_rmb(rmb, touched),
                RmbEnd::Retire => self.seat.retire_rmb(rmb),
            }
        }
        self.say_closed();
    }
}

impl WorkItem for Conn {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.release();
    }
}
