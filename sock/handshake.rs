// SPDX-License-Identifier: GPL-2.0

//! The CLC handshake over the TCP socket: drives the machines of [`crate::proto::clc`] and the link
//! group's [`Contact`].
//!
//! One step is made per event: TCP's callbacks, timers, and whatever a contact waited for kick the
//! socket's work item. A step never sleeps on the peer.

use super::{
    fallback,
    listen,
    settings,
    state::{
        Handle,
        Phase,
        State, //
    }, //
};
use crate::{
    cdc::{
        Conn,
        Contact,
        Progress, //
    },
    ext::{
        sk::{
            SkLocked,
            TcpState, //
        },
        timer::now_ms,
        ulp::UlpSocket, //
    },
    lgr::{
        Offer,
        Wake, //
    },
    proto::{
        clc::{
            Client,
            ClientEvent,
            Outcome,
            ResetCause,
            Server,
            ServerEvent,
            PEEK_MAX, //
        },
        reason::Reason,
        wire::{
            clc::ClcBuf,
            clc_accept::Accept,
            clc_proposal::Proposal, //
        }, //
    },
    sysctl, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    }, //
};

/// Milliseconds to the first look whether TCP acknowledged a message, since TCP doesn't tell; each
/// pause is twice the one before. The peer's time to answer begins with the acknowledgment.
const ACK_PAUSE: u64 = 10;
/// Milliseconds between later looks.
const ACK_PAUSE_MAX: u64 = 200;

/// Milliseconds that a PROPOSAL waits at most for another first contact with its client. Less than
/// what the client waits for ACCEPT, and as long as CONFIRM LINK may take.
const FORMING_WAIT: u64 = 2_500;
/// Milliseconds to the first look whether it is over; each pause is twice the one before.
const FORMING_PAUSE: u64 = 5;
/// Milliseconds between later looks.
const FORMING_PAUSE_MAX: u64 = 160;

/// Milliseconds within which a server sends ACCEPT, or else declines: a host that has more
/// handshakes than it can do in time makes TCP connections of them, not errors. A client waits 6 s.
const ACCEPT_WITHIN: u64 = 4_500;

/// A handshake under way.
pub(super) enum Handshake {
    /// None.
    None,
    /// We connected.
    Client(KBox<ClientHs>),
    /// We accepted.
    Server(KBox<ServerHs>),
}

/// A client's handshake.
pub(super) struct ClientHs {
    machine: Client,
    started: bool,
    offer: Option<Offer>,
    contact: Option<Contact>,
    /// Milliseconds to the next look at acknowledgments.
    pause: u64,
}

/// A server's handshake.
pub(super) struct ServerHs {
    machine: Server,
    contact: Option<Contact>,
    /// A PROPOSAL that waits for another first contact with its client.
    waiting: Option<Waiting>,
    /// Until when ACCEPT must be out; 0 when it is.
    accept_by: u64,
    /// Milliseconds to the next look at acknowledgments.
    pause: u64,
}

/// See [`ServerHs::waiting`].
struct Waiting {
    proposal: KBox<Proposal>,
    until: u64,
    /// Milliseconds to the next look.
    pause: u64,
}

impl Handshake {
    /// A client's, before TCP is connected. May sleep.
    pub(super) fn client() -> Result<Self> {
        let hs = ClientHs {
            machine: Client::new(now_ms()),
            started: false,
            offer: None,
            contact: None,
            pause: ACK_PAUSE,
        };
        Ok(Self::Client(KBox::new(hs, GFP_KERNEL)?))
    }

    /// A server's, for a child that TCP has established. May sleep.
    pub(super) fn server() -> Result<Self> {
        let hs = ServerHs {
            machine: Server::new(now_ms()),
            contact: None,
            waiting: None,
            accept_by: now_ms().saturating_add(ACCEPT_WITHIN),
            pause: ACK_PAUSE,
        };
        Ok(Self::Server(KBox::new(hs, GFP_KERNEL)?))
    }
}

/// What the two machines have in common when TCP's bytes are moved.
trait Machine {
    fn input(&mut self, peeked: &[u8], eof: bool, now: u64) -> usize;
    fn acked(&mut self, now: u64);
    fn timeout(&mut self, now: u64);
    fn transmit(&mut self) -> Option<ClcBuf>;
    fn deadline(&self) -> Option<u64>;
}

macro_rules! machine {
    ($t:ty) => {
        impl Machine for $t {
            fn input(&mut self, peeked: &[u8], eof: bool, now: u64) -> usize {
                self.on_input(peeked, eof, now)
            }
            fn acked(&mut self, now: u64) {
                self.on_acked(now)
            }
            fn timeout(&mut self, now: u64) {
                self.handle_timeout(now)
            }
            fn transmit(&mut self) -> Option<ClcBuf> {
                self.poll_transmit()
            }
            fn deadline(&self) -> Option<u64> {
                self.poll_timeout()
            }
        }
    };
}
machine!(Client);
machine!(Server);

/// Moves bytes between TCP and the machine. `Err`: TCP would not take a message.
fn exchange(m: &mut impl Machine, sk: &SkLocked<'_>) -> Result {
    let mut buf = KVec::from_elem(0u8, PEEK_MAX, GFP_KERNEL)?;
    loop {
        let n = sk.peek(&mut buf);
        let eof = sk.state() != TcpState::Established;
        let used = m.input(buf.get(..n).unwrap_or(&[]), eof, now_ms());
        if used == 0 {
            break;
        }
        sk.consume(used);
    }
    if sk.all_acked() {
        m.acked(now_ms());
    }
    m.timeout(now_ms());
    while let Some(msg) = m.transmit() {
        if !sk.send(msg.as_slice()) {
            return Err(ENOMEM);
        }
    }
    Ok(())
}

/// When to look again, if nothing happens; `pause`: see [`ACK_PAUSE`].
fn rearm(state: &State, m: &impl Machine, pause: &mut u64) {
    let mut delay = match m.deadline() {
        Some(at) => at.saturating_sub(now_ms()),
        None => u64::MAX,
    };
    if !state.sk().all_acked() || delay == u64::MAX {
        delay = delay.min(*pause);
        *pause = pause.saturating_mul(2).min(ACK_PAUSE_MAX);
    }
    // The kernel's timers are late by up to an eighth: a long wait is made in steps.
    if delay > ACK_PAUSE_MAX {
        delay = delay.saturating_sub(delay / 8);
    }
    UlpSocket::kick_in(state, delay.saturating_add(1));
}

/// A kick for what a contact waits for.
fn waker(state: &State) -> Result<Arc<dyn Wake>, Reason> {
    let handle = Arc::new(Handle(Arc::clone(state)), GFP_KERNEL).map_err(|_| Reason::MEM)?;
    Ok(handle)
}

/// Publishes an SMC connection and wakes whoever waits for it.
fn activate(state: &State, conn: Arc<Conn>) {
    let Ok(owner) = Arc::new(Handle(Arc::clone(state)), GFP_KERNEL) else {
        conn.abort();
        return reset(state, ENOMEM);
    };
    state.over.store(false, Relaxed);
    drop(state.set_conn(Some(Arc::clone(&conn))));
    sysctl::state(state.sk().net()).count_smc(state.is_server());
    conn.set_autocork(sysctl::state(state.sk().net()).autocork());
    conn.set_urgent_inline(state.sk().oob_inline());
    // Before anybody can use and close it: the end of a connection is told to its owner only.
    conn.set_owner(owner);
    {
        let sk = state.sk().lock();
        fallback::restore_rcvlowat(state, &sk);
        state.set_phase(Phase::Active);
    }
    fallback::wake(state);
    // TCP may have ended before anybody watched it.
    UlpSocket::kick(state);
}

/// Ends the TCP connection with `err`; it is the application's error. Process context.
pub(super) fn reset(state: &State, err: Error) {
    // In this order: while TCP answers, nothing of the handshake may be there to be read.
    state.sk().abort(err);
    {
        let sk = state.sk().lock();
        sk.purge();
        sk.set_option(false);
        fallback::restore_rcvlowat(state, &sk);
        state.set_phase(Phase::Idle);
    }
    fallback::wake(state);
}

/// The error of a reset.
fn errno(cause: ResetCause) -> Error {
    match cause {
        ResetCause::TimedOut => ETIMEDOUT,
        ResetCause::Protocol(_) => EPROTO,
        ResetCause::PeerClosed => ECONNRESET,
        ResetCause::Failed(Reason::MEM) => ENOMEM,
        ResetCause::Failed(_) => ECONNABORTED,
    }
}

/// Makes a client's step. Work item; also called by the connecting thread.
pub(super) fn client_work(state: &State) {
    let mut hs = state.hs.lock();
    let Handshake::Client(client) = &mut *hs else {
        return;
    };
    let mut conn = None;
    let Some(outcome) = client_step(state, client, &mut conn) else {
        return;
    };
    // The contact goes before the decision is public, outside the socket lock. The mutex stays
    // until it is: connect(AF_UNSPEC) must not come between.
    drop(core::mem::replace(&mut *hs, Handshake::None));
    match (outcome, conn) {
        (Outcome::Smc, Some(conn)) => activate(state, conn),
        (Outcome::Smc, None) => reset(state, ECONNABORTED),
        (Outcome::Fallback { reason, peer }, conn) => {
            give_up(conn);
            fallback::decide(state, reason, peer);
        }
        (Outcome::Reset(cause), conn) => {
            give_up(conn);
            reset(state, errno(cause));
        }
    }
}

/// A connection that came too late.
fn give_up(conn: Option<Arc<Conn>>) {
    if let Some(conn) = conn {
        conn.abort();
    }
}

/// How the TCP side of a client's handshake stands.
enum TcpSide {
    /// Not connected yet.
    NotYet,
    /// Connected, also if the peer has closed since.
    Connected,
    /// Reset, refused, or closed by us.
    Gone,
}

fn tcp_side(sk: &SkLocked<'_>) -> TcpSide {
    match sk.state() {
        TcpState::Opening => TcpSide::NotYet,
        TcpState::Established | TcpState::CloseWait => TcpSide::Connected,
        TcpState::Close | TcpState::Listen | TcpState::Closing => TcpSide::Gone,
    }
}

/// `Some`: decided. An SMC connection is left in `conn`.
fn client_step(state: &State, hs: &mut ClientHs, conn: &mut Option<Arc<Conn>>) -> Option<Outcome> {
    {
        let sk = state.sk().lock();
        match tcp_side(&sk) {
            TcpSide::NotYet => return None,
            TcpSide::Connected => {}
            TcpSide::Gone => return Some(Outcome::Reset(ResetCause::PeerClosed)),
        }
    }
    if !hs.started {
        hs.started = true;
        start(state, hs);
    }
    loop {
        {
            let sk = state.sk().lock();
            if exchange(&mut hs.machine, &sk).is_err() {
                return Some(Outcome::Reset(ResetCause::Failed(Reason::MEM)));
            }
        }
        match hs.machine.poll() {
            Some(ClientEvent::Decided(outcome)) => return Some(outcome),
            Some(ClientEvent::Accept(accept)) => client_accept(state, hs, &accept),
            None if client_contact(hs, conn) => {}
            None => break,
        }
    }
    rearm(state, &hs.machine, &mut hs.pause);
    None
}

/// TCP is connected: looks what can be offered.
fn start(state: &State, hs: &mut ClientHs) {
    let sk = state.sk();
    if sk.only_synack() {
        hs.machine.plain_open();
    }
    if !sk.has_option() {
        return hs.machine.start(Err(Reason::PEERNOSMC), now_ms());
    }
    match Offer::find(&settings::flow(sk), &settings::settings(sk)) {
        Ok(offer) => {
            hs.machine.start(Ok(&offer.proposal()), now_ms());
            hs.offer = Some(offer);
        }
        Err(reason) => hs.machine.start(Err(reason), now_ms()),
    }
}

/// The server's ACCEPT is here.
fn client_accept(state: &State, hs: &mut ClientHs, accept: &Accept) {
    let contact = match hs.offer.take() {
        Some(offer) => waker(state).and_then(|w| Contact::client(offer, accept, w)),
        None => Err(Reason::INTERR),
    };
    match contact {
        Ok(c) => hs.contact = Some(c),
        Err(reason) => hs.machine.contact_failed(reason, now_ms()),
    }
}

/// Advances the contact. `true`: the machine has something to do.
fn client_contact(hs: &mut ClientHs, conn: &mut Option<Arc<Conn>>) -> bool {
    let Some(contact) = hs.contact.as_mut() else {
        return false;
    };
    match contact.poll() {
        Ok(Progress::Pending) => return false,
        Ok(Progress::Confirm(confirm)) => hs.machine.contact_confirm(&confirm, now_ms()),
        Ok(Progress::Accept(_)) => hs.machine.contact_failed(Reason::INTERR, now_ms()),
        Ok(Progress::Ready(c)) => {
            *conn = Some(c);
            hs.contact = None;
            hs.machine.contact_done(now_ms());
        }
        Err(reason) => {
            hs.contact = None;
            hs.machine.contact_failed(reason, now_ms());
        }
    }
    true
}

/// Makes a server's step. Work item.
pub(super) fn server_work(state: &State) {
    let mut hs = state.hs.lock();
    let Handshake::Server(server) = &mut *hs else {
        return;
    };
    let mut conn = None;
    let Some(outcome) = server_step(state, server, &mut conn) else {
        return;
    };
    drop(core::mem::replace(&mut *hs, Handshake::None));
    let alive = match (outcome, conn) {
        (Outcome::Smc, Some(conn)) => {
            activate(state, conn);
            state.phase() == Phase::Active
        }
        (Outcome::Fallback { reason, peer }, conn) => {
            give_up(conn);
            fallback::decide(state, reason, peer);
            true
        }
        (Outcome::Smc, None) => {
            reset(state, ECONNABORTED);
            false
        }
        (Outcome::Reset(cause), conn) => {
            give_up(conn);
            reset(state, errno(cause));
            false
        }
    };
    // A child that is gone is discarded with its own `hs` taken again.
    drop(hs);
    listen::child_decided(state, alive);
}

fn server_step(state: &State, hs: &mut ServerHs, conn: &mut Option<Arc<Conn>>) -> Option<Outcome> {
    // The client's time begins with the end of its PROPOSAL, and that is the last it sends.
    let heard = state.heard.load(Relaxed);
    if hs.accept_by != 0 && heard != 0 {
        hs.accept_by = heard.saturating_add(ACCEPT_WITHIN);
    }
    loop {
        {
            let sk = state.sk().lock();
            if matches!(tcp_side(&sk), TcpSide::Gone) {
                return Some(Outcome::Reset(ResetCause::PeerClosed));
            }
            if exchange(&mut hs.machine, &sk).is_err() {
                return Some(Outcome::Reset(ResetCause::Failed(Reason::MEM)));
            }
        }
        decline_if_late(hs);
        match hs.machine.poll() {
            Some(ServerEvent::Decided(outcome)) => {
                end_stale_group(hs);
                return Some(outcome);
            }
            Some(ServerEvent::Proposal(proposal)) => server_proposal(state, hs, &proposal),
            Some(ServerEvent::Confirm(confirm)) => server_confirm(hs, &confirm),
            None if server_waiting(state, hs) || server_contact(hs, conn) => {}
            None => break,
        }
    }
    match &hs.waiting {
        Some(w) => UlpSocket::kick_in(state, w.pause),
        None if hs.accept_by != 0 && hs.contact.is_some() => {
            let left = hs.accept_by.saturating_sub(now_ms());
            UlpSocket::kick_in(state, left.saturating_add(1));
        }
        None => rearm(state, &hs.machine, &mut hs.pause),
    }
    None
}

/// Gives up a handshake that did not get to ACCEPT in time; the client falls back.
fn decline_if_late(hs: &mut ServerHs) {
    if hs.accept_by != 0 && now_ms() >= hs.accept_by {
        hs.accept_by = 0;
        hs.waiting = None;
        hs.contact = None;
        hs.machine.contact_failed(Reason::MEM, now_ms());
    }
}

/// A client that doesn't know the link group we named has lost it: no other client shall be put
/// there.
fn end_stale_group(hs: &ServerHs) {
    if let (true, Some(contact)) = (hs.machine.peer_out_of_sync(), &hs.contact) {
        contact.out_of_sync();
    }
}

/// The client's PROPOSAL is here.
fn server_proposal(state: &State, hs: &mut ServerHs, proposal: &Proposal) {
    if server_begin(state, hs, proposal, true) {
        return;
    }
    match KBox::new(proposal.clone(), GFP_KERNEL) {
        Ok(proposal) => {
            hs.waiting = Some(Waiting {
                proposal,
                until: now_ms().saturating_add(FORMING_WAIT),
                pause: FORMING_PAUSE,
            })
        }
        Err(_) => hs.machine.contact_failed(Reason::MEM, now_ms()),
    }
}

/// Begins the contact. `false`, only if `patient`: another first contact must end before.
fn server_begin(state: &State, hs: &mut ServerHs, proposal: &Proposal, patient: bool) -> bool {
    let sk = state.sk();
    let contact = waker(state).and_then(|w| {
        Contact::server(
            &settings::flow(sk),
            &settings::settings(sk),
            proposal,
            w,
            patient,
        )
    });
    match contact {
        Ok(Some(c)) => hs.contact = Some(c),
        Ok(None) => return false,
        Err(reason) => hs.machine.contact_failed(reason, now_ms()),
    }
    true
}

/// Looks whether a PROPOSAL that waited can go on. `true`: the machine has something to do.
fn server_waiting(state: &State, hs: &mut ServerHs) -> bool {
    let Some(mut waiting) = hs.waiting.take() else {
        return false;
    };
    let patient = now_ms() < waiting.until;
    if server_begin(state, hs, &waiting.proposal, patient) {
        return true;
    }
    waiting.pause = waiting.pause.saturating_mul(2).min(FORMING_PAUSE_MAX);
    hs.waiting = Some(waiting);
    false
}

/// The client's CONFIRM is here.
fn server_confirm(hs: &mut ServerHs, confirm: &Accept) {
    let result = match hs.contact.as_mut() {
        Some(contact) => contact.on_confirm(confirm),
        None => Err(Reason::INTERR),
    };
    if let Err(reason) = result {
        hs.contact = None;
        hs.machine.contact_failed(reason, now_ms());
    }
}

/// Advances the contact. `true`: the machine has something to do.
fn server_contact(hs: &mut ServerHs, conn: &mut Option<Arc<Conn>>) -> bool {
    let Some(contact) = hs.contact.as_mut() else {
        return false;
    };
    match contact.poll() {
        Ok(Progress::Pending) => return false,
        Ok(Progress::Accept(accept)) => {
            hs.accept_by = 0;
            hs.machine.contact_accept(&accept, now_ms());
        }
        Ok(Progress::Confirm(_)) => hs.machine.contact_failed(Reason::INTERR, now_ms()),
        Ok(Progress::Ready(c)) => {
            *conn = Some(c);
            hs.contact = None;
            hs.machine.contact_done(now_ms());
        }
        Err(reason) => {
            hs.contact = None;
            hs.machine.contact_failed(reason, now_ms());
        }
    }
    true
}
