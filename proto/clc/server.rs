// SPDX-License-Identifier: GPL-2.0

//! The server's side of the handshake.
//!
//! | state | falls back | else |
//! |---|---|---|
//! | before PROPOSAL | the first bytes are no CLC message (nothing is consumed), the stream ends without any, or DECLINE comes | reset, also after 6 s |
//! | PROPOSAL came | DECLINE sent instead of ACCEPT, or DECLINE comes | reset |
//! | ACCEPT sent | DECLINE comes | reset, also after 6 s |
//! | CONFIRM came, first contact | see `common` | reset |
//! | CONFIRM came, later contact | DECLINE comes | reset |

use super::{
    common::{
        Common,
        Late, //
    },
    negotiate::{
        usable,
        Terms, //
    },
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

/// What the server's machine tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // There is no allocation here; it lives for a moment.
pub(crate) enum ServerEvent {
    /// What the client offers: SMC-Rv2 with at least one EID. Answer it by `contact_accept` or
    /// `contact_failed`.
    Proposal(Proposal),
    /// The client's CONFIRM; answer it by `contact_done` or `contact_failed`.
    Confirm(Accept),
    /// It is decided; nothing comes after it.
    Decided(Outcome),
}

/// Where the server stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing came.
    WaitProposal,
    /// PROPOSAL was given out.
    Contact,
    /// ACCEPT sent.
    WaitConfirm,
    /// CONFIRM was given out.
    Confirmed,
    /// First contact failed after CONFIRM.
    Late(Late, Reason),
}

/// The server's side of the handshake.
#[derive(Debug)]
pub(crate) struct Server {
    /// What both sides have.
    common: Common,
    /// Where it stands.
    state: State,
    /// Why a proposal is going to be declined whatever it says.
    refusal: Option<Reason>,
    /// PROPOSAL to give out.
    proposal: Option<Proposal>,
    /// ACCEPT as it was sent.
    accept: Option<Accept>,
    /// CONFIRM to give out.
    confirm: Option<Accept>,
}

impl Server {
    /// A machine for a connection that TCP has established with the SMC option on both sides.
    pub(crate) fn new(now: Ms) -> Self {
        let mut common = Common::new();
        common.timer = Deadline::after(now, WAIT);
        Self {
            common,
            state: State::WaitProposal,
            refusal: None,
            proposal: None,
            accept: None,
            confirm: None,
        }
    }

    /// The proposal that is going to come must be declined with this reason.
    pub(crate) fn refuse(&mut self, reason: Reason) {
        self.refusal = Some(reason);
    }

    /// TCP has acknowledged all that was sent.
    pub(crate) fn on_acked(&mut self, now: Ms) {
        if self.common.sending() || self.common.decided() {
            return;
        }
        if let State::Late(late, _) = &mut self.state {
            self.common.late_acked(late, now);
        }
    }

    /// Looks at the bytes that TCP has received and nobody has read; gives how many to consume.
    /// Call again if that is not 0. `eof`: the peer sends no more than these.
    pub(crate) fn on_input(&mut self, peeked: &[u8], eof: bool, now: Ms) -> usize {
        if self.common.decided() {
            return 0;
        }
        let input = look(peeked, eof);
        match &mut self.state {
            State::WaitProposal => self.input_wait_proposal(input, peeked),
            State::Contact | State::Confirmed => self.common.only_decline(input, peeked),
            State::WaitConfirm => match input {
                Input::Message(header) if header.kind == Kind::Confirm => {
                    self.confirmed(peeked, header.length, now)
                }
                _ => self.common.only_decline(input, peeked),
            },
            State::Late(late, reason) => self.common.late_input(late, *reason, input, peeked),
        }
    }

    /// Input before PROPOSAL.
    fn input_wait_proposal(&mut self, input: Input, peeked: &[u8]) -> usize {
        match input {
            // An application that doesn't know of SMC, or one that has nothing to say.
            Input::NotClc | Input::Eof | Input::Bad(WireError::Version | WireError::Kind) => {
                self.common.fall_back(Reason::PEERNOSMC, Reason::NONE);
                0
            }
            Input::Message(header) if header.kind == Kind::Proposal => {
                self.proposed(peeked, header.length)
            }
            _ => self.common.only_decline(input, peeked),
        }
    }

    /// A PROPOSAL has come.
    fn proposed(&mut self, peeked: &[u8], length: usize) -> usize {
        let proposal = match Proposal::parse(peeked) {
            Ok(proposal) => proposal,
            Err(error) => {
                self.common.violation(error);
                return 0;
            }
        };
        self.common.version = proposal.version;
        self.common.timer = Deadline::NONE;
        match self.refusal.map_or_else(|| usable(&proposal), Err) {
            Ok(()) => {
                self.state = State::Contact;
                self.proposal = Some(proposal);
            }
            Err(reason) => self.common.decline(reason),
        }
        length
    }

    /// A CONFIRM has come.
    fn confirmed(&mut self, peeked: &[u8], length: usize, now: Ms) -> usize {
        let (accept, confirm) = match (self.accept, Accept::parse(peeked)) {
            (Some(accept), Ok(confirm)) => (accept, confirm),
            (_, Err(error)) => {
                self.common.violation(error);
                return 0;
            }
            (None, _) => {
                self.common.violation(WireError::Unexpected);
                return 0;
            }
        };
        if confirm.version != accept.version || (confirm.first_contact && !accept.first_contact) {
            self.common.violation(WireError::Unexpected);
            return 0;
        }
        self.common.timer = Deadline::NONE;
        match check_confirm(&accept, &confirm) {
            Ok(()) => {
                self.state = State::Confirmed;
                self.confirm = Some(confirm);
            }
            Err(reason) => {
                // First contact, so the client listens until CONFIRM LINK comes.
                let late = self.common.late_decline(reason, now);
                self.state = State::Late(late, reason);
            }
        }
        length
    }

    /// The lower layers are ready: sends ACCEPT.
    pub(crate) fn contact_accept(&mut self, accept: &Accept, now: Ms) {
        if self.common.decided() {
            return;
        }
        if self.state != State::Contact {
            self.common.reset(ResetCause::Failed(Reason::INTERR));
            return;
        }
        self.common.peer_id = accept.peer_id;
        self.common.send(|buf| accept.emit_accept(buf));
        self.common.timer = Deadline::after(now, WAIT);
        self.accept = Some(*accept);
        self.state = State::WaitConfirm;
    }

    /// The lower layers are done: it is an SMC connection. On first contact, the client has
    /// answered CONFIRM LINK.
    pub(crate) fn contact_done(&mut self, _now: Ms) {
        match self.state {
            State::Confirmed => self.common.smc(),
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
            State::WaitProposal => self.refusal = Some(reason),
            State::Contact => {
                self.proposal = None;
                self.common.decline(reason);
            }
            State::Confirmed if self.accept.is_some_and(|accept| accept.first_contact) => {
                self.confirm = None;
                let late = self.common.late(Deadline::after(now, WAIT_SHORT));
                self.state = State::Late(late, reason);
            }
            State::WaitConfirm | State::Confirmed => {
                self.common.reset(ResetCause::Failed(reason));
            }
            State::Late(..) => {}
        }
    }

    /// The client declined because it doesn't know the link group that ACCEPT named.
    pub(crate) fn peer_out_of_sync(&self) -> bool {
        self.common.out_of_sync
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
    pub(crate) fn poll(&mut self) -> Option<ServerEvent> {
        if !self.common.decided() {
            if let Some(proposal) = self.proposal.take() {
                return Some(ServerEvent::Proposal(proposal));
            }
            return self.confirm.take().map(ServerEvent::Confirm);
        }
        self.common.poll().map(ServerEvent::Decided)
    }
}

/// Whether CONFIRM fits to ACCEPT.
fn check_confirm(accept: &Accept, confirm: &Accept) -> Result<(), Reason> {
    Terms::check_echo(accept, confirm)?;
    if accept.first_contact && !confirm.mtu_valid() {
        return Err(Reason::ERR_RDYLNK);
    }
    Ok(())
}
