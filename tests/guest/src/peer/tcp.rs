// SPDX-License-Identifier: GPL-2.0
//! The peer's own TCP: enough of it to open a connection in each way, to say anything, and to
//! read what comes. Nothing is sent twice: the wire loses nothing.

use std::net::SocketAddrV4;
use std::sync::mpsc;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use super::wire::Flags;
use super::wire::Segment;
use super::wire::Wire;
use crate::ensure;
use crate::Fail;

/// Longer than anything in a slow guest should take.
pub const LONG: Duration = Duration::from_secs(20);

/// The SMC option as it is in a SYN.
pub const SMC: &[u8] = &[254, 6, 0xe2, 0xd4, 0xc3, 0xd9];

/// How the peer opens its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// It sends SYN, with these options besides MSS.
    Client(&'static [u8]),
    /// It answers SYN by SYN-ACK, with these options besides MSS.
    Server(&'static [u8]),
    /// It answers SYN by a SYN, with these options besides MSS: both sides are clients.
    Crossed(&'static [u8]),
}

/// A connection, the peer's end.
pub struct Conn {
    wire: Arc<Wire>,
    rx: mpsc::Receiver<Segment>,
    me: SocketAddrV4,
    host: SocketAddrV4,
    snd_nxt: u32,
    rcv_nxt: u32,
    /// What the host has acknowledged.
    acked: u32,
    /// Receive window that is told.
    pub window: u16,
    /// Whether what comes is acknowledged.
    pub acks: bool,
    /// What came and was not read.
    pub stream: Vec<u8>,
    /// The host sent FIN.
    pub fin: bool,
    /// The host sent RST.
    pub rst: bool,
}

const SYN: Flags = Flags {
    syn: true,
    ack: false,
    fin: false,
    rst: false,
    urg: None,
};
const ACK: Flags = Flags {
    syn: false,
    ack: true,
    ..SYN
};
const SYN_ACK: Flags = Flags { ack: true, ..SYN };

impl Conn {
    /// A connection that is not open; the host's port is not known where it is the client.
    pub fn new(
        wire: Arc<Wire>,
        rx: mpsc::Receiver<Segment>,
        me: SocketAddrV4,
        host: SocketAddrV4,
    ) -> Self {
        Self {
            wire,
            rx,
            me,
            host,
            // Wraps soon: sequence numbers are modular.
            snd_nxt: 0xffff_fff0,
            rcv_nxt: 0,
            acked: 0,
            window: 65_535,
            acks: true,
            stream: Vec::new(),
            fin: false,
            rst: false,
        }
    }

    /// Another connection between the same hosts, from another port.
    pub fn twin(&self) -> Self {
        let me = SocketAddrV4::new(*self.me.ip(), self.me.port() + 1);
        let rx = self.wire.claim(me);
        Self::new(self.wire.clone(), rx, me, self.host)
    }

    /// Opens it.
    pub fn open(&mut self, how: Open) -> Result<(), Fail> {
        let deadline = Instant::now() + LONG;
        match how {
            Open::Client(options) => {
                let mut answer = None;
                // A busy host may drop a SYN.
                while answer.is_none() && Instant::now() < deadline {
                    self.send(SYN, options_with_mss(options), &[])?;
                    let soon = Instant::now() + Duration::from_secs(1);
                    let wanted = |s: &Segment| s.flags.syn && s.flags.ack;
                    answer = self.handshake("SYN-ACK", soon, wanted).ok();
                }
                let answer = answer.ok_or("no SYN-ACK from the host")?;
                self.rcv_nxt = answer.seq.wrapping_add(1);
            }
            Open::Server(options) => {
                let syn = self.handshake("SYN", deadline, |s| s.flags.syn)?;
                self.opened_by(&syn)?;
                self.send(SYN_ACK, options_with_mss(options), &[])?;
            }
            Open::Crossed(options) => {
                let syn = self.handshake("SYN", deadline, |s| s.flags.syn)?;
                self.opened_by(&syn)?;
                self.send(SYN, options_with_mss(options), &[])?;
                self.handshake("SYN-ACK to a SYN", deadline, |s| s.flags.syn && s.flags.ack)?;
                // The host may have missed nothing, but waits for our SYN to be acknowledged.
                let seq = self.snd_nxt;
                self.send_at(seq, SYN_ACK, options_with_mss(options), &[])?;
            }
        }
        self.snd_nxt = self.snd_nxt.wrapping_add(1);
        match how {
            Open::Client(_) => self.ack(),
            _ => Ok(()),
        }
    }

    /// The host is a client: it must have offered SMC.
    fn opened_by(&mut self, syn: &Segment) -> Result<(), Fail> {
        let offered = syn.options.windows(SMC.len()).any(|part| part == SMC);
        ensure!(
            offered,
            "no SMC option in the host's SYN: {:02x?}",
            syn.options
        );
        self.host = syn.from;
        self.rcv_nxt = syn.seq.wrapping_add(1);
        Ok(())
    }

    /// Waits for a segment of the opening.
    fn handshake(
        &mut self,
        what: &str,
        deadline: Instant,
        wanted: impl Fn(&Segment) -> bool,
    ) -> Result<Segment, Fail> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let segment = self
                .rx
                .recv_timeout(left)
                .map_err(|_| Fail(format!("no {what} from the host")))?;
            if wanted(&segment) {
                return Ok(segment);
            }
            ensure!(!segment.flags.rst, "RST instead of {what}");
        }
    }

    fn send(&self, flags: Flags, options: Vec<u8>, data: &[u8]) -> Result<(), Fail> {
        self.send_at(self.snd_nxt, flags, options, data)
    }

    fn send_at(&self, seq: u32, flags: Flags, options: Vec<u8>, data: &[u8]) -> Result<(), Fail> {
        self.wire.segment(&Segment {
            from: self.me,
            to: self.host,
            flags,
            seq,
            ack: self.rcv_nxt,
            window: self.window,
            options,
            data: data.to_vec(),
        })
    }

    /// Acknowledges what came.
    pub fn ack(&self) -> Result<(), Fail> {
        self.send(ACK, Vec::new(), &[])
    }

    /// Sends bytes in one segment; `urgent`: which of them is urgent, from 1 on.
    pub fn say(&mut self, data: &[u8], urgent: Option<u16>) -> Result<(), Fail> {
        let flags = Flags { urg: urgent, ..ACK };
        self.send(flags, Vec::new(), data)?;
        self.snd_nxt = self.snd_nxt.wrapping_add(data.len() as u32);
        Ok(())
    }

    /// Sends FIN.
    pub fn say_fin(&mut self) -> Result<(), Fail> {
        self.send(Flags { fin: true, ..ACK }, Vec::new(), &[])?;
        self.snd_nxt = self.snd_nxt.wrapping_add(1);
        Ok(())
    }

    /// Sends RST.
    pub fn say_rst(&self) -> Result<(), Fail> {
        self.send(Flags { rst: true, ..ACK }, Vec::new(), &[])
    }

    /// Whether the host acknowledged all that was said.
    pub fn all_acked(&self) -> bool {
        self.acked == self.snd_nxt
    }

    /// Takes one segment in; false when the time is over.
    pub fn pump(&mut self, deadline: Instant) -> Result<bool, Fail> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.rx.recv_timeout(left) {
            Ok(segment) => self.take(&segment).map(|()| true),
            Err(_) => Ok(false),
        }
    }

    fn take(&mut self, s: &Segment) -> Result<(), Fail> {
        if s.from != self.host {
            return Ok(());
        }
        if s.flags.rst {
            self.rst = true;
            return Ok(());
        }
        if s.flags.ack {
            self.acked = s.ack;
        }
        let before = self.rcv_nxt;
        // What came twice is skipped; what is missing will come again.
        let skip = before.wrapping_sub(s.seq) as usize;
        if let Some(new) = s.data.get(skip..) {
            self.stream.extend_from_slice(new);
            self.rcv_nxt = before.wrapping_add(new.len() as u32);
            if s.flags.fin && !self.fin && !s.flags.syn {
                self.fin = true;
                self.rcv_nxt = self.rcv_nxt.wrapping_add(1);
            }
        }
        // Keep-alives and window probes have an old number and want an answer, too.
        if self.acks && (self.rcv_nxt != before || s.seq != before) && !s.flags.syn {
            self.ack()?;
        }
        Ok(())
    }
}

/// MSS and more options, padded.
fn options_with_mss(more: &[u8]) -> Vec<u8> {
    let mut options = vec![2, 4, 0x05, 0xb4];
    options.extend_from_slice(more);
    while options.len() % 4 != 0 {
        options.push(1);
    }
    options
}
