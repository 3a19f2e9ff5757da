// SPDX-License-Identifier: GPL-2.0

//! Sending and receiving: copies between the user's memory and the rings.

use super::Conn;
use crate::{
    ext::iov::MsgIter,
    proto::{
        conn::{
            AckDecision,
            NoUrgent,
            TxBlocked,
            TxGrant, //
        },
        ring::Segments, //
    },
    rmb::Ring, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    }, //
};

/// Most bytes one call copies while it holds the mutex.
const CHUNK: usize = 1 << 20;

/// A ring offset or length as the copies want it.
fn us(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// How a send ended that found no room.
fn errno(why: TxBlocked) -> Error {
    match why {
        TxBlocked::Full => EAGAIN,
        TxBlocked::Shut | TxBlocked::PeerClosed => EPIPE,
        TxBlocked::PeerAborted => ECONNRESET,
        TxBlocked::Dead => ECONNABORTED,
    }
}

impl Conn {
    /// Takes bytes from `from` into the send buffer and sends them, or, with `more` promised or
    /// other messages on their way, leaves small amounts for later.
    ///
    /// Returns how many were taken: maybe not all. `EAGAIN`: no room, WRITABLE will come. Process
    /// context; sleeps for the mutex (interruptibly) and for the user's pages only.
    pub(crate) fn send(self: &Arc<Self>, from: &mut MsgIter<'_>, more: bool) -> Result<usize> {
        self.send_as(from, more, false)
    }

    /// Like [`Conn::send`], and the last byte taken is urgent (MSG_OOB).
    pub(crate) fn send_urgent(self: &Arc<Self>, from: &mut MsgIter<'_>) -> Result<usize> {
        self.send_as(from, false, true)
    }

    /// Takes bytes; `urgent`: the last one is urgent.
    fn send_as(
        self: &Arc<Self>,
        from: &mut MsgIter<'_>,
        more: bool,
        urgent: bool,
    ) -> Result<usize> {
        let ring = self.tx.lock()?;
        let grant = self.start_send(from.count().min(CHUNK))?;
        let copied = ring.as_ref().map_or(0, |ring| fill(ring, &grant, from));
        let (sent, push, release) = {
            let mut core = self.core.lock();
            core.tx_busy = false;
            let (sent, push) = match core.conn.as_mut() {
                Some(conn) => {
                    // After a fault no more comes, whatever was promised.
                    let more = more && copied == grant.len();
                    let sent = if urgent {
                        conn.commit_urgent(grant, copied)
                    } else {
                        conn.commit_tx(grant, copied)
                    };
                    (sent, conn.should_push(more, self.autocork.load(Relaxed)))
                }
                None => (0, false),
            };
            (sent, push, core.take_release())
        };
        if push {
            self.push();
        } else {
            // What was held back goes out when a message completes.
            self.link.want_sent();
        }
        if release {
            self.release_soon();
        }
        match (sent, copied) {
            (0, 0) if from.count() > 0 => Err(EFAULT),
            // The connection was shut or cut off during the copy.
            (0, n) if n > 0 => Err(EPIPE),
            _ => Ok(sent),
        }
    }

    /// How many waiting bytes are few enough to wait for a message on its way to complete
    /// (automatic corking); 0: none.
    pub(crate) fn set_autocork(&self, bytes: u32) {
        self.autocork.store(bytes, Relaxed);
    }

    /// Posts what was held back for want of more (`more` was promised in vain). Never sleeps.
    pub(crate) fn uncork(self: &Arc<Self>) {
        self.push();
    }

    /// Reserves room for one copy.
    fn start_send(&self, want: usize) -> Result<TxGrant> {
        let mut core = self.core.lock();
        if let Some(error) = core.error {
            return Err(error);
        }
        if core.rings.is_none() {
            return Err(ENOTCONN);
        }
        let conn = core.conn.as_mut().ok_or(ENOTCONN)?;
        match conn.reserve_tx(want) {
            Ok(grant) => {
                core.tx_busy = true;
                Ok(grant)
            }
            Err(why) => {
                core.want_space |= why == TxBlocked::Full;
                drop(core);
                self.link.want_sent();
                Err(errno(why))
            }
        }
    }

    /// Gives up to `len` received bytes, after the next `skip` ones, to `to`; they stay if `peek`.
    /// `inline`: the urgent byte is one of them (SO_OOBINLINE).
    ///
    /// `Ok(0)`: the peer ended, all is read. `EAGAIN`: nothing there, READABLE will come. An error
    /// that cut the connection off comes after all data. Process context; sleeps for the mutex
    /// (interruptibly) and for the user's pages only.
    pub(crate) fn recv(
        self: &Arc<Self>,
        to: &mut MsgIter<'_>,
        len: usize,
        skip: usize,
        peek: bool,
        inline: bool,
    ) -> Result<usize> {
        let ring = self.rx.lock()?;
        let Some(segments) = self.start_recv(len.min(CHUNK), skip, inline)? else {
            return Ok(0);
        };
        let copied = ring.as_ref().map_or(0, |ring| drain(ring, &segments, to));
        self.end_recv(if peek { 0 } else { copied });
        if copied == 0 && !segments.is_empty() {
            return Err(EFAULT);
        }
        Ok(copied)
    }

    /// Throws up to `len` received bytes away (MSG_TRUNC); otherwise like [`Conn::recv`].
    pub(crate) fn discard(self: &Arc<Self>, len: usize, inline: bool) -> Result<usize> {
        let _rx = self.rx.lock()?;
        let Some(segments) = self.start_recv(len, 0, inline)? else {
            return Ok(0);
        };
        let n = segments.len();
        self.end_recv(n);
        Ok(n)
    }

    /// The urgent byte (MSG_OOB); `EINVAL`: there is none, or it is in the stream. `EAGAIN`: it
    /// is still on its way.
    pub(crate) fn recv_urgent(&self, peek: bool) -> Result<u8> {
        let mut core = self.core.lock();
        match core.conn.as_mut().map(|conn| conn.recv_urgent(peek)) {
            Some(Ok(byte)) => Ok(byte),
            Some(Err(NoUrgent::NotYet)) => Err(EAGAIN),
            Some(Err(NoUrgent::Invalid)) => Err(EINVAL),
            None => Err(ENOTCONN),
        }
    }

    /// Whether an urgent byte is there (POLLPRI), and whether reading is at the mark (SIOCATMARK).
    pub(crate) fn urgent(&self) -> (bool, bool) {
        let core = self.core.lock();
        let conn = core.conn.as_ref();
        conn.map_or((false, false), |conn| (conn.has_urgent(), conn.at_mark()))
    }

    /// SO_OOBINLINE.
    pub(crate) fn set_urgent_inline(&self, inline: bool) {
        if let Some(conn) = self.core.lock().conn.as_mut() {
            conn.set_urgent_inline(inline);
        }
    }

    /// Finds what can be read; `None` at the end.
    fn start_recv(&self, len: usize, skip: usize, inline: bool) -> Result<Option<Segments>> {
        let mut core = self.core.lock();
        let error = core.error;
        let conn = core.conn.as_mut().ok_or(ENOTCONN)?;
        conn.set_urgent_inline(inline);
        let segments = conn.reserve_rx(skip, len);
        if segments.is_empty() && len > 0 {
            if conn.peer_closed() || (conn.peer_done() && !conn.peer_aborted()) {
                return Ok(None);
            }
            let reset = conn.peer_aborted().then_some(ECONNRESET);
            return Err(reset.or(error).unwrap_or(EAGAIN));
        }
        if core.rings.is_none() {
            return Err(ENOTCONN);
        }
        core.rx_busy = true;
        Ok(Some(segments))
    }

    /// `n` bytes were read: tells the peer if it may be waiting for room.
    fn end_recv(self: &Arc<Self>, n: usize) {
        let (push, release) = {
            let mut core = self.core.lock();
            core.rx_busy = false;
            let ack = match core.conn.as_mut() {
                Some(conn) if n > 0 => conn.commit_rx(n) == AckDecision::SendNow,
                _ => false,
            };
            (ack, core.take_release())
        };
        if push {
            self.push();
        }
        if release {
            self.release_soon();
        }
    }
}

/// Copies from the user into the granted room; returns how many bytes.
fn fill(ring: &Ring, grant: &TxGrant, from: &mut MsgIter<'_>) -> usize {
    let mut copied = 0;
    for seg in grant.segments().iter() {
        let mem = ring.mem();
        let n = mem.copy_from_iter(us(seg.offset), us(seg.len), from);
        copied += n;
        if n < us(seg.len) {
            break;
        }
    }
    copied
}

/// Copies what was received to the user; returns how many bytes.
fn drain(ring: &Ring, segments: &Segments, to: &mut MsgIter<'_>) -> usize {
    let mut copied = 0;
    for seg in segments.iter() {
        ring.mr().sync_for_cpu(seg.offset, seg.len);
        let n = ring.mem().copy_to_iter(us(seg.offset), us(seg.len), to);
        copied += n;
        if n < us(seg.len) {
            break;
        }
    }
    copied
}
