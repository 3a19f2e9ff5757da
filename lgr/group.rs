// SPDX-License-Identifier: GPL-2.0

//! A link group: one link to one peer, shared by its connections.
//!
//! A group is *forming* during its first contact, *live* when its link is confirmed, *dying* when
//! something ended it (users are told, the link is being shut down), and *dead* afterwards. Only a
//! live group takes further connections. Users count by [`Seat`]s.

use super::{
    control::Control,
    offer::Settings,
    queue::WaitQueue,
    registry::{
        self,
        Counted, //
    },
    tokens::Tokens,
    upper::Upper, //
};
use crate::{
    ext::{
        net::NetId,
        spinlock_bh::{
            new_spinlock_bh,
            SpinLockBh, //
        },
        timer,
        workqueue, //
    },
    ib::{
        Link,
        Path, //
    },
    proto::{
        llc::Role,
        reason::Reason, //
    },
    rmb::Pool, //
};
use core::net::IpAddr;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    workqueue::{
        impl_has_delayed_work,
        impl_has_work,
        new_delayed_work,
        new_work,
        DelayedWork,
        Work,
        WorkItem, //
    }, //
};

/// How long a server's group is kept without connections.
const IDLE_SERVER_MS: u64 = 600_000;
/// How long a client's group is kept without connections: longer, so that the server decides.
const IDLE_CLIENT_MS: u64 = 610_000;
/// Time for the last LLC message to leave before the queue pair goes to the error state.
const FAREWELL_MS: u64 = 100;
/// How often connections are looked at that wait for their peer to finish.
const EXPIRE_MS: u64 = 5_000;

/// What a connection must agree in to share a group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    /// The peer's system id.
    pub(crate) peer_id: [u8; 8],
    /// Our side: groups of clients and of servers are separate.
    pub(crate) role: Role,
    /// The VLAN; `None` without.
    pub(crate) vlan: Option<u16>,
    /// The local port's GID.
    pub(crate) local_gid: [u8; 16],
    /// The peer's GID.
    pub(crate) peer_gid: [u8; 16],
    /// The network namespace. No reference: the namespace ends the group.
    pub(crate) net: NetId,
    /// The TCP peer's address. Ids and GIDs are what the peer says of itself; with this nobody
    /// gets into, or has others wait for, the group of another host.
    pub(crate) peer_ip: IpAddr,
}

/// Where a group is in its life.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// First contact.
    Forming,
    /// The link is confirmed.
    Live,
    /// Being taken down.
    Dying,
    /// The link is shut down.
    Dead,
}

/// Why a group ends; decides what the peer is told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Nobody used it for long, or the program ends it.
    Unused,
    /// First contact didn't succeed.
    Contact,
    /// The link is broken: nothing can be sent.
    LinkDown,
    /// The peer broke the protocol.
    Violation,
    /// The peer ended it.
    Peer,
    /// The namespace or the module goes away.
    Going,
}

/// The changing part.
pub(super) struct State {
    /// Where the group is in its life.
    phase: Phase,
    /// Why it ends.
    end: Option<End>,
    /// Seats given out.
    seats: u32,
    /// When the idle time is over; meaningful without seats.
    idle_at: u64,
    /// When the link is to be shut down; meaningful while dying.
    farewell_at: u64,
    /// When to look at connections that wait for a peer that should finish them.
    look_at: Option<u64>,
    /// The link; `None` before it is made and after it is shut down.
    link: Option<Arc<Link>>,
    /// The peer's queue pair.
    peer_qpn: u32,
}

/// A link group.
#[pin_data]
pub(crate) struct Group {
    /// Its number, for display and link ids.
    pub(crate) id: u32,
    /// What users must agree in.
    pub(crate) key: Key,
    /// How many connections it takes.
    pub(crate) max_conns: u8,
    /// The changing part.
    #[pin]
    state: SpinLockBh<State>,
    /// The LLC side.
    #[pin]
    pub(super) control: Control,
    /// Token to connection.
    #[pin]
    pub(crate) tokens: Tokens,
    /// Connections that wait for a slot.
    #[pin]
    pub(crate) waiting: WaitQueue,
    /// Ring memory.
    #[pin]
    pub(crate) pool: Pool,
    /// Whether the peer was heard of since the timer looked last.
    pub(super) heard: Atomic<bool>,
    /// LLC timers, idle time, farewell.
    #[pin]
    timer: DelayedWork<Group, 0>,
    /// Takes the group down.
    #[pin]
    reaper: Work<Group, 1>,
    /// Counts the group as existing; the last field to be dropped.
    _counted: Counted,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, 0> for Group { self.timer }
}
impl_has_work! {
    impl HasWork<Self, 1> for Group { self.reaper }
}

/// One connection's place in a group. The first seat comes with the group.
pub(crate) struct Seat(Arc<Group>);

impl core::ops::Deref for Seat {
    type Target = Arc<Group>;

    fn deref(&self) -> &Arc<Group> {
        &self.0
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Group {
    /// A forming group with one seat taken, in the list of groups. May sleep.
    pub(crate) fn form(key: Key, max_conns: u8) -> Result<Seat> {
        let id = registry::next_id();
        let group = Arc::pin_init(
            try_pin_init!(Self {
                id,
                key,
                max_conns,
                state <- new_spinlock_bh!(State {
                    phase: Phase::Forming,
                    end: None,
                    seats: 1,
                    idle_at: 0,
                    farewell_at: 0,
                    look_at: None,
                    link: None,
                    peer_qpn: 0,
                }, "smc_rs_group"),
                control <- Control::new(),
                tokens <- Tokens::new(),
                waiting <- WaitQueue::new(),
                pool <- Pool::new(),
                heard: Atomic::new(false),
                timer <- new_delayed_work!("smc_rs_group_timer"),
                reaper <- new_work!("smc_rs_group_reaper"),
                _counted: Counted::new(),
            }),
            GFP_KERNEL,
        )?;
        let seat = Seat(group);
        registry::add(seat.0.clone())?;
        Ok(seat)
    }

    /// Makes the link of the forming group, not connected yet. May sleep.
    pub(crate) fn make_link(
        self: &Arc<Self>,
        path: &Path,
        settings: &Settings,
    ) -> Result<Arc<Link>, Reason> {
        let upper = Upper::new(self.clone()).map_err(|_| Reason::MEM)?;
        let link = Link::new(path, upper).map_err(|_| Reason::ERR_RDYLNK)?;
        self.start_llc(&link, settings.test_link_ms);
        let kept = {
            let mut state = self.state.lock();
            let keep = state.phase == Phase::Forming;
            if keep {
                state.link = Some(link.clone());
            }
            keep
        };
        if kept {
            Ok(link)
        } else {
            link.shut_down();
            Err(Reason::NOACTLINK)
        }
    }

    /// The link, while there is one.
    pub(crate) fn link(&self) -> Option<Arc<Link>> {
        self.state.lock().link.clone()
    }

    /// The peer's queue pair is known: groups that lead to an earlier one of that number end. May
    /// sleep.
    pub(crate) fn set_peer_qpn(&self, qpn: u32) {
        registry::end_rivals(self, qpn);
        self.state.lock().peer_qpn = qpn;
    }

    /// The peer's queue pair; 0 as long as it isn't known.
    pub(super) fn peer_qpn(&self) -> u32 {
        self.state.lock().peer_qpn
    }

    /// Where the group is in its life.
    pub(crate) fn phase(&self) -> Phase {
        self.state.lock().phase
    }

    /// The first contact succeeded; false if the group ended meanwhile.
    pub(crate) fn go_live(&self) -> bool {
        let mut state = self.state.lock();
        if state.phase == Phase::Forming {
            state.phase = Phase::Live;
        }
        state.phase == Phase::Live
    }

    /// A seat for one more connection, if the group is live and has one.
    pub(super) fn sit(this: &Arc<Self>) -> Option<Seat> {
        let mut state = this.state.lock();
        if state.phase != Phase::Live || state.seats >= u32::from(this.max_conns) {
            return None;
        }
        state.seats += 1;
        Some(Seat(this.clone()))
    }

    /// Whether it is worth while for a further connection to wait for this first contact.
    pub(super) fn forming(this: &Arc<Self>) -> bool {
        this.state.lock().phase == Phase::Forming
    }

    /// Gives a seat back; the last one starts the idle time, or ends a group that never got live.
    fn leave(self: &Arc<Self>) {
        let forming = {
            let mut state = self.state.lock();
            state.seats -= 1;
            if state.seats > 0 {
                return;
            }
            let keep = match self.key.role {
                Role::Server => IDLE_SERVER_MS,
                Role::Client => IDLE_CLIENT_MS,
            };
            state.idle_at = timer::now_ms() + keep;
            state.phase == Phase::Forming
        };
        if forming {
            self.end(End::Contact);
        } else {
            self.arm();
        }
    }

    /// Whether we are the server.
    pub(crate) fn is_server(&self) -> bool {
        self.key.role == Role::Server
    }

    /// Seats taken, for display.
    pub(super) fn seats(&self) -> u32 {
        self.state.lock().seats
    }

    /// Connections wait for their peer to finish: look at them from time to time.
    pub(crate) fn lingers(self: &Arc<Self>) {
        self.look_later();
        self.arm();
    }

    /// Sets the time of the next look at lingering connections, unless it is set.
    fn look_later(&self) {
        let at = timer::now_ms() + EXPIRE_MS;
        self.state.lock().look_at.get_or_insert(at);
    }

    /// Moves the timer to the next thing to do. Any context.
    pub(super) fn arm(self: &Arc<Self>) {
        let now = timer::now_ms();
        // All under the lock: no timer is set after the group is dead, and of two threads the one
        // that saw less doesn't have the last word.
        let state = self.state.lock();
        let llc = self.control.timeout();
        let at = match state.phase {
            Phase::Dead => return,
            Phase::Dying => Some(state.farewell_at),
            Phase::Forming | Phase::Live => {
                let idle = (state.seats == 0).then_some(state.idle_at);
                [llc, idle, state.look_at].into_iter().flatten().min()
            }
        };
        if let Some(at) = at {
            self.set_timer(at.saturating_sub(now));
        }
    }

    /// Makes the timer fire in `ms`.
    fn set_timer(self: &Arc<Self>, ms: u64) {
        let ms = u32::try_from(ms).unwrap_or(u32::MAX);
        // An item that waits already keeps its own reference; ours is dropped.
        let _ = timer::mod_delayed::<_, 0>(workqueue::queue(), self.clone(), ms);
    }

    /// The link broke. Any context.
    pub(crate) fn link_broken(self: &Arc<Self>) {
        self.end(End::LinkDown);
    }

    /// Ends the group: it leaves the list, users are told, the link is shut down. The first reason
    /// stays. Any context; the work is done by a worker.
    pub(crate) fn end(self: &Arc<Self>, why: End) {
        {
            let mut state = self.state.lock();
            if matches!(state.phase, Phase::Dying | Phase::Dead) {
                return;
            }
            state.phase = Phase::Dying;
            state.end = Some(why);
            state.farewell_at = u64::MAX;
        }
        let _ = workqueue::queue().enqueue::<_, 1>(self.clone());
    }

    /// Whether the group is ending or has ended.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase(), Phase::Dying | Phase::Dead)
    }

    /// A first contact failed on our side: nobody needs the group.
    pub(crate) fn contact_failed(self: &Arc<Self>) {
        if self.phase() == Phase::Forming {
            self.end(End::Contact);
        }
    }

    /// The peer says that it doesn't have this group (any more).
    pub(crate) fn out_of_sync(self: &Arc<Self>) {
        self.end(End::Peer);
    }

    /// The reason of the end as far as waiting handshakes care.
    pub(super) fn reason(&self) -> Reason {
        match self.state.lock().end {
            Some(End::Contact | End::LinkDown) => Reason::TIMEOUT_CL,
            _ => Reason::NOACTLINK,
        }
    }

    /// Logs an end that an administrator should know of, at most one a second.
    fn report(&self) {
        static LAST: Atomic<u64> = Atomic::new(0);
        let text = match self.state.lock().end {
            Some(End::LinkDown) => "link down",
            Some(End::Violation) => "the peer broke the protocol",
            _ => return,
        };
        let (now, last) = (timer::now_ms(), LAST.load(Relaxed));
        if now.saturating_sub(last) >= 1_000 && LAST.cmpxchg(last, now, Relaxed).is_ok() {
            pr_warn!("link group {:08x} ends: {}\n", self.id, text);
        }
    }

    /// First half of the end: tell everybody, say goodbye to the peer.
    fn take_down(self: &Arc<Self>) {
        self.report();
        registry::remove(self);
        self.control.fail_waiters(self.reason());
        self.tokens.for_each(|port| port.on_group_down());
        let (end, link) = {
            let state = self.state.lock();
            (state.end, state.link.clone())
        };
        let told = match (end, link) {
            (Some(end), Some(_)) if end != End::LinkDown => self.say_goodbye(end),
            _ => false,
        };
        let mut state = self.state.lock();
        state.farewell_at = timer::now_ms() + if told { FAREWELL_MS } else { 0 };
        drop(state);
        self.arm();
    }

    /// Second half of the end: shut the link down and give everything back. May sleep.
    fn finish(self: &Arc<Self>) {
        let link = {
            let mut state = self.state.lock();
            if state.phase != Phase::Dying {
                return;
            }
            state.phase = Phase::Dead;
            state.link.take()
        };
        if let Some(link) = link {
            link.shut_down();
        }
        self.waiting.clear();
        self.control.fail_waiters(self.reason());
        self.tokens.for_each(|port| port.on_link_gone());
        self.pool.close();
    }

    /// Lets lingering connections see the time. May sleep.
    fn expire(&self, now: u64) {
        {
            let mut state = self.state.lock();
            if state.look_at.is_none_or(|at| at > now) {
                return;
            }
            state.look_at = None;
        }
        let mut more = false;
        self.tokens.for_each(|port| more |= port.expire(now));
        if more {
            self.look_later();
        }
    }

    /// The timer's work.
    fn tick(self: &Arc<Self>) {
        let now = timer::now_ms();
        let (phase, farewell_at, idle) = {
            let state = self.state.lock();
            let idle = state.seats == 0 && state.idle_at <= now;
            (state.phase, state.farewell_at, idle)
        };
        match phase {
            Phase::Dead => return,
            Phase::Dying if farewell_at <= now => return self.finish(),
            Phase::Dying => {}
            Phase::Live if idle => self.end_if_idle(now),
            Phase::Forming | Phase::Live => {
                self.expire(now);
                self.on_llc_timeout(now);
            }
        }
        self.arm();
    }

    /// Ends the group unless somebody sat down meanwhile.
    fn end_if_idle(self: &Arc<Self>, now: u64) {
        {
            let mut state = self.state.lock();
            if state.phase != Phase::Live || state.seats > 0 || state.idle_at > now {
                return;
            }
            state.phase = Phase::Dying;
            state.end = Some(End::Unused);
            state.farewell_at = u64::MAX;
        }
        let _ = workqueue::queue().enqueue::<_, 1>(self.clone());
    }
}

impl WorkItem<0> for Group {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.tick();
    }
}

impl WorkItem<1> for Group {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.take_down();
    }
}
