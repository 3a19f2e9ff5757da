// SPDX-License-Identifier: GPL-2.0
//! The application's part of a case, on the host under test. It knows nothing of SMC and checks
//! what it sees; beside it the kernel's table says what became of the socket.

use std::fs;
use std::net::SocketAddr;
use std::net::SocketAddrV4;
use std::sync::mpsc;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use super::case::Case;
use super::case::End;
use super::case::Expect;
use super::tcp::LONG;
use crate::args::number;
use crate::checks::fails;
use crate::checks::wait_for;
use crate::ensure;
use crate::proto::reason::Reason;
use crate::sock::Family;
use crate::sock::Sock;
use crate::Context;
use crate::Fail;

/// What the application says when it has read everything.
pub const FROM_APP: &[u8] = b"the application's answer";

/// The module's table of sockets, read not too often by many threads.
#[derive(Default)]
pub struct Table(Mutex<(Option<Instant>, String)>);

/// What the table says of a socket.
struct Line {
    state: String,
    reason: u32,
    peer_reason: u32,
}

impl Table {
    /// The socket that is connected to `peer`, at a time not before `since`; for threads in the
    /// host's namespace.
    fn line(&self, peer: SocketAddrV4, since: Instant) -> Result<Option<Line>, Fail> {
        let mut cached = self.0.lock().map_err(|_| "poisoned")?;
        let old = |at: Instant| at < since || at.elapsed() > Duration::from_millis(20);
        if cached.0.is_none_or(old) {
            cached.0 = Some(Instant::now());
            cached.1 = fs::read_to_string("/proc/thread-self/net/smc").context("/proc/net/smc")?;
        }
        let peer = peer.to_string();
        let mut lines = cached.1.lines().map(|l| l.split(' ').collect::<Vec<_>>());
        Ok(lines
            .find(|f| f.get(2) == Some(&peer.as_str()))
            .and_then(|f| {
                Some(Line {
                    state: f.get(3)?.to_string(),
                    reason: number(f.get(10)?)? as u32,
                    peer_reason: number(f.get(11)?)? as u32,
                })
            }))
    }

    /// Waits until the socket is decided: it must have fallen back for these reasons.
    fn fell_back(&self, peer: SocketAddrV4, reason: Reason, other: Reason) -> Result<(), Fail> {
        let start = Instant::now();
        loop {
            let line = self.line(peer, start)?.ok_or("not in the module's table")?;
            if line.state == "FALLBACK" {
                ensure!(
                    (line.reason, line.peer_reason) == (reason.0, other.0),
                    "fell back for {:#010x}, peer's reason {:#010x}; expected {:#010x}, {:#010x}",
                    line.reason,
                    line.peer_reason,
                    reason.0,
                    other.0
                );
                return Ok(());
            }
            ensure!(line.state == "HANDSHAKE", "it is {}", line.state);
            ensure!(start.elapsed() < LONG, "still in its handshake");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The application connects to the peer. `play` waits for the end of the peer's part.
pub fn connects(
    case: &Case,
    peer: SocketAddrV4,
    table: &Table,
    left: &mpsc::Receiver<()>,
    play: impl FnOnce() -> Result<(), Fail>,
) -> Result<(), Fail> {
    let sock = Sock::new(Family::Smc).context("socket")?;
    let (reason, other, end) = match case.expect {
        Expect::Connect(errno) => {
            refused(case, &sock, peer.into(), errno)?;
            play()?;
            return nothing(&sock);
        }
        Expect::Left => {
            sock.set_nonblocking(true)?;
            fails("connect", libc::EINPROGRESS, sock.connect(peer.into()))?;
            return leave(sock, left).and_then(|()| play());
        }
        Expect::Fallback(reason, other, end) => (reason, other, end),
        Expect::Tcp(_) | Expect::Dropped => return Err("no outcome for a client".into()),
    };
    sock.set_nonblocking(true)?;
    match sock.connect(peer.into()) {
        // It was decided before the call ended, and the socket has left the table. The counters
        // tell the reason still.
        Ok(()) => {}
        connected => {
            fails("connect", libc::EINPROGRESS, connected)?;
            table.fell_back(peer, reason, other)?;
        }
    }
    if !matches!(end, End::Error(_)) {
        wait_for("connected", &sock, libc::POLLOUT)?;
        let error = sock.get_int(libc::SOL_SOCKET, libc::SO_ERROR)?;
        ensure!(error == 0, "SO_ERROR is {error}");
    }
    sock.set_nonblocking(false)?;
    talk(case, &sock, end, play)
}

/// connect() has to fail.
fn refused(case: &Case, sock: &Sock, peer: SocketAddr, errno: i32) -> Result<(), Fail> {
    if !case.nonblocking {
        return fails("connect", errno, sock.connect(peer));
    }
    sock.set_nonblocking(true)?;
    fails("connect", libc::EINPROGRESS, sock.connect(peer))?;
    let found = wait_for("refused", sock, libc::POLLERR)?;
    ensure!(found & libc::POLLHUP != 0, "poll says {found:#x}");
    let error = sock.get_int(libc::SOL_SOCKET, libc::SO_ERROR)?;
    ensure!(error == errno, "SO_ERROR is {error}, expected {errno}");
    Ok(())
}

/// There are no bytes to be read.
fn nothing(sock: &Sock) -> Result<(), Fail> {
    let mut bytes = [0; 2048];
    match sock.recv(&mut bytes, libc::MSG_DONTWAIT) {
        Ok(0) | Err(_) => Ok(()),
        Ok(n) => Err(format!("the application got {:02x?}", &bytes[..n]).into()),
    }
}

/// The peer connects to the application; `port` is told when it listens.
pub fn accepts(
    case: &Case,
    peer: SocketAddrV4,
    host: SocketAddrV4,
    table: &Table,
    port: impl FnOnce(u16),
    left: &mpsc::Receiver<()>,
    play: impl FnOnce() -> Result<(), Fail>,
) -> Result<(), Fail> {
    let listener = Sock::listen(Family::Smc, host.into(), 16).context("listen")?;
    port(listener.local()?.port());
    let end = match case.expect {
        Expect::Dropped => {
            let played = play();
            listener.set_nonblocking(true)?;
            let accepted = listener.accept();
            if let Ok((sock, _)) = &accepted {
                nothing(sock)?;
            }
            played?;
            return fails("accept", libc::EAGAIN, accepted);
        }
        Expect::Left => return leave(listener, left).and_then(|()| play()),
        Expect::Tcp(end) => {
            ready(&listener)?;
            ensure!(
                table.line(peer, Instant::now())?.is_none(),
                "it is in the module's table"
            );
            end
        }
        Expect::Fallback(reason, other, end) => {
            ready(&listener)?;
            table.fell_back(peer, reason, other)?;
            end
        }
        Expect::Connect(_) => return Err("no outcome for a server".into()),
    };
    let (sock, from) = listener.accept().context("accept")?;
    ensure!(from == peer.into(), "accepted {from}, not {peer}");
    talk(case, &sock, end, play)
}

/// The application closes its socket when the peer says so.
fn leave(sock: Sock, left: &mpsc::Receiver<()>) -> Result<(), Fail> {
    let told = left.recv_timeout(LONG);
    drop(sock);
    told.map_err(|_| "the peer does not get that far".into())
}

fn ready(listener: &Sock) -> Result<(), Fail> {
    ensure!(
        listener.poll(libc::POLLIN, LONG)? & libc::POLLIN != 0,
        "nobody to be accepted"
    );
    Ok(())
}

/// It is TCP: exactly what the peer said for the application arrives, and what the application
/// says does.
fn talk(
    case: &Case,
    sock: &Sock,
    end: End,
    play: impl FnOnce() -> Result<(), Fail>,
) -> Result<(), Fail> {
    sock.set_timeout(libc::SO_RCVTIMEO, LONG)?;
    let plain = case.plain();
    let mut got = vec![0; plain.len()];
    let mut n = 0;
    while n < got.len() {
        let more = sock.recv(&mut got[n..], 0);
        let more = more.map_err(|e| Fail(format!("recv: {e}, after {:02x?}", &got[..n])))?;
        n += more;
        ensure!(
            more > 0 && got[..n] == plain[..n],
            "the application got {:02x?}, not {plain:02x?}",
            &got[..n]
        );
    }
    let mut more = [0; 64];
    if let End::Error(errno) = end {
        play()?;
        return fails("recv", errno, sock.recv(&mut more, 0));
    }
    if end == End::Eof {
        let n = sock.recv(&mut more, 0).context("recv at the end")?;
        ensure!(n == 0, "after the end: {:02x?}", &more[..n]);
    }
    sock.send_all(FROM_APP).context("send")?;
    play()?;
    match sock.recv(&mut more, libc::MSG_DONTWAIT) {
        Ok(0) if end == End::Eof => Ok(()),
        Err(e) if end == End::Open && e.raw_os_error() == Some(libc::EAGAIN) => Ok(()),
        Err(e) => Err(format!("recv at the end: {e}").into()),
        Ok(n) => Err(format!("{:02x?} after everything", &more[..n]).into()),
    }
}
