// SPDX-License-Identifier: GPL-2.0
//! The life of a connection, both ends in one thread, with a failure in one stage of it.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use super::inject::Injector;
use crate::checks::enter;
use crate::checks::netns;
use crate::ensure;
use crate::rng::Rng;
use crate::sock::Family;
use crate::sock::Sock;
use crate::transport;
use crate::Context;
use crate::Fail;

/// Longer than any handshake or time-out of the protocol.
const PATIENCE: Duration = Duration::from_secs(15);
/// Bytes each way: more than a packet.
const BYTES: usize = 5_000;

/// The part of a life in which an allocation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// socket(), bind(), listen().
    Listen,
    /// socket() and connect() with a new link group, until both ends are decided.
    First,
    /// The same with a link group that is there.
    Again,
    /// accept().
    Accept,
    /// send() and recv() at both ends.
    Data,
    /// close() at both ends, until nothing is left.
    Close,
    /// None.
    Nowhere,
}

impl Stage {
    /// By its name on the command line.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "listen" => Self::Listen,
            "first" => Self::First,
            "again" => Self::Again,
            "accept" => Self::Accept,
            "data" => Self::Data,
            "close" => Self::Close,
            _ => return None,
        })
    }
}

/// How a system call or a connection may end when memory fails.
fn is_clean(e: &io::Error) -> bool {
    matches!(
        e.raw_os_error(),
        Some(
            libc::ENOMEM
                | libc::ENOBUFS
                | libc::ECONNRESET
                | libc::ECONNABORTED
                | libc::ECONNREFUSED
                | libc::EPIPE
                | libc::ETIMEDOUT
                | libc::ENFILE
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
                // TCP's answers when it can't note a port.
                | libc::EADDRINUSE
                | libc::EADDRNOTAVAIL
        )
    ) || e.kind() == io::ErrorKind::UnexpectedEof
}

/// The failure to make, if any.
pub struct Armed<'a> {
    injector: Option<&'a mut Injector>,
    stage: Stage,
    n: Option<u64>,
    /// Whether it happened.
    pub hit: bool,
    /// The stage was reached: errors may come from now on.
    begun: bool,
    /// It is over.
    over: bool,
}

impl<'a> Armed<'a> {
    /// The `n`-th allocation of `stage`; `None`: goes on counting.
    pub fn new(injector: &'a mut Injector, stage: Stage, n: Option<u64>) -> Self {
        Self {
            injector: Some(injector),
            stage,
            n,
            hit: false,
            begun: false,
            over: false,
        }
    }

    /// No failure.
    pub fn none() -> Self {
        Self {
            injector: None,
            stage: Stage::Nowhere,
            n: None,
            hit: false,
            begun: false,
            over: false,
        }
    }

    /// A stage begins.
    fn begin(&mut self, stage: Stage) -> Result<(), Fail> {
        if let (true, Some(injector)) = (stage == self.stage, self.injector.as_mut()) {
            self.begun = true;
            match self.n {
                Some(n) => injector.arm(n)?,
                None => injector.rearm()?,
            }
        }
        Ok(())
    }

    /// A stage ends.
    fn end(&mut self, stage: Stage) -> Result<(), Fail> {
        if stage == self.stage {
            self.disarm()?;
        }
        Ok(())
    }

    /// No failure after this.
    pub fn disarm(&mut self) -> Result<(), Fail> {
        if let (true, false, Some(injector)) = (self.begun, self.over, self.injector.as_mut()) {
            self.hit = injector.disarm()?;
            self.over = true;
        }
        Ok(())
    }
}

/// How a life ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// All went over SMC-R.
    Smc,
    /// All went over TCP.
    Tcp,
    /// An error, and where it was seen.
    Error(&'static str, i32),
}

/// The world of the lives.
pub struct World {
    server_ns: File,
    client_ns: File,
    family: Family,
    /// The last two numbers of the client's address.
    client: u16,
    port: u16,
}

impl World {
    /// Server and client namespaces as in `--server-ns` and `--client-ns`.
    pub fn new(args: &crate::args::Args) -> Result<Self, Fail> {
        let ns = |option: &str, default| netns(args.text(option).unwrap_or(default));
        Ok(Self {
            server_ns: ns("server-ns", "h1")?,
            client_ns: ns("client-ns", "h2")?,
            family: args.value("family", Family::Smc)?,
            client: 2,
            port: 0,
        })
    }

    /// The client's address; each address has a link group of its own.
    fn client_addr(&self) -> SocketAddr {
        let [high, low] = self.client.to_be_bytes();
        SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 7, high, low)), 0)
    }

    /// A listener, and its address.
    fn listen(&mut self) -> io::Result<(Sock, SocketAddr)> {
        let addr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 7, 255, 1)), 0);
        let sock = Sock::listen(self.family, addr, 16)?;
        let addr = sock.local()?;
        self.port = addr.port();
        Ok((sock, addr))
    }

    /// A client that tried to connect.
    fn connect(&self, to: SocketAddr) -> io::Result<Sock> {
        let sock = Sock::new(self.family)?;
        sock.set_timeout(libc::SO_SNDTIMEO, PATIENCE)?;
        sock.set_timeout(libc::SO_RCVTIMEO, PATIENCE)?;
        sock.bind(self.client_addr())?;
        sock.connect(to)?;
        Ok(sock)
    }

    /// Lives one life. An `Err` is a fault of the module.
    pub fn life(&mut self, armed: &mut Armed<'_>) -> Result<End, Fail> {
        if matches!(armed.stage, Stage::First) {
            self.client = self.client.wrapping_add(1).max(3);
        }
        let start = Instant::now();
        let end = self.live(armed)?;
        ensure!(
            start.elapsed() < PATIENCE,
            "{end:?} took {:?}",
            start.elapsed()
        );
        Ok(end)
    }

    fn live(&mut self, armed: &mut Armed<'_>) -> Result<End, Fail> {
        enter(&self.server_ns)?;
        armed.begin(Stage::Listen)?;
        let listener = self.listen();
        armed.end(Stage::Listen)?;
        let (listener, to) = match listener {
            Ok(l) => l,
            Err(e) => return armed.error("listen", &e),
        };

        enter(&self.client_ns)?;
        let stage = match armed.stage {
            Stage::First => Stage::First,
            _ => Stage::Again,
        };
        armed.begin(stage)?;
        let client = self.connect(to);
        let patience = match &client {
            Ok(_) => PATIENCE,
            // Time for a child that lost its client to show up.
            Err(_) => Duration::from_millis(20),
        };
        let waits = listener.poll(libc::POLLIN, patience);
        armed.end(stage)?;
        let waits = waits? & libc::POLLIN != 0;

        enter(&self.server_ns)?;
        let client = match client {
            Ok(c) => c,
            Err(e) => {
                if waits {
                    self.expect_end(&listener)?;
                }
                return armed.error("connect", &e);
            }
        };
        if !waits {
            // Nobody to talk to: the client must not hang.
            return match client.recv(&mut [0; 1], 0) {
                Err(e) => armed.error("lost child", &e),
                Ok(n) => Err(format!("recv gave {n} but there is no child").into()),
            };
        }
        armed.begin(Stage::Accept)?;
        let server = listener.accept();
        armed.end(Stage::Accept)?;
        let server = match server {
            Ok((s, _)) => s,
            Err(e) => {
                let end = armed.error("accept", &e);
                // The child is still there, or its client hears that it is not.
                return match listener.poll(libc::POLLIN, Duration::from_millis(20))? {
                    0 => match client.recv(&mut [0; 1], 0) {
                        Ok(0) => end,
                        Ok(_) => Err("data from nobody".into()),
                        Err(e) => armed.error("client of accept", &e).and(end),
                    },
                    _ => listener.accept().context("second accept").and(end),
                };
            }
        };
        drop(listener);
        self.talk(armed, client, server)
    }

    /// A child whose client is gone: it must see an end.
    fn expect_end(&self, listener: &Sock) -> Result<(), Fail> {
        listener.set_nonblocking(true)?;
        let (child, _) = match listener.accept() {
            Ok(c) => c,
            Err(_) => return Ok(()),
        };
        child.set_timeout(libc::SO_RCVTIMEO, PATIENCE)?;
        match child.recv(&mut [0; 1], 0) {
            Ok(0) => Ok(()),
            Ok(_) => Err("data from a client that failed".into()),
            Err(e) if is_clean(&e) => Ok(()),
            Err(e) => Err(format!("child of a failed client: {e}").into()),
        }
    }

    fn talk(&self, armed: &mut Armed<'_>, client: Sock, server: Sock) -> Result<End, Fail> {
        server.set_timeout(libc::SO_SNDTIMEO, PATIENCE)?;
        server.set_timeout(libc::SO_RCVTIMEO, PATIENCE)?;
        armed.begin(Stage::Data)?;
        let result = exchange(&client, &server);
        armed.end(Stage::Data)?;
        if let Err(e) = result? {
            // The other end hears of it, too.
            drop(client);
            return match server.recv(&mut vec![0; BYTES], 0) {
                Ok(_) => armed.error("data", &e),
                Err(other) => armed
                    .error("peer of data", &other)
                    .and(armed.error("data", &e)),
            };
        }
        enter(&self.client_ns)?;
        let ours = transport::of(&client)?.name;
        enter(&self.server_ns)?;
        let theirs = transport::of(&server)?.name;
        let is_smc = |name: &str| name == "SMC-R";
        // Without memory a socket may be missing in the table.
        let listed = ours != "none" && theirs != "none";
        ensure!(
            is_smc(&ours) == is_smc(&theirs) || (armed.hit && !listed),
            "transports are {ours} and {theirs}"
        );
        let smc = is_smc(&ours) || is_smc(&theirs);
        armed.begin(Stage::Close)?;
        drop(client);
        let end = server.recv(&mut [0; 1], 0);
        drop(server);
        if armed.stage == Stage::Close {
            // Workers do the rest.
            thread::sleep(Duration::from_millis(50));
            armed.end(Stage::Close)?;
            self.gone()?;
        }
        match end {
            Ok(0) if smc => Ok(End::Smc),
            Ok(0) => Ok(End::Tcp),
            Ok(_) => Err("data after the end".into()),
            Err(e) => armed.error("close", &e),
        }
    }

    /// Waits until nothing of the module's sockets is left at either end.
    pub fn gone(&self) -> Result<(), Fail> {
        for ns in [&self.server_ns, &self.client_ns] {
            enter(ns)?;
            transport::gone()?;
        }
        Ok(())
    }
}

impl Armed<'_> {
    /// An error: is it what it may be?
    fn error(&self, what: &'static str, e: &io::Error) -> Result<End, Fail> {
        ensure!(self.begun, "{what}: {e}, without a failed allocation");
        ensure!(is_clean(e), "{what}: {e}");
        Ok(End::Error(what, e.raw_os_error().unwrap_or(0)))
    }
}

/// Data both ways. The outer result is a fault, the inner one an error of the sockets.
fn exchange(client: &Sock, server: &Sock) -> Result<io::Result<()>, Fail> {
    for (seed, from, to) in [(1, client, server), (2, server, client)] {
        let (mut sent, mut got) = (vec![0; BYTES], vec![0; BYTES]);
        Rng::new(seed).fill(&mut sent);
        if let Err(e) = from.send_all(&sent).and_then(|()| to.recv_all(&mut got)) {
            return Ok(Err(e));
        }
        ensure!(sent == got, "data differs");
    }
    Ok(Ok(()))
}
