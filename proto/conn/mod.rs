// SPDX-License-Identifier: GPL-2.0

//! One SMC-R connection after the handshake: what may be sent, read, acknowledged and closed when.
//!
//! [`Connection`] does the arithmetic only; bytes are copied, messages posted and threads woken by
//! the caller, who acts on returned values. Its parts: [`tx`] the way of data out of the send
//! buffer, [`rx`] the way of data into the application, [`plan`] what the next message says,
//! [`close`] who closed how, [`urgent`] the byte out of turn, [`input`] what a message from the
//! peer changes.
//!
//! The caller keeps one rule: after [`Connection::plan_tx`] returned a plan, it posts that plan
//! and then calls [`Connection::posted`] (or [`Connection::post_failed`]) once. Only one plan is
//! out between the two, so that messages leave in the order of their plans.

mod close;
mod input;
mod plan;
mod rx;
#[cfg(any(test, smc_rs_kunit))]
mod testing;
mod tx;
mod urgent;

use super::cursor::Cursor;
use super::ring::{
    Pos,
    RingSize, //
};
use super::wire::cdc::{
    ConnFlags,
    ProdFlags, //
};
#[cfg(any(test, fuzzing))]
pub(crate) use close::Phase;
pub(crate) use input::{
    PeerFault,
    RxEffects, //
};
#[cfg(any(test, fuzzing))]
pub(crate) use plan::Write;
pub(crate) use plan::{
    TxDone,
    TxPlan,
    MAX_WRITES, //
};
pub(crate) use rx::AckDecision;
pub(crate) use tx::{
    TxBlocked,
    TxGrant, //
};
pub(crate) use urgent::NoUrgent;

/// What the handshake settled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ConnConfig {
    /// Our send buffer.
    pub(crate) sndbuf: RingSize,
    /// Our receive buffer, into which the peer writes.
    pub(crate) rmb: RingSize,
    /// The peer's receive buffer.
    pub(crate) peer_rmb: RingSize,
    /// The peer's name for the connection.
    pub(crate) peer_token: u32,
    /// Fewer read bytes than this are not worth a message that only acknowledges them
    /// (half of SOCK_MIN_SNDBUF).
    pub(crate) ack_floor: u32,
}

/// State of one connection.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The way out.
    tx: tx::Tx,
    /// The way in.
    rx: rx::Rx,
    /// Who closed how.
    close: close::Close,
    /// The peer's name for the connection.
    peer_token: u32,
}

/// Cursors and flags for diagnosis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Snapshot {
    /// Up to where the application wrote, in the send buffer.
    pub(crate) tx_prep: Cursor,
    /// Up to where data was posted, in the send buffer.
    pub(crate) tx_sent: Cursor,
    /// Up to where posts completed, in the send buffer.
    pub(crate) tx_done: Cursor,
    /// Up to where data was posted, in the peer's receive buffer.
    pub(crate) peer_prod: Cursor,
    /// Up to where the peer read, in its receive buffer.
    pub(crate) peer_cons: Cursor,
    /// Up to where the peer wrote, in our receive buffer.
    pub(crate) rx_prod: Cursor,
    /// Up to where the application read, in our receive buffer.
    pub(crate) rx_cons: Cursor,
    /// Up to where the peer was told that we read.
    pub(crate) rx_confirmed: Cursor,
    /// Bytes that were posted so far.
    pub(crate) sent: Pos,
    /// Bytes that arrived so far.
    pub(crate) received: Pos,
    /// Bytes of them that were read or thrown away.
    pub(crate) read: Pos,
    /// State flags that we sent.
    pub(crate) local_state: ConnFlags,
    /// State flags that we got.
    pub(crate) peer_state: ConnFlags,
    /// Producer flags that we got last.
    pub(crate) peer_flags: ProdFlags,
    /// Sequence number of the last message out.
    pub(crate) tx_seq: u16,
    /// Sequence number of the last message in.
    pub(crate) rx_seq: u16,
}

impl Connection {
    /// A connection on which nothing has happened yet.
    pub(crate) fn new(config: ConnConfig) -> Self {
        Self {
            tx: tx::Tx::new(config.sndbuf, config.peer_rmb),
            rx: rx::Rx::new(config.rmb, config.ack_floor),
            close: close::Close::new(),
            peer_token: config.peer_token,
        }
    }

    /// Cursors and flags as they are now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let (tx, rx) = (&self.tx, &self.rx);
        Snapshot {
            tx_prep: Cursor::at(tx.prep, tx.ring),
            tx_sent: Cursor::at(tx.sent, tx.ring),
            tx_done: Cursor::at(tx.done, tx.ring),
            peer_prod: Cursor::at(tx.sent, tx.peer),
            peer_cons: Cursor::at(tx.acked, tx.peer),
            rx_prod: Cursor::at(rx.received, rx.ring),
            rx_cons: Cursor::at(rx.read, rx.ring),
            rx_confirmed: Cursor::at(rx.confirmed, rx.ring),
            sent: tx.sent,
            received: rx.received,
            read: rx.read,
            local_state: self.close.sent,
            peer_state: self.close.peer,
            peer_flags: rx.flags,
            tx_seq: tx.seq,
            rx_seq: rx.seq,
        }
    }
}

/// A count of bytes or messages as the callers want it.
fn size(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// A count of bytes from a caller; what doesn't fit is more than any ring has.
fn amount(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
