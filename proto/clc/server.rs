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
#[cfg_attr(any(test, fuzzing), derive(Clone))]
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
        self.state = State::Contact;
        match self.refusal.map_or_else(|| usable(&proposal), Err) {
            Ok(()) => self.proposal = Some(proposal),
            Err(reason) => self.common.refuse(reason),
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

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_clc_server))]
mod tests {
    use super::{
        super::samples::*,
        *, //
    };
    use crate::proto::wire::{
        clc_accept::FirstContact,
        clc_proposal::Offer, //
    };

    /// A fallback as the machine tells it.
    fn fell_back(reason: Reason, peer: Reason) -> Option<ServerEvent> {
        Some(ServerEvent::Decided(Outcome::Fallback { reason, peer }))
    }

    /// A reset as the machine tells it.
    fn reset(cause: ResetCause) -> Option<ServerEvent> {
        Some(ServerEvent::Decided(Outcome::Reset(cause)))
    }

    /// Gives a whole message; whether it was consumed.
    fn feed(s: &mut Server, msg: &ClcBuf) -> bool {
        s.on_input(msg.as_slice(), false, 20) == msg.as_slice().len()
    }

    /// A machine that has got a PROPOSAL.
    fn proposed() -> Server {
        let mut s = Server::new(0);
        assert!(feed(&mut s, &proposal_bytes()));
        s
    }

    /// One that has sent ACCEPT at time 30.
    fn accepted(first: bool) -> Server {
        let mut s = proposed();
        s.poll();
        s.contact_accept(&accept(first), 30);
        s.poll_transmit();
        s
    }

    /// One that has got CONFIRM.
    fn confirmed(first: bool) -> Server {
        let mut s = accepted(first);
        assert!(feed(&mut s, &confirm_bytes(&accept(first))));
        s.poll();
        s
    }

    #[test]
    fn first_and_later_contact() {
        for first in [true, false] {
            let mut s = proposed();
            assert_eq!(s.poll(), Some(ServerEvent::Proposal(proposal())));
            assert_eq!(s.poll_timeout(), None);
            s.contact_accept(&accept(first), 30);
            assert!(s
                .poll_transmit()
                .is_some_and(|m| m.as_slice() == accept_bytes(&accept(first)).as_slice()));
            assert_eq!(s.poll_timeout(), Some(6_030));
            assert!(feed(&mut s, &confirm_bytes(&accept(first))));
            assert_eq!(s.poll(), Some(ServerEvent::Confirm(accept(first))));
            assert_eq!(s.poll_timeout(), None);
            s.contact_done(50);
            assert_eq!(s.poll(), Some(ServerEvent::Decided(Outcome::Smc)));
            assert_eq!(s.poll(), None);
        }
    }

    #[test]
    fn other_bytes_stay_and_fall_back() {
        let cases: [&[u8]; 5] = [
            b"G",
            b"GET / HTTP/1.1",
            &[0xe2, 0xd4, 0xc3, 0],
            // The eyecatcher, but version 0 or no type that exists.
            &[0xe2, 0xd4, 0xc3, 0xd9, 1, 0, 52, 0x00],
            &[0xe2, 0xd4, 0xc3, 0xd9, 9, 0, 52, 0x10],
        ];
        for bytes in cases {
            let mut s = Server::new(0);
            assert_eq!(s.on_input(bytes, false, 1), 0);
            assert_eq!(s.poll(), fell_back(Reason::PEERNOSMC, Reason::NONE));
            assert!(s.poll_transmit().is_none());
        }
        for bytes in [&[][..], &[0xe2][..]] {
            let mut s = Server::new(0);
            assert_eq!(s.on_input(bytes, true, 1), 0);
            assert_eq!(s.poll(), fell_back(Reason::PEERNOSMC, Reason::NONE));
        }
    }

    #[test]
    fn broken_proposals_reset() {
        let endless = [0xe2, 0xd4, 0xc3, 0xd9, 1, 0xff, 0xff, 0x22];
        let mut s = Server::new(0);
        assert_eq!(s.on_input(&endless, false, 1), 0);
        let error = WireError::Length;
        assert_eq!(s.poll(), reset(ResetCause::Protocol(error)));
        let mut bytes = [0; 156];
        for (to, from) in bytes.iter_mut().zip(proposal_bytes().as_slice()) {
            *to = *from;
        }
        bytes[80] = 9;
        let mut s = Server::new(0);
        assert_eq!(s.on_input(&bytes, false, 1), 0);
        let error = WireError::EidCount;
        assert_eq!(s.poll(), reset(ResetCause::Protocol(error)));
        let mut s = Server::new(0);
        assert!(!feed(&mut s, &accept_bytes(&accept(true))));
        let error = WireError::Unexpected;
        assert_eq!(s.poll(), reset(ResetCause::Protocol(error)));
        let mut s = Server::new(0);
        assert_eq!(s.on_input(bytes.split_at(100).0, true, 1), 0);
        assert_eq!(s.poll(), reset(ResetCause::PeerClosed));
    }

    #[test]
    fn time_outs_reset() {
        let mut s = Server::new(100);
        s.handle_timeout(6_099);
        assert_eq!(s.poll(), None);
        s.handle_timeout(6_100);
        assert_eq!(s.poll(), reset(ResetCause::TimedOut));
        let mut s = accepted(true);
        s.handle_timeout(6_030);
        assert_eq!(s.poll(), reset(ResetCause::TimedOut));
        assert!(!feed(&mut s, &confirm_bytes(&accept(true))));
    }

    #[test]
    fn the_client_declines() {
        let makers: [fn() -> Server; 4] = [
            || Server::new(0),
            proposed,
            || accepted(false),
            || confirmed(true),
        ];
        for make in makers {
            let mut s = make();
            assert!(feed(&mut s, &decline_bytes(Reason::SYNCERR)));
            assert!(s.poll_transmit().is_none());
            assert_eq!(s.poll(), fell_back(Reason::PEERDECL, Reason::SYNCERR));
            assert!(s.peer_out_of_sync());
        }
    }

    #[test]
    fn useless_proposals_are_declined() {
        let mut none = proposal();
        none.eids = crate::proto::eid::EidSet::new();
        let mut buf = ClcBuf::new();
        none.emit(&mut buf);
        let mut s = Server::new(0);
        assert!(feed(&mut s, &buf));
        assert_eq!(declined_with(s.poll_transmit()), Some(Reason::NOUEID));
        assert_eq!(s.poll(), fell_back(Reason::NOUEID, Reason::NONE));
        let offer = |v1, v2| {
            usable(&Proposal {
                v1,
                v2,
                ..proposal()
            })
        };
        use Offer::*;
        assert_eq!(offer(Neither, Neither), Err(Reason::PEERNOSMC));
        assert_eq!(offer(R, Neither), Err(Reason::VERSMISMAT));
        assert_eq!(offer(Both, D), Err(Reason::NOSMCDDEV));
        assert_eq!(offer(Both, Both), Ok(()));
        let mut s = Server::new(0);
        s.contact_failed(Reason::OPTUNSUPP, 1);
        assert!(feed(&mut s, &proposal_bytes()));
        assert_eq!(declined_with(s.poll_transmit()), Some(Reason::OPTUNSUPP));
        assert_eq!(s.poll(), fell_back(Reason::OPTUNSUPP, Reason::NONE));
    }

    #[test]
    fn a_decline_behind_a_useless_proposal_is_seen() {
        let refusing = || {
            let mut s = Server::new(0);
            s.contact_failed(Reason::OPTUNSUPP, 1);
            assert!(feed(&mut s, &proposal_bytes()));
            s
        };
        let mut s = refusing();
        assert!(feed(&mut s, &decline_bytes(Reason::SYNCERR)));
        assert!(s.poll_transmit().is_none());
        assert_eq!(s.poll(), fell_back(Reason::PEERDECL, Reason::SYNCERR));
        let mut s = refusing();
        assert_eq!(s.on_input(b"hello", false, 2), 0);
        assert!(s.poll_transmit().is_none());
        let error = WireError::HeadEyecatcher;
        assert_eq!(s.poll(), reset(ResetCause::Protocol(error)));
    }

    #[test]
    fn a_version_1_proposal_gets_a_version_1_decline() {
        #[rustfmt::skip]
        let v1 = [
            0xe2, 0xd4, 0xc3, 0xd9, 1, 0, 52, 0x10,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0xe2, 0xd4, 0xc3, 0xd9,
        ];
        let mut s = Server::new(0);
        assert_eq!(s.on_input(&v1, false, 1), 52);
        let msg = s.poll_transmit();
        assert_eq!(msg.as_ref().map(|m| m.as_slice().len()), Some(28));
        assert_eq!(declined_with(msg), Some(Reason::VERSMISMAT));
    }

    #[test]
    fn the_lower_layers_fail_at_each_step() {
        let mut s = proposed();
        s.contact_failed(Reason::MEM, 25);
        assert_eq!(declined_with(s.poll_transmit()), Some(Reason::MEM));
        assert_eq!(s.poll(), fell_back(Reason::MEM, Reason::NONE));
        for make in [|| accepted(true), || confirmed(false)] as [fn() -> Server; 2] {
            let mut s = make();
            s.contact_failed(Reason::MEM, 25);
            assert_eq!(s.poll(), reset(ResetCause::Failed(Reason::MEM)));
        }
    }

    #[test]
    fn first_contact_fails_late() {
        let mut s = confirmed(true);
        s.contact_failed(Reason::TIMEOUT_CL, 2_000);
        assert!(s.poll_transmit().is_none());
        s.handle_timeout(2_999);
        assert!(s.poll_transmit().is_none());
        s.handle_timeout(3_000);
        assert_eq!(declined_with(s.poll_transmit()), Some(Reason::TIMEOUT_CL));
        s.on_acked(3_100);
        // Crossed.
        assert!(feed(&mut s, &decline_bytes(Reason::TIMEOUT_CL)));
        assert_eq!(s.poll(), fell_back(Reason::PEERDECL, Reason::TIMEOUT_CL));
        // The client is faster: no DECLINE is sent.
        let mut s = confirmed(true);
        s.contact_failed(Reason::TIMEOUT_CL, 2_000);
        assert!(feed(&mut s, &decline_bytes(Reason::RMBE_EC)));
        assert!(s.poll_transmit().is_none());
        assert_eq!(s.poll(), fell_back(Reason::PEERDECL, Reason::RMBE_EC));
    }

    #[test]
    fn confirm_must_echo() {
        let fce = |release, conns, links| {
            accept(true).fce.map(|fce| FirstContact {
                release,
                max_conns: conns,
                max_links: links,
                ..fce
            })
        };
        let good = accept(true);
        let cases = [
            (fce(0, 32, 1), 3, Reason::RELEASEERR),
            (fce(1, 33, 1), 3, Reason::MAXCONNERR),
            (fce(1, 32, 2), 3, Reason::MAXLINKERR),
            (fce(1, 32, 1), 6, Reason::ERR_RDYLNK),
        ];
        for (fce, mtu, reason) in cases {
            let mut s = accepted(true);
            assert!(feed(&mut s, &confirm_bytes(&Accept { fce, mtu, ..good })));
            assert_eq!(declined_with(s.poll_transmit()), Some(reason));
            assert_eq!(s.poll(), None);
            s.on_acked(40);
            s.handle_timeout(1_040);
            assert_eq!(s.poll(), fell_back(reason, Reason::NONE));
        }
        let mut s = accepted(true);
        assert!(feed(&mut s, &confirm_bytes(&accept(false))));
        assert_eq!(declined_with(s.poll_transmit()), Some(Reason::RELEASEERR));
        let mut s = accepted(false);
        assert!(!feed(&mut s, &confirm_bytes(&accept(true))));
        let error = WireError::Unexpected;
        assert_eq!(s.poll(), reset(ResetCause::Protocol(error)));
    }
}
