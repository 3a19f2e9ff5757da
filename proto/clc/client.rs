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
#[cfg_attr(any(test, fuzzing), derive(Clone))]
pub(crate) struct Client {
    /// What both sides have.
    common: Common,
    /// Where it stands.
    state: State,
    /// Both ends may have opened the connection at once, so that the peer may be a client too.
    may_cross: bool,
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
            may_cross: true,
            eids: EidSet::new(),
            accept: None,
        }
    }

    /// The connection was opened from this side only: the peer's first segment was a SYN-ACK.
    /// With that knowledge a DECLINE instead of a PROPOSAL need not be acknowledged before the
    /// application may speak, since no other client's message can be under way.
    pub(crate) fn plain_open(&mut self) {
        self.may_cross = false;
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
            Err(reason) if self.may_cross => {
                self.common.send_decline(reason);
                self.state = State::Declining(reason);
            }
            Err(reason) => self.common.decline(reason),
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
                self.common.timer = Deadline::NONE;
                self.state = State::Contact;
                self.common.refuse(Reason::MODEUNSUPP);
                return length;
            }
            Err(error) => {
                self.common.violation(error);
                return 0;
            }
        };
        self.common.version = accept.version;
        self.common.timer = Deadline::NONE;
        self.state = State::Contact;
        match self.check_accept(&accept) {
            Ok(()) => self.accept = Some(accept),
            Err(reason) => self.common.refuse(reason),
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

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_clc_client))]
mod tests {
    use super::{
        super::samples::*,
        *, //
    };

    /// A fallback as the machine tells it.
    fn fell_back(reason: Reason, peer: Reason) -> Option<ClientEvent> {
        Some(ClientEvent::Decided(Outcome::Fallback { reason, peer }))
    }

    /// A reset as the machine tells it.
    fn reset(cause: ResetCause) -> Option<ClientEvent> {
        Some(ClientEvent::Decided(Outcome::Reset(cause)))
    }

    /// A machine whose PROPOSAL is sent and acknowledged at time 0.
    fn proposed() -> Client {
        let mut c = Client::new(0);
        c.start(Ok(&proposal()), 0);
        c.poll_transmit();
        c.on_acked(0);
        c
    }

    /// One that has got this ACCEPT.
    fn accepted(msg: &Accept) -> Client {
        let mut c = proposed();
        let msg = accept_bytes(msg);
        assert_eq!(c.on_input(msg.as_slice(), false, 1), msg.as_slice().len());
        c
    }

    /// One that has sent CONFIRM at time 10.
    fn confirmed(first: bool) -> Client {
        let mut c = accepted(&accept(first));
        c.poll();
        c.contact_confirm(&accept(first), 10);
        c.poll_transmit();
        c
    }

    /// Gives a whole message; whether it was consumed.
    fn feed(c: &mut Client, msg: &ClcBuf) -> bool {
        c.on_input(msg.as_slice(), false, 20) == msg.as_slice().len()
    }

    #[test]
    fn first_and_later_contact() {
        for first in [true, false] {
            let mut c = Client::new(0);
            c.start(Ok(&proposal()), 0);
            assert!(c
                .poll_transmit()
                .is_some_and(|m| m.as_slice() == proposal_bytes().as_slice()));
            assert!(feed(&mut c, &accept_bytes(&accept(first))));
            assert_eq!(c.poll(), Some(ClientEvent::Accept(accept(first))));
            assert_eq!(c.poll_timeout(), None);
            c.contact_confirm(&accept(first), 1);
            c.contact_done(1);
            // Not before CONFIRM is out.
            assert_eq!(c.poll(), None);
            assert!(c
                .poll_transmit()
                .is_some_and(|m| m.as_slice() == confirm_bytes(&accept(first)).as_slice()));
            assert_eq!(c.poll(), Some(ClientEvent::Decided(Outcome::Smc)));
            assert_eq!(c.poll(), None);
        }
    }

    #[test]
    fn a_reset_sends_nothing_more() {
        let mut c = Client::new(0);
        c.start(Ok(&proposal()), 0);
        assert_eq!(c.on_input(b"220 hello", false, 1), 0);
        assert!(c.poll_transmit().is_none());
        let error = WireError::HeadEyecatcher;
        assert_eq!(c.poll(), reset(ResetCause::Protocol(error)));
    }

    #[test]
    fn no_option_sends_nothing() {
        let mut c = Client::new(0);
        c.start(Err(Reason::PEERNOSMC), 0);
        assert!(c.poll_transmit().is_none());
        assert_eq!(c.poll(), fell_back(Reason::PEERNOSMC, Reason::NONE));
    }

    #[test]
    fn declines_instead_of_proposing() {
        let mut c = Client::new(0);
        c.start(Err(Reason::NOSMCDEV), 0);
        assert_eq!(c.poll(), None);
        c.on_acked(1);
        assert_eq!(c.poll(), None);
        assert_eq!(declined_with(c.poll_transmit()), Some(Reason::NOSMCDEV));
        assert_eq!(c.poll(), None);
        c.on_acked(2);
        assert_eq!(c.poll(), fell_back(Reason::NOSMCDEV, Reason::NONE));
        // The application's bytes end it too, and stay.
        let mut c = Client::new(0);
        c.start(Err(Reason::NOSMCDEV), 0);
        c.poll_transmit();
        assert_eq!(c.on_input(b"220 hello", false, 1), 0);
        assert_eq!(c.poll(), fell_back(Reason::NOSMCDEV, Reason::NONE));
    }

    #[test]
    fn declines_at_once_where_nothing_can_cross() {
        let mut c = Client::new(0);
        c.plain_open();
        c.start(Err(Reason::NOSMCDEV), 0);
        assert_eq!(c.poll(), None);
        assert_eq!(declined_with(c.poll_transmit()), Some(Reason::NOSMCDEV));
        assert_eq!(c.poll(), fell_back(Reason::NOSMCDEV, Reason::NONE));
    }

    #[test]
    fn crossed_open_falls_back_and_leaves_nothing() {
        let mut c = proposed();
        assert!(feed(&mut c, &proposal_bytes()));
        assert!(c.poll_transmit().is_none());
        assert_eq!(c.poll(), fell_back(Reason::MODEUNSUPP, Reason::NONE));
        // Nothing is taken before ours is out; then the other's is.
        let mut c = Client::new(0);
        assert!(!feed(&mut c, &proposal_bytes()));
        c.start(Err(Reason::MEM), 0);
        c.poll_transmit();
        assert!(feed(&mut c, &proposal_bytes()));
        assert_eq!(c.poll(), fell_back(Reason::MEM, Reason::NONE));
        // One side proposes, one declines.
        let mut c = Client::new(0);
        c.start(Err(Reason::MEM), 0);
        c.poll_transmit();
        assert!(feed(&mut c, &decline_bytes(Reason::MEM)));
        assert_eq!(c.poll(), fell_back(Reason::PEERDECL, Reason::MEM));
    }

    #[test]
    fn the_clock_starts_with_the_acknowledgment() {
        let mut c = Client::new(0);
        c.start(Ok(&proposal()), 0);
        c.on_acked(0);
        assert_eq!(c.poll_timeout(), None);
        c.poll_transmit();
        c.handle_timeout(1_000_000);
        assert_eq!(c.poll(), None);
        c.on_acked(100);
        c.on_acked(200);
        assert_eq!(c.poll_timeout(), Some(6_100));
        c.handle_timeout(6_099);
        assert_eq!(c.poll(), None);
        c.handle_timeout(6_100);
        assert_eq!(c.poll(), reset(ResetCause::TimedOut));
        // The late ACCEPT stays unread in a connection that is reset.
        assert!(!feed(&mut c, &accept_bytes(&accept(true))));
        assert_eq!(c.poll(), None);
    }

    #[test]
    fn what_may_not_come_resets() {
        let protocol = |e| reset(ResetCause::Protocol(e));
        let mut c = proposed();
        assert!(!feed(&mut c, &confirm_bytes(&accept(true))));
        assert_eq!(c.poll(), protocol(WireError::Unexpected));
        let mut c = proposed();
        assert_eq!(c.on_input(b"220 hello", false, 1), 0);
        assert_eq!(c.poll(), protocol(WireError::HeadEyecatcher));
        let mut c = proposed();
        let endless = [0xe2, 0xd4, 0xc3, 0xd9, 2, 0xff, 0xff, 0x28];
        assert_eq!(c.on_input(&endless, false, 1), 0);
        assert_eq!(c.poll(), protocol(WireError::Length));
        let mut c = proposed();
        assert_eq!(c.on_input(&[], true, 1), 0);
        assert_eq!(c.poll(), reset(ResetCause::PeerClosed));
        let mut c = accepted(&accept(false));
        assert!(!feed(&mut c, &accept_bytes(&accept(false))));
        assert_eq!(c.poll(), protocol(WireError::Unexpected));
        let mut c = confirmed(true);
        assert_eq!(c.on_input(&[], true, 1), 0);
        assert_eq!(c.poll(), reset(ResetCause::PeerClosed));
    }

    #[test]
    fn unusable_accepts_are_declined() {
        let good = accept(true);
        let fce = |release, conns, links| {
            good.fce
                .map(|fce| crate::proto::wire::clc_accept::FirstContact {
                    release,
                    max_conns: conns,
                    max_links: links,
                    ..fce
                })
        };
        let cases = [
            (Accept { version: 1, ..good }, Reason::MODEUNSUPP),
            (
                Accept {
                    eid: crate::proto::eid::Eid::BLANK,
                    ..good
                },
                Reason::MODEUNSUPP,
            ),
            (Accept { mtu: 0, ..good }, Reason::ERR_RDYLNK),
            (
                Accept {
                    fce: fce(2, 32, 1),
                    ..good
                },
                Reason::RELEASEERR,
            ),
            (
                Accept {
                    fce: fce(1, 15, 1),
                    ..good
                },
                Reason::MAXCONNERR,
            ),
            (
                Accept {
                    fce: fce(1, 32, 0),
                    ..good
                },
                Reason::MAXLINKERR,
            ),
            (
                Accept {
                    fce: fce(1, 32, 3),
                    ..good
                },
                Reason::MAXLINKERR,
            ),
        ];
        for (msg, reason) in cases {
            let mut c = accepted(&msg);
            assert_eq!(declined_with(c.poll_transmit()), Some(reason));
            assert_eq!(c.poll(), fell_back(reason, Reason::NONE));
        }
        let mut c = accepted(&Accept {
            fce: fce(0, 0, 0),
            ..good
        });
        assert!(matches!(c.poll(), Some(ClientEvent::Accept(_))));
    }

    #[test]
    fn a_decline_behind_an_unusable_accept_is_seen() {
        for first in [0, 1] {
            let mut c = accepted(&Accept {
                version: 1,
                ..accept(true)
            });
            if first == 0 {
                assert!(feed(&mut c, &decline_bytes(Reason::SYNCERR)));
                assert!(c.poll_transmit().is_none());
                assert_eq!(c.poll(), fell_back(Reason::PEERDECL, Reason::SYNCERR));
            } else {
                assert_eq!(c.on_input(b"220 hello", false, 1), 0);
                assert!(c.poll_transmit().is_none());
                let error = WireError::HeadEyecatcher;
                assert_eq!(c.poll(), reset(ResetCause::Protocol(error)));
            }
        }
    }

    #[test]
    fn the_lower_layers_fail_before_confirm() {
        let mut c = accepted(&accept(false));
        c.contact_failed(Reason::SYNCERR, 5);
        assert_eq!(declined_with(c.poll_transmit()), Some(Reason::SYNCERR));
        assert_eq!(c.poll(), fell_back(Reason::SYNCERR, Reason::NONE));
    }

    #[test]
    fn later_contact_can_not_fail_late() {
        let mut c = confirmed(false);
        c.contact_failed(Reason::ERR_REGBUF, 20);
        assert_eq!(c.poll(), reset(ResetCause::Failed(Reason::ERR_REGBUF)));
    }

    #[test]
    fn first_contact_fails_late_and_the_server_declines() {
        let mut c = confirmed(true);
        c.contact_failed(Reason::TIMEOUT_CL, 4_010);
        assert!(c.poll_transmit().is_none());
        assert_eq!(c.poll_timeout(), Some(5_010));
        assert!(feed(&mut c, &decline_bytes(Reason::TIMEOUT_CL)));
        assert!(c.poll_transmit().is_none());
        assert_eq!(c.poll(), fell_back(Reason::PEERDECL, Reason::TIMEOUT_CL));
    }

    /// A client that has sent a late DECLINE at 5010.
    fn late() -> Client {
        let mut c = confirmed(true);
        c.contact_failed(Reason::TIMEOUT_CL, 100);
        c.handle_timeout(5_009);
        assert!(c.poll_transmit().is_none());
        c.handle_timeout(5_010);
        assert_eq!(declined_with(c.poll_transmit()), Some(Reason::TIMEOUT_CL));
        assert_eq!(c.poll(), None);
        c
    }

    #[test]
    fn late_declines_cross() {
        let mut c = late();
        c.on_acked(5_020);
        assert!(feed(&mut c, &decline_bytes(Reason::TIMEOUT_CL)));
        assert_eq!(c.poll(), fell_back(Reason::PEERDECL, Reason::TIMEOUT_CL));
    }

    #[test]
    fn late_decline_is_heard() {
        // The application speaks.
        let mut c = late();
        assert_eq!(c.on_input(b"220 hello", false, 5_030), 0);
        assert_eq!(c.poll(), fell_back(Reason::TIMEOUT_CL, Reason::NONE));
        // Nobody speaks.
        let mut c = late();
        c.on_acked(5_020);
        c.on_acked(5_520);
        assert_eq!(c.poll_timeout(), Some(6_020));
        c.handle_timeout(6_020);
        assert_eq!(c.poll(), fell_back(Reason::TIMEOUT_CL, Reason::NONE));
    }

    #[test]
    fn late_decline_and_nobody_knows() {
        // Never acknowledged.
        let mut c = late();
        c.handle_timeout(11_010);
        assert_eq!(c.poll(), reset(ResetCause::TimedOut));
        // A part of a DECLINE.
        let mut c = late();
        c.on_acked(5_020);
        let msg = decline_bytes(Reason::MEM);
        let (part, _) = msg.as_slice().split_at(20);
        assert_eq!(c.on_input(part, false, 5_030), 0);
        c.handle_timeout(6_020);
        assert_eq!(c.poll(), reset(ResetCause::TimedOut));
        let mut c = late();
        assert_eq!(c.on_input(part, true, 5_030), 0);
        assert_eq!(c.poll(), reset(ResetCause::PeerClosed));
    }
}
