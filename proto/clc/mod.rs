// SPDX-License-Identifier: GPL-2.0

//! The CLC handshake over TCP (RFC 7609, 3.5) as two machines without I/O: [`Client`] and
//! [`Server`].
//!
//! The one rule above all: no byte of a CLC message may reach an application, in neither
//! direction. So a side falls back to TCP only when it knows that the other does so too and has
//! no CLC message under way, or that the other never spoke CLC; in all other cases the
//! connection is reset. What that means for each state is told in `client` and `server`.
//!
//! How to drive a machine, under the lock of the TCP socket:
//! 1. peek up to [`PEEK_MAX`] bytes, call `on_input`, consume what it says, repeat until it says 0;
//! 2. call `on_acked` if TCP has acknowledged all that was sent;
//! 3. call `handle_timeout`;
//! 4. send what `poll_transmit` gives until it gives nothing, each message as a whole;
//! 5. act on what `poll` gives until it gives nothing. A decision comes only after everything
//!    was taken from `poll_transmit`, and nothing comes after it.
//!
//! This order matters: a DECLINE that is already here must be seen before one is sent.

mod client;
mod common;
mod negotiate;
#[cfg(any(test, fuzzing, smc_rs_kunit))]
pub(crate) mod samples;
mod server;
mod stream;

pub(crate) use client::{
    Client,
    ClientEvent, //
};
pub(crate) use negotiate::{
    Limits,
    Terms, //
};
pub(crate) use server::{
    Server,
    ServerEvent, //
};

use crate::proto::{
    reason::Reason,
    time::Ms,
    wire::{
        clc::MSG_MAX,
        WireError, //
    },
};

/// How many bytes must be peeked so that every message can be seen as a whole.
pub(crate) const PEEK_MAX: usize = MSG_MAX;

/// How long to wait for PROPOSAL, ACCEPT, CONFIRM.
pub(crate) const WAIT: Ms = 6_000;
/// How long to wait for a DECLINE that may come.
pub(crate) const WAIT_SHORT: Ms = 1_000;

/// How the handshake ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// SMC.
    Smc,
    /// TCP.
    Fallback {
        /// Our reason; `PEERDECL` if the peer declined.
        reason: Reason,
        /// The peer's reason, or `NONE`.
        peer: Reason,
    },
    /// Neither: the TCP connection must be reset.
    Reset(ResetCause),
}

/// Why a connection is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResetCause {
    /// The peer did not answer in time (`ETIMEDOUT`).
    TimedOut,
    /// The peer broke the protocol (`EPROTO`).
    Protocol(WireError),
    /// The peer closed its side in the middle of the handshake (`ECONNRESET`).
    PeerClosed,
    /// Something failed here when it was too late to fall back.
    Failed(Reason),
}
