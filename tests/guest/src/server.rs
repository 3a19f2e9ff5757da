// SPDX-License-Identifier: GPL-2.0
//! The server: one thread for each connection, one line of facts for each.

use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use crate::args::Args;
use crate::job;
use crate::job::Job;
use crate::job::Kind;
use crate::sock::Family;
use crate::sock::Sock;
use crate::transport::Expect;
use crate::Context;
use crate::Fail;

/// Sets the buffer sizes that the command line asks for; `prefix` goes before the names
/// of the options.
pub fn set_buffers(sock: &Sock, args: &Args, prefix: &str) -> Result<(), Fail> {
    for (option, name) in [("sndbuf", libc::SO_SNDBUF), ("rcvbuf", libc::SO_RCVBUF)] {
        let size = args.number(&format!("{prefix}{option}"), 0)?;
        if size > 0 {
            sock.set_int(libc::SOL_SOCKET, name, size as i32)
                .context(option)?;
        }
    }
    Ok(())
}

/// Serves one connection.
fn serve(sock: &Sock, expect: &Expect, quiet: bool) -> Result<(), Fail> {
    let mut header = [0; job::HEADER];
    sock.recv_all(&mut header).context("header")?;
    let job = Job::parse(&header)?;
    let facts = job::serve(sock, &job);
    // Short ones are timed: no look-up there.
    if job.kind == Kind::Short {
        return facts.map(drop);
    }
    let facts = facts?;
    let transport = expect.check(sock)?;
    if !quiet {
        println!(
            "served job={:?} received={} sent={} sha256={} transport={} reason={:#010x}",
            job.kind, facts.received, facts.sent, facts.digest, transport.name, transport.reason
        );
    }
    Ok(())
}

/// A listening server.
pub struct Server {
    sock: Sock,
    count: u64,
    expect: Arc<Expect>,
    quiet: bool,
    inline: bool,
    broken_ok: bool,
}

impl Server {
    /// Listens as the command line says; `prefix` goes before the names of the options
    /// that client and server may have differently.
    pub fn new(args: &Args, prefix: &str, count: u64) -> Result<Self, Fail> {
        let family = args.value("family", Family::Smc)?;
        let family: Family = args.value(&format!("{prefix}family"), family)?;
        let any = if family.is_v6() { "::" } else { "0.0.0.0" };
        let ip: IpAddr = match prefix {
            "" => args.text("addr").unwrap_or(any),
            _ => any,
        }
        .parse()
        .context("--addr")?;
        let port = args.number("port", 0)? as u16;
        let sock = Sock::new(family).context("socket")?;
        sock.set_int(libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        set_buffers(&sock, args, prefix)?;
        sock.bind(SocketAddr::new(ip, port)).context("bind")?;
        sock.start_listen(1024).context("listen")?;
        Ok(Self {
            sock,
            count,
            expect: Arc::new(Expect::from_args(args, prefix)?),
            quiet: args.flag("quiet"),
            inline: args.flag("inline"),
            broken_ok: args.flag("broken-ok"),
        })
    }

    /// The port it listens on.
    pub fn port(&self) -> Result<u16, Fail> {
        Ok(self.sock.local()?.port())
    }

    /// Serves all connections.
    pub fn run(&self) -> Result<(), Fail> {
        // Bounded by the connections that are open, not by all there ever were.
        let mut threads = Vec::new();
        let mut failed = 0u64;
        let mut reap = |t: thread::JoinHandle<Result<(), Fail>>| match t.join() {
            Ok(Ok(())) => {}
            Ok(Err(e)) if self.broken_ok => println!("broken: {e}"),
            Ok(Err(e)) => {
                println!("FAILED: server: {e}");
                failed += 1;
            }
            Err(_) => failed += 1,
        };
        for _ in 0..self.count {
            let (conn, _) = self.sock.accept().context("accept")?;
            if self.inline {
                serve(&conn, &self.expect, self.quiet)?;
                continue;
            }
            let (expect, quiet) = (self.expect.clone(), self.quiet);
            threads.push(thread::spawn(move || serve(&conn, &expect, quiet)));
            while let Some(at) = threads.iter().position(|t| t.is_finished()) {
                reap(threads.swap_remove(at));
            }
        }
        threads.into_iter().for_each(&mut reap);
        if failed > 0 {
            return Err(format!("{failed} of {} connections failed", self.count).into());
        }
        Ok(())
    }
}

/// `smct server`.
pub fn run(args: &Args) -> Result<(), Fail> {
    let server = Server::new(args, "", args.number("count", 1)?)?;
    println!("listening port={}", server.port()?);
    // Clients must not need our accept().
    let delay = args.number("accept-delay-ms", 0)?;
    thread::sleep(std::time::Duration::from_millis(delay));
    server.run()
}
