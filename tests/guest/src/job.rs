// SPDX-License-Identifier: GPL-2.0
//! What client and server do over one connection. The client says it in a header of 64
//! bytes, so that one server serves every job.

use std::fmt::Write;
use std::io;
use std::thread;
use std::time::Duration;

use sha2::Digest;
use sha2::Sha256;

use crate::ensure;
use crate::rng::Rng;
use crate::sock::Sock;
use crate::transport;
use crate::Context;
use crate::Fail;

/// Length of the header, and of the answer to a short connection.
pub const HEADER: usize = 64;
const MAGIC: u64 = 0x736d_6374_0001;

/// The kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Kind {
    /// Random data both ways at once, digests at both ends.
    Data = 1,
    /// Rounds of `size` bytes there and back.
    PingPong = 2,
    /// `bytes` bytes from client to server in writes of `size`.
    Stream = 3,
    /// 64 bytes each way, then close: the header is all there is.
    Short = 4,
    /// One byte from the server, then wait for the end of the connection.
    Hold = 5,
    /// Data, then the end of that direction, then data the other way; the client begins.
    Half = 6,
    /// The same; the server begins.
    HalfBack = 7,
    /// Data, and the socket is closed at once; the client sends.
    Flush = 8,
    /// The same; the server sends.
    FlushBack = 9,
    /// The client closes with data unread and no linger time: a reset for the server.
    Abort = 10,
    /// The same; the server closes.
    AbortBack = 11,
    /// An urgent byte from the client in the middle of data.
    Urgent = 12,
    /// The same; the server sends.
    UrgentBack = 13,
}

/// One job.
#[derive(Clone, Debug)]
pub struct Job {
    /// What to do.
    pub kind: Kind,
    /// Size of one message or write; for data the largest chunk.
    pub size: usize,
    /// Rounds.
    pub rounds: u64,
    /// Bytes from client to server.
    pub bytes: u64,
    /// Bytes from server to client.
    pub back: u64,
    /// Seed of the random data.
    pub seed: u64,
}

impl Job {
    /// The header.
    pub fn emit(&self) -> [u8; HEADER] {
        let fields = [
            MAGIC,
            self.kind as u64,
            self.size as u64,
            self.rounds,
            self.bytes,
            self.back,
            self.seed,
        ];
        let mut out = [0; HEADER];
        for (slot, field) in out.chunks_exact_mut(8).zip(fields) {
            slot.copy_from_slice(&field.to_le_bytes());
        }
        out
    }

    /// Reads a header.
    pub fn parse(data: &[u8; HEADER]) -> Result<Self, Fail> {
        let field = |i: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&data[i * 8..i * 8 + 8]);
            u64::from_le_bytes(bytes)
        };
        ensure!(field(0) == MAGIC, "header is garbage: {data:02x?}");
        let kind = match field(1) {
            1 => Kind::Data,
            2 => Kind::PingPong,
            3 => Kind::Stream,
            4 => Kind::Short,
            5 => Kind::Hold,
            6 => Kind::Half,
            7 => Kind::HalfBack,
            8 => Kind::Flush,
            9 => Kind::FlushBack,
            10 => Kind::Abort,
            11 => Kind::AbortBack,
            12 => Kind::Urgent,
            13 => Kind::UrgentBack,
            other => return Err(format!("no job {other}").into()),
        };
        Ok(Self {
            kind,
            size: field(2) as usize,
            rounds: field(3),
            bytes: field(4),
            back: field(5),
            seed: field(6),
        })
    }
}

/// What went over the connection, as far as it was counted.
#[derive(Debug, Default)]
pub struct Facts {
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// SHA-256 of what came in.
    pub digest: String,
}

/// Sends random data in random chunks, then its digest.
fn send_random(sock: &Sock, bytes: u64, max: usize, seed: u64) -> Result<(), Fail> {
    let (mut data, mut sizes) = (Rng::new(seed), Rng::new(seed ^ 0x5a5a));
    let mut digest = Sha256::new();
    let mut buffer = vec![0u8; max];
    let mut left = bytes;
    while left > 0 {
        let n = sizes.size(max).min(usize::try_from(left).unwrap_or(max));
        let chunk = &mut buffer[..n];
        data.fill(chunk);
        digest.update(&*chunk);
        sock.send_all(chunk)
            .context(&format!("send with {left} bytes to go"))?;
        left -= n as u64;
    }
    sock.send_all(&digest.finalize())
        .context("send of the digest")
}

/// Receives in random pieces what [`send_random`] sent, and compares the digests.
fn recv_random(sock: &Sock, bytes: u64, max: usize, seed: u64) -> Result<String, Fail> {
    let mut sizes = Rng::new(seed ^ 0xa5a5);
    let mut digest = Sha256::new();
    let mut buffer = vec![0u8; max];
    let mut left = bytes;
    while left > 0 {
        let n = sizes.size(max).min(usize::try_from(left).unwrap_or(max));
        let n = match sock.recv(&mut buffer[..n], 0) {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(format!("recv with {left} bytes to come: {e}").into()),
        };
        ensure!(n > 0, "end of stream with {left} of {bytes} bytes to come");
        digest.update(&buffer[..n]);
        left -= n as u64;
    }
    let mine = digest.finalize();
    let mut theirs = [0u8; 32];
    sock.recv_all(&mut theirs).context("recv of the digest")?;
    ensure!(mine[..] == theirs, "SHA-256 differs after {bytes} bytes");
    let mut text = String::new();
    for byte in mine {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Both directions at once, each with its own thread.
fn data(sock: &Sock, out: (u64, u64), back: (u64, u64), max: usize) -> Result<Facts, Fail> {
    let ((send_bytes, send_seed), (recv_bytes, recv_seed)) = (out, back);
    let digest = thread::scope(|s| {
        let sender = s.spawn(|| send_random(sock, send_bytes, max, send_seed));
        let received = recv_random(sock, recv_bytes, max, recv_seed);
        if received.is_err() {
            // Let the sender out, should it be stuck.
            let _ = sock.shutdown(libc::SHUT_RDWR);
        }
        let sent = sender.join().map_err(|_| Fail::from("sender panicked"))?;
        let digest = received?;
        sent.map(|()| digest)
    })?;
    Ok(Facts {
        sent: send_bytes,
        received: recv_bytes,
        digest,
    })
}

/// The stream ends here.
fn recv_end(sock: &Sock) -> Result<(), Fail> {
    let mut byte = [0];
    let n = sock.recv(&mut byte, 0).context("recv of the end")?;
    ensure!(n == 0, "data instead of the end");
    Ok(())
}

/// Sends, ends that direction, then receives up to the end.
fn half_first(sock: &Sock, out: (u64, u64), back: (u64, u64), max: usize) -> Result<Facts, Fail> {
    send_random(sock, out.0, max, out.1)?;
    sock.shutdown(libc::SHUT_WR).context("shutdown")?;
    let digest = recv_random(sock, back.0, max, back.1)?;
    recv_end(sock)?;
    Ok(Facts {
        sent: out.0,
        received: back.0,
        digest,
    })
}

/// Receives up to the end, then sends, and ends that direction too.
fn half_second(sock: &Sock, out: (u64, u64), back: (u64, u64), max: usize) -> Result<Facts, Fail> {
    let digest = recv_random(sock, back.0, max, back.1)?;
    recv_end(sock)?;
    send_random(sock, out.0, max, out.1)?;
    sock.shutdown(libc::SHUT_WR).context("shutdown")?;
    Ok(Facts {
        sent: out.0,
        received: back.0,
        digest,
    })
}

/// Sends; the caller closes the socket at once.
fn flush_first(sock: &Sock, out: (u64, u64), max: usize) -> Result<Facts, Fail> {
    send_random(sock, out.0, max, out.1)?;
    Ok(Facts {
        sent: out.0,
        ..Facts::default()
    })
}

/// Lets data pile up, then receives up to the end.
fn flush_second(sock: &Sock, back: (u64, u64), max: usize) -> Result<Facts, Fail> {
    thread::sleep(Duration::from_millis(500));
    let digest = recv_random(sock, back.0, max, back.1)?;
    recv_end(sock)?;
    Ok(Facts {
        received: back.0,
        digest,
        ..Facts::default()
    })
}

/// Waits until data came in, leaves it unread; the caller closes.
fn abort_first(sock: &Sock) -> Result<Facts, Fail> {
    let mut byte = [0];
    sock.recv(&mut byte, libc::MSG_PEEK).context("peek")?;
    sock.set_linger(true, 0)?;
    Ok(Facts::default())
}

/// Sends something that nobody reads, and waits for the reset.
fn abort_second(sock: &Sock) -> Result<Facts, Fail> {
    sock.send_all(b"unread")?;
    let mut byte = [0];
    let got = sock.recv(&mut byte, 0);
    let reset = match &got {
        Err(e) => e.raw_os_error() == Some(libc::ECONNRESET),
        // Upstream's module looks for the end of the stream first, and keeps the error.
        Ok(0) if transport::is_upstream() => {
            sock.get_int(libc::SOL_SOCKET, libc::SO_ERROR)? == libc::ECONNRESET
        }
        Ok(_) => false,
    };
    ensure!(reset, "recv gave {got:?} instead of a reset");
    Ok(Facts::default())
}

/// Sends an urgent byte, and waits until the other end is done.
fn urgent_first(sock: &Sock) -> Result<Facts, Fail> {
    sock.send_all(b"abc")?;
    ensure!(sock.send(b"!", libc::MSG_OOB)? == 1, "urgent byte not sent");
    sock.send_all(b"def")?;
    sock.recv_all(&mut [0])?;
    Ok(Facts::default())
}

/// The urgent byte is out of the stream, and in its place there is nothing.
fn urgent_second(sock: &Sock) -> Result<Facts, Fail> {
    let events = sock.poll(libc::POLLPRI, Duration::from_secs(10))?;
    ensure!(events & libc::POLLPRI != 0, "no urgent data within 10 s");
    let mut byte = [0];
    ensure!(sock.recv(&mut byte, libc::MSG_OOB)? == 1, "no urgent byte");
    ensure!(&byte == b"!", "urgent byte is {byte:?}");
    let mut data = [0; 6];
    sock.recv_all(&mut data)?;
    ensure!(&data == b"abcdef", "stream is {data:?}");
    sock.send_all(b".")?;
    Ok(Facts::default())
}

/// The server's part, after the header.
pub fn serve(sock: &Sock, job: &Job) -> Result<Facts, Fail> {
    let mut buffer = vec![0u8; job.size.max(HEADER)];
    let (out, back) = ((job.bytes, job.seed), (job.back, job.seed ^ 1));
    match job.kind {
        Kind::Data => return data(sock, back, out, job.size),
        Kind::Half => return half_second(sock, back, out, job.size),
        Kind::HalfBack => return half_first(sock, back, out, job.size),
        Kind::Flush => return flush_second(sock, out, job.size),
        Kind::FlushBack => return flush_first(sock, back, job.size),
        Kind::Abort => return abort_second(sock),
        Kind::AbortBack => return abort_first(sock),
        Kind::Urgent => return urgent_second(sock),
        Kind::UrgentBack => return urgent_first(sock),
        Kind::PingPong => {
            for _ in 0..job.rounds {
                sock.recv_all(&mut buffer[..job.size])?;
                sock.send_all(&buffer[..job.size])?;
            }
        }
        Kind::Stream => {
            let mut left = job.bytes;
            while left > 0 {
                let n = sock.recv(&mut buffer, 0)?;
                ensure!(n > 0, "end of stream with {left} bytes to come");
                left -= n as u64;
            }
            sock.send_all(b"!")?;
        }
        Kind::Short => sock.send_all(&buffer[..HEADER])?,
        Kind::Hold => {
            sock.send_all(b"!")?;
            let n = sock.recv(&mut buffer, 0)?;
            ensure!(n == 0, "unexpected data");
        }
    }
    Ok(Facts {
        received: job.bytes,
        ..Facts::default()
    })
}

/// The client's part, after the header.
pub fn drive(sock: &Sock, job: &Job) -> Result<Facts, Fail> {
    let mut buffer = vec![0u8; job.size.max(HEADER)];
    let (out, back) = ((job.bytes, job.seed), (job.back, job.seed ^ 1));
    match job.kind {
        Kind::Data => return data(sock, out, back, job.size),
        Kind::Half => return half_first(sock, out, back, job.size),
        Kind::HalfBack => return half_second(sock, out, back, job.size),
        Kind::Flush => return flush_first(sock, out, job.size),
        Kind::FlushBack => return flush_second(sock, back, job.size),
        Kind::Abort => return abort_first(sock),
        Kind::AbortBack => return abort_second(sock),
        Kind::Urgent => return urgent_first(sock),
        Kind::UrgentBack => return urgent_second(sock),
        Kind::PingPong => {
            for _ in 0..job.rounds {
                sock.send_all(&buffer[..job.size])?;
                sock.recv_all(&mut buffer[..job.size])?;
            }
        }
        Kind::Stream => {
            let mut left = job.bytes;
            while left > 0 {
                let n = buffer.len().min(left as usize);
                sock.send_all(&buffer[..n])?;
                left -= n as u64;
            }
            // Until the other end has it all.
            sock.recv_all(&mut buffer[..1])?;
        }
        Kind::Short => sock.recv_all(&mut buffer[..HEADER])?,
        Kind::Hold => sock.recv_all(&mut buffer[..1])?,
    }
    Ok(Facts {
        sent: job.bytes,
        ..Facts::default()
    })
}
