// SPDX-License-Identifier: GPL-2.0

//! The link group side of a handshake: from the peer's first message to a usable connection.
//!
//! A [`Contact`] never sleeps on the peer: [`Contact::poll`] looks how far things are, and whatever
//! comes from the peer kicks the worker that calls it. It may sleep on local hardware.
//!
//! | | first contact | link group in use |
//! |---|---|---|
//! | server | new group, ACCEPT; at CONFIRM: link up, RMB registered, CONFIRM LINK and its answer | RMB confirmed if new, ACCEPT; at CONFIRM: ready |
//! | client | new group, link reachable, CONFIRM; at CONFIRM LINK: link up, RMB registered, answer | RMB confirmed if new, CONFIRM, ready |

mod client;
mod parts;
mod server;

use self::parts::Parts;
use super::Conn;
use crate::{
    lgr::Waiter,
    proto::{
        reason::Reason,
        wire::clc_accept::Accept, //
    }, //
};
use kernel::sync::Arc;

/// How far a contact is.
pub(crate) enum Progress {
    /// Nothing to do before the next wake-up.
    Pending,
    /// Server: send this ACCEPT.
    Accept(Accept),
    /// Client: send this CONFIRM.
    Confirm(Accept),
    /// The connection is usable.
    Ready(Arc<Conn>),
}

/// What comes next.
enum Step {
    /// The peer must answer CONFIRM RKEY.
    Rkey(Arc<Waiter>),
    /// Our message is due.
    Announce,
    /// Server: the CLC layer must bring CONFIRM.
    AwaitConfirm,
    /// CONFIRM LINK: the server waits for the answer, the client for the request.
    Link(Arc<Waiter>),
    /// Done.
    Ready,
    /// The connection was handed over, or the contact failed.
    Over,
}

/// Which side we are.
enum Side {
    /// We connected.
    Client,
    /// We accepted.
    Server(server::Peer),
}

/// A handshake with a peer. Dropped before it is ready it gives everything back, a first contact's
/// link group included. It holds the `wake` it was made with until it is dropped.
pub(crate) struct Contact {
    /// Which side we are.
    side: Side,
    /// Whether the group is new.
    first: bool,
    /// What comes next.
    step: Step,
    /// Connection, link and rings.
    parts: Parts,
    /// Our ACCEPT or CONFIRM.
    hello: Accept,
    /// Client: the server's ACCEPT.
    peer: Option<Accept>,
}

impl Contact {
    /// Advances; call it at each wake-up until it answers `Pending`, an error, or `Ready`. After
    /// an error drop it. Process context, may sleep on local hardware.
    pub(crate) fn poll(&mut self) -> Result<Progress, Reason> {
        let result = self.advance();
        if result.is_err() {
            self.step = Step::Over;
        }
        result
    }

    /// The peer declined with the out-of-sync flag: it doesn't know the link group that we took,
    /// so nobody else shall be put there.
    pub(crate) fn out_of_sync(&self) {
        if let Ok(group) = self.parts.group() {
            group.out_of_sync();
        }
    }

    /// One step.
    fn advance(&mut self) -> Result<Progress, Reason> {
        match &self.step {
            Step::Rkey(waiter) => match waiter.outcome() {
                None => Ok(Progress::Pending),
                Some(outcome) => {
                    outcome?;
                    self.parts.rmb_confirmed();
                    self.announce()
                }
            },
            Step::Announce => self.announce(),
            Step::AwaitConfirm => Ok(Progress::Pending),
            Step::Link(waiter) => match waiter.outcome() {
                None => Ok(Progress::Pending),
                Some(Err(reason)) => {
                    self.parts.avoid(reason);
                    Err(reason)
                }
                Some(Ok(())) => {
                    self.link_confirmed()?;
                    self.parts.works();
                    self.hand_over()
                }
            },
            Step::Ready => self.hand_over(),
            Step::Over => Err(Reason::INTERR),
        }
    }

    /// Our message goes out.
    fn announce(&mut self) -> Result<Progress, Reason> {
        match self.side {
            Side::Server(_) => {
                self.step = Step::AwaitConfirm;
                Ok(Progress::Accept(self.hello))
            }
            Side::Client => {
                self.step = self
                    .parts
                    .take_link_waiter()
                    .map_or(Step::Ready, Step::Link);
                Ok(Progress::Confirm(self.hello))
            }
        }
    }

    /// The other side did its part of CONFIRM LINK.
    fn link_confirmed(&mut self) -> Result<(), Reason> {
        match self.side {
            Side::Server(_) => self.parts.go_live(),
            Side::Client => self.finish_client_link(),
        }
    }

    /// The connection is usable.
    fn hand_over(&mut self) -> Result<Progress, Reason> {
        self.step = Step::Over;
        self.parts
            .hand_over()
            .map(Progress::Ready)
            .ok_or(Reason::INTERR)
    }
}
