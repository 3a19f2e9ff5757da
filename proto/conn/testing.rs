// SPDX-License-Identifier: GPL-2.0

//! Helpers of this folder's unit tests.

use super::super::cursor::Cursor;
use super::super::ring::{
    Pos,
    RingSize, //
};
use super::super::wire::cdc::Cdc;
use super::{
    ConnConfig,
    Connection,
    PeerFault,
    RxEffects,
    TxBlocked,
    TxPlan, //
};

/// Bytes of the send buffer and of our receive buffer.
pub(super) const OURS: u32 = 16384;
/// Bytes of the peer's receive buffer.
pub(super) const PEERS: u32 = 32768;

/// A step of a test went wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Oops;

impl From<PeerFault> for Oops {
    fn from(_: PeerFault) -> Self {
        Self
    }
}

impl From<TxBlocked> for Oops {
    fn from(_: TxBlocked) -> Self {
        Self
    }
}

/// A ring size.
fn ring(bytes: u32) -> Result<RingSize, Oops> {
    RingSize::new(bytes).ok_or(Oops)
}

/// A fresh connection.
pub(super) fn connection() -> Result<Connection, Oops> {
    Ok(Connection::new(ConnConfig {
        sndbuf: ring(OURS)?,
        rmb: ring(OURS)?,
        peer_rmb: ring(PEERS)?,
        peer_token: 7,
        ack_floor: 2304,
    }))
}

/// Commits `n` bytes.
pub(super) fn send(conn: &mut Connection, n: usize) -> Result<usize, Oops> {
    let grant = conn.reserve_tx(n)?;
    Ok(conn.commit_tx(grant, n))
}

/// Plans and posts.
pub(super) fn post(conn: &mut Connection) -> Result<TxPlan, Oops> {
    let plan = conn.plan_tx().ok_or(Oops)?;
    conn.posted();
    Ok(plan)
}

/// Commits, posts and completes `n` bytes.
pub(super) fn flush(conn: &mut Connection, n: usize) -> Result<TxPlan, Oops> {
    send(conn, n)?;
    let plan = post(conn)?;
    let _ = conn.tx_complete(plan.done);
    Ok(plan)
}

/// The peer's message number `seq`: it wrote and read so many bytes since the beginning.
pub(super) fn message(seq: u16, wrote: u64, read: u64) -> Result<Cdc, Oops> {
    Ok(Cdc {
        seq,
        token: 9,
        prod: Cursor::at(Pos::new(wrote), ring(OURS)?),
        cons: Cursor::at(Pos::new(read), ring(PEERS)?),
        ..Cdc::default()
    })
}

/// The peer wrote and read so much.
pub(super) fn input(
    conn: &mut Connection,
    seq: u16,
    wrote: u64,
    read: u64,
) -> Result<RxEffects, Oops> {
    Ok(conn.on_cdc(&message(seq, wrote, read)?)?)
}
