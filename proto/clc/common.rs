// SPDX-License-Identifier: GPL-2.0

//! What the client's and the server's machine have in common: the message to send, the timer,
//! the decision, and the end of a first contact that failed late.
//!
//! After CONFIRM on first contact both sides still listen for a DECLINE until CONFIRM LINK is
//! through, and both may send one, so that two DECLINEs can cross. Neither may be left for the
//! application:
//! * Who fails waits for the other's DECLINE a while ([`Late::Await`]); if it comes, that's it,
//!   and none is sent.
//! * Else a DECLINE is sent, and the other's may be under way ([`Late::Chase`]). It is looked for
//!   until one of these tells: other bytes or the end of the stream (the other fell back and sends
//!   no DECLINE any more); or our DECLINE was acknowledged and nothing came for another while: the
//!   other sends none once ours is in its queue, and one sent before lies in front of the
//!   acknowledgment in the stream. If our DECLINE is not acknowledged in time, or a part of a
//!   message is there, nobody knows, and the connection is reset.

use super::{
    stream::Input,
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
        clc_decline::Decline,
        WireError,
    },
};

/// Where a first contact that failed after CONFIRM stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// Waiting for the peer's DECLINE before sending one.
    Await,
    /// Our DECLINE was sent; the peer's may be under way.
    Chase {
        /// TCP has acknowledged ours.
        acked: bool,
        /// A part of a message is there.
        partial: bool,
    },
}

/// State that both machines have.
#[derive(Debug)]
#[cfg_attr(any(test, fuzzing), derive(Clone))]
pub(super) struct Common {
    /// The message to send next.
    tx: Option<ClcBuf>,
    /// Why a DECLINE is going to be sent, unless the peer's own is here already.
    refused: Option<Reason>,
    /// The decision, once there is one.
    outcome: Option<Outcome>,
    /// The decision was given out.
    told: bool,
    /// When something has to happen.
    pub(super) timer: Deadline,
    /// Version of a DECLINE that would be sent.
    pub(super) version: u8,
    /// Our system id for a DECLINE, zero as long as it is not known.
    pub(super) peer_id: [u8; 8],
    /// The peer declined because it doesn't know the link group.
    pub(super) out_of_sync: bool,
}

impl Common {
    /// A fresh one.
    pub(super) fn new() -> Self {
        Self {
            tx: None,
            refused: None,
            outcome: None,
            told: false,
            timer: Deadline::NONE,
            version: 1,
            peer_id: [0; 8],
            out_of_sync: false,
        }
    }

    /// Whether it is decided.
    pub(super) fn decided(&self) -> bool {
        self.outcome.is_some()
    }

    /// Whether a message waits to be sent.
    pub(super) fn sending(&self) -> bool {
        self.tx.is_some()
    }

    /// Sends a message.
    pub(super) fn send(&mut self, emit: impl FnOnce(&mut ClcBuf)) {
        emit(self.tx.insert(ClcBuf::new()));
    }

    /// Sends a DECLINE.
    pub(super) fn send_decline(&mut self, reason: Reason) {
        let decline = Decline::new(self.version, self.peer_id, reason);
        self.send(|buf| decline.emit(buf));
    }

    /// Decides.
    fn decide(&mut self, outcome: Outcome) {
        if self.outcome.is_none() {
            self.outcome = Some(outcome);
            self.timer = Deadline::NONE;
        }
    }

    /// Decides for SMC.
    pub(super) fn smc(&mut self) {
        self.decide(Outcome::Smc);
    }

    /// Decides for TCP.
    pub(super) fn fall_back(&mut self, reason: Reason, peer: Reason) {
        self.decide(Outcome::Fallback { reason, peer });
    }

    /// Decides for TCP after telling the peer.
    pub(super) fn decline(&mut self, reason: Reason) {
        self.send_decline(reason);
        self.fall_back(reason, Reason::NONE);
    }

    /// Like [`Common::decline`], but after the rest of the input was looked at: the peer may have
    /// declined meanwhile, and then its DECLINE must not be left for the application.
    pub(super) fn refuse(&mut self, reason: Reason) {
        self.refused = Some(reason);
    }

    /// Decides for a reset.
    pub(super) fn reset(&mut self, cause: ResetCause) {
        self.tx = None;
        self.decide(Outcome::Reset(cause));
    }

    /// The peer broke the protocol.
    pub(super) fn violation(&mut self, error: WireError) {
        self.reset(ResetCause::Protocol(error));
    }

    /// A whole DECLINE has come: TCP, or a reset if it is not valid. Gives what to consume.
    pub(super) fn declined(&mut self, peeked: &[u8], length: usize) -> usize {
        match Decline::parse(peeked) {
            Ok(decline) => {
                self.out_of_sync = decline.out_of_sync;
                self.tx = None;
                self.fall_back(Reason::PEERDECL, decline.reason);
                length
            }
            Err(error) => {
                self.violation(error);
                0
            }
        }
    }

    /// Input where only a DECLINE may come. Gives what to consume.
    pub(super) fn only_decline(&mut self, input: Input, peeked: &[u8]) -> usize {
        match input {
            Input::Wait => {}
            Input::Message(header) if header.kind == Kind::Decline => {
                return self.declined(peeked, header.length);
            }
            Input::Message(_) => self.violation(WireError::Unexpected),
            Input::Eof | Input::EofInside => self.reset(ResetCause::PeerClosed),
            Input::NotClc => self.violation(WireError::HeadEyecatcher),
            Input::Bad(error) => self.violation(error),
        }
        0
    }

    /// First contact failed after CONFIRM: waits for the peer's DECLINE until `until`.
    pub(super) fn late(&mut self, until: Deadline) -> Late {
        self.timer = until;
        Late::Await
    }

    /// First contact failed after CONFIRM: sends a DECLINE.
    pub(super) fn late_decline(&mut self, reason: Reason, now: Ms) -> Late {
        self.send_decline(reason);
        self.timer = Deadline::after(now, WAIT);
        Late::Chase {
            acked: false,
            partial: false,
        }
    }

    /// Input after first contact has failed late. Gives what to consume.
    pub(super) fn late_input(
        &mut self,
        late: &mut Late,
        reason: Reason,
        input: Input,
        peeked: &[u8],
    ) -> usize {
        let Late::Chase { partial, .. } = late else {
            return self.only_decline(input, peeked);
        };
        match input {
            Input::Wait => *partial = !peeked.is_empty(),
            // The peer fell back: these are the application's bytes, or its end.
            Input::NotClc | Input::Eof => self.fall_back(reason, Reason::NONE),
            _ => return self.only_decline(input, peeked),
        }
        0
    }

    /// TCP has acknowledged everything after first contact has failed late.
    pub(super) fn late_acked(&mut self, late: &mut Late, now: Ms) {
        if let Late::Chase {
            acked: acked @ false,
            ..
        } = late
        {
            *acked = true;
            self.timer = Deadline::after(now, WAIT_SHORT);
        }
    }

    /// The timer has expired after first contact has failed late.
    pub(super) fn late_timeout(&mut self, late: &mut Late, reason: Reason, now: Ms) {
        match *late {
            Late::Await => *late = self.late_decline(reason, now),
            Late::Chase {
                acked: true,
                partial: false,
            } => self.fall_back(reason, Reason::NONE),
            Late::Chase { .. } => self.reset(ResetCause::TimedOut),
        }
    }

    /// Gives the message to send.
    pub(super) fn poll_transmit(&mut self) -> Option<ClcBuf> {
        if let (Some(reason), None) = (self.refused.take(), self.outcome) {
            self.decline(reason);
        }
        self.tx.take()
    }

    /// Gives the decision, once, when nothing is left to send.
    pub(super) fn poll(&mut self) -> Option<Outcome> {
        if self.told || self.tx.is_some() {
            return None;
        }
        let outcome = self.outcome?;
        self.told = true;
        Some(outcome)
    }
}
