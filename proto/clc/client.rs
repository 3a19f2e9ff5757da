// SPDX-License-Identifier: GPL-2.0

//! The client's side of the handshake.
//!
//! | state | falls back | else |
//! |---|---|---|
//! | before PROPOSAL | DECLINE instead of it | no option in the SYN-ACK: falls back silently |
//! | PROPOSAL sent | DECLINE or PROPOSAL (crossed open) comes | reset |
//! | ACCEPT came | DECLINE sent instead of CONFIRM, or DECLINE comes: the server waits for one of the two and sends nothing by itself | reset |
//! | CONFIRM sent, first contact | see `common` | reset |
//! | CONFIRM sent, later contact | DECLINE comes | reset |

use super::{
    common::{
        Common,
        Late, //
    },
    negotiate::Terms,
    stream::{
        look,
        Input, //
    },
    Outcome,
    ResetCause,
    WAIT,
    WAIT_SHORT, //
};
use crate::proto::{
    eid::EidSet,
    reason::Reason,
    time::{
        Deadline,
        Ms, //
    },
    wire::{
        clc::{
            ClcBuf,
            Kind, //
        },
        clc_accept::Accept,
        clc_proposal::Proposal,
        WireError,
    },
};

/// How long after CONFIRM the server's DECLINE is waited for before one is sent: the server gives
/// up after 3 s, so it is the one that declines, and DECLINEs hardly ever cross.
const SERVER_GIVES_UP: Ms = 5_000;

/// What the client's machine tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientEvent {
    /// The server's answer; answer it by `contact_confirm` or `contact_failed`.
    Accept(Accept),
    /// It is decided; nothing comes after it.
    Decided(Outcome),
}

/// Where the client stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing sent.
    Start,
    /// DECLINE sent instead of PROPOSAL; in a crossed open the peer's message must be consumed.
    Declining(Reason),
    /// PROPOSAL sent.
    WaitAccept,
    /// ACCEPT was given out.
    Contact,
    /// CONFIRM sent at that time.
    Confirmed { first: bool, sent: Ms },
    /// First contact failed after CONFIRM.
    Late(Late, Reason),
}

/// The client's side of the handshake.
#[derive(Debug)]
pub(crate) struct Client {
    /// What both sides have.
    common: Common,
    /// Where it stands.
    state: State,
    /// The EIDs that were offered.
    eids: EidSet,
    /// ACCEPT to give out.
    accept: Option<Accept>,
}

impl Client {
    /// A machine for a connection that TCP has established.
    pub(crate) fn new(_now: Ms) -> Self {
        Self {
            common: Common::new(),
            state: State::Start,
            eids: EidSet::new(),
            accept: None,
        }
    }

    /// Says what to offer, or why nothing: then a DECLINE goes out. If the reason is that the
    /// peer did not offer SMC (`PEERNOSMC`), nothing is sent.
    pub(crate) fn start(&mut self, offer: Result<&Proposal, Reason>, _now: Ms) {
        if self.state != State::Start || self.common.decided() {
            return;
        }
        match offer {
            Ok(proposal) => {
                self.eids = proposal.eids.clone();
                self.common.peer_id = proposal.peer_id;
                self.common.send(|buf| proposal.emit(buf));
                self.state = State::WaitAccept;
            }
            Err(Reason::PEERNOSMC) => self.common.fall_back(Reason::PEERNOSMC, Reason::NONE),
            Err(reason) => {
                self.common.send_decline(reason);
                self.state = State::Declining(reason);
            }
        }
    }

    /// TCP has acknowledged all that was sent. Starts the clock for ACCEPT; until then TCP's own
    /// timers rule.
    pub(crate) fn on_acked(&mut self, now: Ms) {
        if self.common.sending() || self.common.decided() {
            return;
        }
        match &mut self.state {
            State::Declining(reason) => {
                // What the peer sent before it knew would be here.
                self.common.fall_back(*reason, Reason::NONE);
            }
            State::WaitAccept if self.common.timer == Deadline::NONE => {
                self.common.timer = Deadline::after(now, WAIT);
            }
            State::Late(late, _) => self.common.late_acked(late, now),
            _ => {}
        }
    }

    /// Looks at the bytes that TCP has received and nobody has read; gives how many to consume.
    /// Call again if that is not 0. `eof`: the peer sends no more than these.
    pub(crate) fn on_input(&mut self, peeked: &[u8], eof: bool, _now: Ms) -> usize {
        if self.common.decided() {
            return 0;
        }
        let input = look(peeked, eof);
        match &mut self.state {
            // The peer's message is looked at when ours is out.
            State::Start => 0,
            State::Declining(reason) => {
                let reason = *reason;
                self.input_declining(reason, input, peeked)
            }
            State::WaitAccept => self.input_wait_accept(input, peeked),
            State::Contact | State::Confirmed { .. } => self.common.only_decline(input, peeked),
            State::Late(late, reason) => self.common.late_input(late, *reason, input, peeked),
        }
    }

    /// Input after a DECLINE instead of a PROPOSAL: the application's, except in a crossed open.
    fn input_declining(&mut self, reason: Reason, input: Input, peeked: &[u8]) -> usize {
        match input {
            Input::Wait => 0,
            Input::Message(header) if header.kind == Kind::Proposal => {
                self.crossed(peeked, header.length, reason)
            }
            Input::Message(header) if header.kind == Kind::Decline => {
                self.common.declined(peeked, header.length)
            }
            Input::NotClc | Input::Eof => {
                self.common.fall_back(reason, Reason::NONE);
                0
            }
            _ => self.common.only_decline(input, peeked),
        }
    }

    /// Input after PROPOSAL.
    fn input_wait_accept(&mut self, input: Input, peeked: &[u8]) -> usize {
        match input {
            Input::Message(header) => match header.kind {
                Kind::Accept => self.accepted(peeked, header.length),
                Kind::Proposal => self.crossed(peeked, header.length, Reason::MODEUNSUPP),
                _ => self.common.only_decline(input, peeked),
            },
            _ => self.common.only_decline(input, peeked),
        }
    }

    /// A PROPOSAL has come: both sides are clients. Both consume the other's and fall back.
    fn crossed(&mut self, peeked: &[u8], length: usize, reason: Reason) -> usize {
        match Proposal::parse(peeked) {
            Ok(_) => {
                self.common.fall_back(reason, Reason::NONE);
                length
            }
            Err(error) => {
                self.common.violation(error);
                0
            }
        }
    }

    /// An ACCEPT has come.
    fn accepted(&mut self, peeked: &[u8], length: usize) -> usize {
        let accept = match Accept::parse(peeked) {
            Ok(accept) => accept,
            Err(WireError::NotSmcR) => {
                self.common.decline(Reason::MODEUNSUPP);
                return length;
            }
            Err(error) => {
                self.common.violation(error);
                return 0;
            }
        };
        self.common.version = accept.version;
        self.common.timer = Deadline::NONE;
        match self.check_accept(&accept) {
            Ok(()) => {
                self.state = State::Contact;
                self.accept = Some(accept);
            }
            Err(reason) => self.common.decline(reason),
        }
        length
    }

    /// Whether ACCEPT is about what was offered.
    fn check_accept(&self, accept: &Accept) -> Result<(), Reason> {
        if accept.version == 1 || !self.eids.contains(&accept.eid) {
            return Err(Reason::MODEUNSUPP);
        }
        if accept.first_contact && !accept.mtu_valid() {
            return Err(Reason::ERR_RDYLNK);
        }
        Terms::accepted(accept).map(|_| ())
    }

    /// The lower layers are ready: sends CONFIRM.
    pub(crate) fn contact_confirm(&mut self, confirm: &Accept, now: Ms) {
        if self.common.decided() {
            return;
        }
        if self.state != State::Contact {
            self.common.reset(ResetCause::Failed(Reason::INTERR));
            return;
        }
        self.common.peer_id = confirm.peer_id;
        self.common.send(|buf| confirm.emit_confirm(buf));
        self.state = State::Confirmed {
            first: confirm.first_contact,
            sent: now,
        };
    }

    /// The lower layers are done: it is an SMC connection. On first contact, CONFIRM LINK was
    /// answered; on a later one, to be called right after `contact_confirm`.
    pub(crate) fn contact_done(&mut self, _now: Ms) {
        match self.state {
            State::Confirmed { .. } => self.common.smc(),
            _ if self.common.decided() => {}
            _ => self.common.reset(ResetCause::Failed(Reason::INTERR)),
        }
    }

    /// The lower layers failed. Falls back if the peer is known to follow, else resets.
    pub(crate) fn contact_failed(&mut self, reason: Reason, now: Ms) {
        if self.common.decided() {
            return;
        }
        match self.state {
            State::Start => self.start(Err(reason), now),
            State::Contact => {
                self.accept = None;
                self.common.decline(reason);
            }
            State::Confirmed { first: true, sent } => {
                let until = now
                    .saturating_add(WAIT_SHORT)
                    .max(sent.saturating_add(SERVER_GIVES_UP));
                let late = self.common.late(Deadline::at(until));
                self.state = State::Late(late, reason);
            }
            State::WaitAccept | State::Confirmed { .. } => {
                self.common.reset(ResetCause::Failed(reason));
            }
            State::Declining(_) | State::Late(..) => {}
        }
    }

    /// To be called when the time of `poll_timeout` has come; may be called at any time.
    pub(crate) fn handle_timeout(&mut self, now: Ms) {
        if self.common.decided() || !self.common.timer.expired(now) {
            return;
        }
        self.common.timer = Deadline::NONE;
        match &mut self.state {
            State::Late(late, reason) => self.common.late_timeout(late, *reason, now),
            _ => self.common.reset(ResetCause::TimedOut),
        }
    }

    /// When `handle_timeout` has to be called.
    pub(crate) fn poll_timeout(&self) -> Option<Ms> {
        self.common.timer.get()
    }

    /// The next message to send.
    pub(crate) fn poll_transmit(&mut self) -> Option<ClcBuf> {
        self.common.poll_transmit()
    }

    /// The next event.
    pub(crate) fn poll(&mut self) -> Option<ClientEvent> {
        if !self.common.decided() {
            return self.accept.take().map(ClientEvent::Accept);
        }
        self.common.poll().map(ClientEvent::Decided)
    }
}
