// SPDX-License-Identifier: GPL-2.0
//! Checks of socket behaviour, both ends in one process and thread: the listener is made
//! in one network namespace, the client in another. Each check runs for any family, so
//! that TCP itself is the reference.

mod close;
mod connect;
mod io;
mod options;
pub mod table;

use std::fs::File;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;
use std::time::Instant;

use crate::args::Args;
use crate::ensure;
use crate::sock::Family;
use crate::sock::Sock;
use crate::transport::Expect;
use crate::Context;
use crate::Fail;

/// Longer than anything in a slow guest should take.
pub const LONG: Duration = Duration::from_secs(20);
/// Long enough to see that nothing happens.
pub const SHORT: Duration = Duration::from_millis(300);

/// Where and how a check makes its sockets.
pub struct Rig {
    family: Family,
    server_ns: Option<File>,
    client_ns: Option<File>,
    addr: IpAddr,
    expect: Expect,
}

/// The network namespace of this name.
pub fn netns(name: &str) -> Result<File, Fail> {
    File::open(format!("/run/netns/{name}")).context(name)
}

/// Moves the calling thread into a network namespace.
pub fn enter(ns: &File) -> Result<(), Fail> {
    // SAFETY: no memory is passed; affects this thread only.
    let ret = unsafe { libc::setns(ns.as_raw_fd(), libc::CLONE_NEWNET) };
    ensure!(ret == 0, "setns: {}", std::io::Error::last_os_error());
    Ok(())
}

impl Rig {
    fn new(args: &Args) -> Result<Self, Fail> {
        let family: Family = args.value("family", Family::Smc)?;
        let open = |option: &str| args.text(option).map(netns).transpose();
        Ok(Self {
            family,
            server_ns: open("server-ns")?,
            client_ns: open("client-ns")?,
            addr: args
                .text("addr")
                .unwrap_or("10.1.1.1")
                .parse()
                .context("--addr")?,
            expect: Expect::from_args(args, "")?,
        })
    }

    fn enter(ns: Option<&File>) -> Result<(), Fail> {
        ns.map_or(Ok(()), enter)
    }

    /// A listener on a free port of the server's namespace, and its address.
    pub fn listener(&self) -> Result<(Sock, SocketAddr), Fail> {
        Self::enter(self.server_ns.as_ref())?;
        let sock =
            Sock::listen(self.family, SocketAddr::new(self.addr, 0), 16).context("listen")?;
        let port = sock.local()?.port();
        Ok((sock, SocketAddr::new(self.addr, port)))
    }

    /// A socket in the client's namespace.
    pub fn client(&self) -> Result<Sock, Fail> {
        Self::enter(self.client_ns.as_ref())?;
        Sock::new(self.family).context("socket")
    }

    /// A connected pair (client, server side). The connect comes before the accept, in
    /// this one thread.
    pub fn pair(&self) -> Result<(Sock, Sock), Fail> {
        let (listener, addr) = self.listener()?;
        let client = self.client()?;
        client.connect(addr).context("connect before accept")?;
        let (server, _) = listener.accept().context("accept")?;
        // The transport is asserted for every pair; a byte each way settles it.
        client.send_all(b"c")?;
        server.send_all(b"s")?;
        let mut byte = [0];
        server.recv_all(&mut byte)?;
        ensure!(&byte == b"c", "server got {byte:?}");
        client.recv_all(&mut byte)?;
        ensure!(&byte == b"s", "client got {byte:?}");
        self.check(&client, &server)?;
        Ok((client, server))
    }

    /// Both ends use the expected transport.
    pub fn check(&self, client: &Sock, server: &Sock) -> Result<(), Fail> {
        Self::enter(self.client_ns.as_ref())?;
        self.expect.check(client).context("client side")?;
        Self::enter(self.server_ns.as_ref())?;
        self.expect.check(server).context("server side")?;
        Ok(())
    }
}

/// The errno of a result that must be an error.
pub fn errno<T>(what: &str, result: std::io::Result<T>) -> Result<i32, Fail> {
    match result {
        Ok(_) => Err(format!("{what} succeeded").into()),
        Err(e) => Ok(e.raw_os_error().unwrap_or(-1)),
    }
}

/// `result` must fail with this errno.
pub fn fails<T>(what: &str, expected: i32, result: std::io::Result<T>) -> Result<(), Fail> {
    let found = errno(what, result)?;
    ensure!(
        found == expected,
        "{what}: errno {found} ({}), expected {expected} ({})",
        std::io::Error::from_raw_os_error(found),
        std::io::Error::from_raw_os_error(expected)
    );
    Ok(())
}

/// Polls until all of `events` are there.
pub fn wait_for(what: &str, sock: &Sock, events: i16) -> Result<i16, Fail> {
    let start = Instant::now();
    while start.elapsed() < LONG {
        let found = sock.poll(events, LONG)?;
        if found & events == events {
            return Ok(found);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(format!("{what}: poll never says {events:#x}").into())
}

type Check = fn(&Rig) -> Result<(), Fail>;

/// All checks by name.
const CHECKS: &[(&str, Check)] = &[
    ("connect_before_accept", connect::before_accept),
    ("nonblocking_connect", connect::nonblocking),
    ("epoll_connect", connect::epoll),
    ("refused", connect::refused),
    ("accept_eagain", connect::accept_eagain),
    ("many_before_accept", connect::many_before_accept),
    ("getname", options::getname),
    ("options", options::options),
    ("buffers", options::buffers),
    ("echo", io::echo),
    ("eagain", io::eagain),
    ("rcvtimeo", io::rcvtimeo),
    ("eintr", io::eintr),
    ("poll", io::poll),
    ("epoll_edge", io::epoll_edge),
    ("fill_and_drain", io::fill_and_drain),
    ("peek_waitall", io::peek_waitall),
    ("fionread", io::fionread),
    ("iovecs", io::iovecs),
    ("not_connected", connect::not_connected),
    ("shutdown_write", close::shutdown_write),
    ("shutdown_both", close::shutdown_both),
    ("close_in_flight", close::in_flight),
    ("close_wakes_reader", close::wakes_reader),
    ("epipe", close::epipe),
    ("linger_abort", close::linger_abort),
    ("close_unread", close::unread),
    ("close_listener", close::listener),
    ("close_pending", close::pending),
];

/// `smct check NAME`.
pub fn run(name: &str, args: &Args) -> Result<(), Fail> {
    if name == "list" {
        CHECKS.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(());
    }
    let rig = Rig::new(args)?;
    let skip: Vec<&str> = args.text("skip").unwrap_or("").split(',').collect();
    let (mut ran, mut failed) = (0, 0);
    for (each, check) in CHECKS {
        if (name != "all" && name != *each) || skip.contains(each) {
            continue;
        }
        ran += 1;
        let start = Instant::now();
        let result = check(&rig);
        let ms = start.elapsed().as_millis();
        match result {
            Ok(()) => println!("check {each} {:?} OK {ms} ms", rig.family),
            Err(e) => {
                failed += 1;
                println!("check {each} {:?} FAILED {ms} ms: {e}", rig.family);
            }
        }
    }
    ensure!(ran > 0, "no check {name}");
    ensure!(failed == 0, "{failed} of {ran} checks failed");
    Ok(())
}
