// SPDX-License-Identifier: GPL-2.0

//! Listeners: children are pulled from TCP's queue, answered by events, and handed to accept()
//! when it is decided what they are.
//!
//! A child without the option is ready at once; one with it is ready when its handshake is decided.
//! Nobody waits for another's handshake. Until accept() a child hangs on a private socket.

use super::{
    fallback,
    handshake::Handshake,
    state::{
        Phase,
        SmcSock,
        State, //
    },
    table, //
};
use crate::ext::{
    accept::tcp_accept,
    module::ModuleRef,
    proto_ops::{
        self,
        Answer, //
    },
    sk::{
        PrivateSocket,
        Sk,
        Socket,
        TcpState, //
    },
    ulp::{
        self,
        UlpSocket, //
    }, //
};
use kernel::{
    new_mutex,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        aref::ARef,
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    }, //
};

/// Most handshakes of one listener; beyond, SYNs are answered without the option.
const MAX_SHAKING: i32 = 4096;

/// A child before accept().
pub(super) struct Child {
    /// Its sock; the private socket owns the base reference.
    pub(super) sk: ARef<Sk>,
    /// Where it hangs. Dropping it closes TCP.
    pub(super) private: PrivateSocket,
    /// Its state, if it was promised SMC.
    pub(super) state: Option<State>,
}

/// A child's way back to its listener.
pub(super) struct Parent {
    listener: State,
    id: u64,
}

/// The children of a listener.
pub(super) struct Queue {
    next: u64,
    shaking: RBTree<u64, Child>,
    ready: RBTree<u64, Child>,
    /// No more children: the listener was closed or shut down.
    stopped: bool,
}

/// A listener's part of a socket's state.
#[pin_data]
pub(crate) struct Listener {
    #[pin]
    queue: Mutex<Queue>,
    n_ready: Atomic<i32>,
    n_shaking: Atomic<i32>,
}

impl Listener {
    /// An empty queue.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            queue <- new_mutex!(
                Queue {
                    next: 0,
                    shaking: RBTree::new(),
                    ready: RBTree::new(),
                    stopped: false,
                },
                "smc_rs_listener"
            ),
            n_ready: Atomic::new(0),
            n_shaking: Atomic::new(0),
        })
    }

    /// Whether a child can be accepted.
    pub(super) fn has_ready(&self) -> bool {
        self.n_ready.load(Relaxed) > 0
    }

    /// Whether there are children, ready or not.
    pub(super) fn in_use(&self) -> bool {
        self.n_ready.load(Relaxed) != 0 || self.n_shaking.load(Relaxed) != 0
    }

    /// The oldest ready child; `queue` is ours.
    fn pop_ready(&self, queue: &mut Queue) -> Option<Child> {
        let (_, node) = queue.ready.cursor_front_mut()?.remove_current();
        self.n_ready.add(-1, Relaxed);
        Some(node.to_key_value().1)
    }

    /// Any child at all, for stopping; `queue` is ours.
    fn pop_any(&self, queue: &mut Queue) -> Option<Child> {
        if let Some(child) = self.pop_ready(queue) {
            return Some(child);
        }
        let (_, node) = queue.shaking.cursor_front_mut()?.remove_current();
        self.n_shaking.add(-1, Relaxed);
        Some(node.to_key_value().1)
    }

    /// Whether SYNs shall be answered without the option; softirq.
    pub(super) fn congested(&self) -> bool {
        self.n_shaking.load(Relaxed) >= MAX_SHAKING
    }
}

/// listen() on a socket with a state.
pub(super) fn listen(sock: &Socket, state: &State, backlog: c_int) -> Answer {
    settle(state);
    {
        let sk = state.sk().lock();
        match state.phase() {
            Phase::Idle if sk.state() != TcpState::Close => return EINVAL.into(),
            Phase::Idle if !sk.may_offer() => state.set_phase(Phase::FellBack),
            Phase::Idle => {
                sk.set_option(true);
                state.hook_syn(&sk);
                state.set_phase(Phase::Listening);
            }
            Phase::Listening | Phase::FellBack => {}
            _ => return EINVAL.into(),
        }
    }
    if state.phase() == Phase::FellBack {
        return Answer::Forward(fallback::swap(sock, state));
    }
    let result = proto_ops::tcp_listen(sock, state.sk(), backlog);
    if result.is_ok() {
        restart(state);
    } else {
        settle(state);
    }
    Answer::Done(result)
}

/// A listener that TCP has closed (shutdown(), `ss -K`, a listen() that failed) may connect or
/// listen anew, like any other socket.
pub(super) fn settle(state: &State) {
    if state.phase() != Phase::Listening {
        return;
    }
    let sk = state.sk().lock();
    if state.phase() == Phase::Listening && sk.state() == TcpState::Close {
        sk.set_option(false);
        state.set_phase(Phase::Idle);
    }
}

/// Pulls what TCP has, and announces what is ready. Work item.
pub(super) fn work(state: &State) {
    if state.sk().state() == TcpState::Listen {
        return pull(state);
    }
    {
        let mut queue = state.listener.queue.lock();
        // It may listen again already; whoever made it so starts the queue after that.
        if state.sk().state() == TcpState::Listen {
            return;
        }
        queue.stopped = true;
    }
    stop(state);
}

/// Pulls children from TCP's queue; process context.
pub(super) fn pull(state: &State) {
    let mut ready = 0;
    let mut retry = false;
    loop {
        // The mutex is let go after each child: a child's `hs` comes before it.
        let pulled = {
            let mut queue = state.listener.queue.lock();
            // As many as TCP would keep: beyond, they wait in TCP's queue, and that fills.
            let ready = state.listener.n_ready.load(Relaxed);
            if queue.stopped || state.sk().backlog_full(ready) {
                break;
            }
            pull_one(state, &mut queue)
        };
        match pulled {
            Pulled::Nothing => break,
            Pulled::Shaking(child) => begin(&child),
            Pulled::Ready => ready += 1,
            Pulled::NoMemory => {
                retry = true;
                break;
            }
        }
    }
    for _ in 0..ready {
        state.original_data_ready();
    }
    if retry {
        UlpSocket::kick_in(state, 100);
    }
}

/// What pulling one child gave.
enum Pulled {
    Nothing,
    Shaking(State),
    Ready,
    NoMemory,
}

fn pull_one(state: &State, queue: &mut Queue) -> Pulled {
    // All memory first: a child that was taken from TCP must have a place.
    let Ok(node) = RBTreeNodeReservation::<u64, Child>::new(GFP_KERNEL) else {
        return Pulled::NoMemory;
    };
    let Ok(private) = PrivateSocket::new() else {
        return Pulled::NoMemory;
    };
    let Some(sk) = tcp_accept(state.sk()) else {
        return Pulled::Nothing;
    };
    let locked = sk.lock();
    private.attach(&locked);
    let promised = ulp::take_marker(&locked);
    let child_state = if promised {
        match ulp::fill::<SmcSock>(&locked, ModuleRef::get()) {
            Ok(s) => Some(s),
            Err(_module) => {
                // It must not become TCP: the peer will send CLC.
                locked.set_close_by_reset(true);
                drop(locked);
                drop(private);
                return Pulled::NoMemory;
            }
        }
    } else {
        None
    };
    if let Some(s) = &child_state {
        fallback::lower_rcvlowat(s, &locked);
    }
    drop(locked);
    let id = queue.next;
    queue.next = id.wrapping_add(1);
    let child = Child {
        sk,
        private,
        state: child_state.clone(),
    };
    let Some(s) = child_state else {
        let old = queue.ready.insert(node.into_node(id, child));
        drop(old);
        state.listener.n_ready.add(1, Relaxed);
        return Pulled::Ready;
    };
    s.set_server();
    *s.parent.lock() = Some(Parent {
        listener: Arc::clone(state),
        id,
    });
    table::insert(&s);
    let old = queue.shaking.insert(node.into_node(id, child));
    drop(old);
    state.listener.n_shaking.add(1, Relaxed);
    Pulled::Shaking(s)
}

/// Starts a child's handshake. If the listener stopped meanwhile the child is closed already, and
/// its first step ends it.
fn begin(child: &State) {
    match Handshake::server() {
        Ok(hs) => {
            *child.hs.lock() = hs;
            child.set_phase(Phase::Child);
            UlpSocket::kick(child);
        }
        Err(_) => child_decided(child, false),
    }
}

/// A child is decided: it becomes ready, or (`alive` false) it is gone.
pub(super) fn child_decided(child: &State, alive: bool) {
    let Some(parent) = child.parent.lock().take() else {
        return;
    };
    let listener = &parent.listener;
    let gone = {
        let mut queue = listener.listener.queue.lock();
        let Some(node) = queue.shaking.remove_node(&parent.id) else {
            return;
        };
        listener.listener.n_shaking.add(-1, Relaxed);
        if alive {
            let old = queue.ready.insert(node);
            listener.listener.n_ready.add(1, Relaxed);
            drop(old);
            None
        } else {
            Some(node)
        }
    };
    if let Some(node) = gone {
        let (_, gone) = node.to_key_value();
        discard(gone);
        return;
    }
    listener.original_data_ready();
}

/// The next ready child, if any; TCP's queue is looked at first.
pub(super) fn take(state: &State) -> (Option<Child>, bool) {
    pull(state);
    let mut queue = state.listener.queue.lock();
    let full = state
        .sk()
        .backlog_full(state.listener.n_ready.load(Relaxed));
    let child = state.listener.pop_ready(&mut queue);
    let empty = queue.ready.is_empty();
    drop(queue);
    if full && child.is_some() {
        // There is room for what waits in TCP's queue.
        UlpSocket::kick(state);
    }
    (child, empty)
}

/// The listener ends: no new children, and all that nobody accepted are reset.
pub(super) fn stop(state: &State) {
    loop {
        let child = {
            let mut queue = state.listener.queue.lock();
            queue.stopped = true;
            state.listener.pop_any(&mut queue)
        };
        match child {
            Some(c) => discard(c),
            None => break,
        }
    }
    // Those who sleep in accept() find that it is no listener: all of them, whereas events wake
    // one each.
    fallback::wake(state);
}

/// Ends a child that nobody will accept, by reset.
pub(super) fn discard(child: Child) {
    if let Some(s) = &child.state {
        // A step under way ends before; none begins after.
        let hs = core::mem::replace(&mut *s.hs.lock(), Handshake::None);
        drop(hs);
        drop(s.parent.lock().take());
        if let Some(conn) = s.set_conn(None) {
            conn.abort();
        }
        s.set_phase(Phase::Idle);
        table::remove(s.id);
    }
    {
        let sk = child.sk.lock();
        if let Some(s) = &child.state {
            UlpSocket::make_plain(s, &sk);
        }
        sk.set_close_by_reset(true);
    }
    drop(child.private);
}

/// Forgets an old stop: TCP listens again.
fn restart(state: &State) {
    let stopped = core::mem::replace(&mut state.listener.queue.lock().stopped, false);
    if stopped {
        UlpSocket::kick(state);
    }
}
