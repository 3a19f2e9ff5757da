// SPDX-License-Identifier: GPL-2.0
//! Many clients in namespaces of their own at one server, and how long their connect() takes.

use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use crate::args::Args;
use crate::checks;
use crate::ensure;
use crate::job;
use crate::job::Job;
use crate::job::Kind;
use crate::server::Server;
use crate::sock::Family;
use crate::sock::Sock;
use crate::transport::Expect;
use crate::Context;
use crate::Fail;

/// What the clients have in common.
struct Crowd<'a> {
    args: &'a Args,
    addr: SocketAddr,
    family: Family,
    expect: Expect,
    job: Job,
    start: Barrier,
}

impl Crowd<'_> {
    /// One connection; the nanoseconds of its connect().
    fn round(&self) -> Result<u64, Fail> {
        let sock = Sock::new(self.family).context("socket")?;
        let start = Instant::now();
        sock.connect(self.addr).context("connect")?;
        let ns = start.elapsed().as_nanos() as u64;
        sock.send_all(&self.job.emit())?;
        job::drive(&sock, &self.job)?;
        self.expect.check(&sock)?;
        Ok(ns)
    }

    /// All connections of one client, one after the other; the first ones make the link group.
    fn client(&self, n: u64, rounds: u64) -> Result<Vec<u64>, Fail> {
        let prefix = self.args.text("ns-prefix").unwrap_or("c");
        let ready = checks::enter(&checks::netns(&format!("{prefix}{n}"))?)
            .and_then(|()| (0..2).try_for_each(|_| self.round().map(drop)));
        // Also after a failure: the others wait.
        self.start.wait();
        ready?;
        (0..rounds).map(|_| self.round()).collect()
    }
}

/// `smct crowd`: a server in `--server-ns`, `--clients N` in namespaces, `--rounds N` each.
pub fn run(args: &Args) -> Result<(), Fail> {
    let clients = args.number("clients", 20)?;
    let rounds = args.number("rounds", 15)?;
    let ip: IpAddr = args
        .text("addr")
        .unwrap_or("10.1.1.1")
        .parse()
        .context("--addr")?;
    let (tell, port) = mpsc::channel();
    thread::scope(|s| {
        let server = s.spawn(move || -> Result<(), Fail> {
            if let Some(ns) = args.text("server-ns") {
                checks::enter(&checks::netns(ns)?)?;
            }
            let server = Server::new(args, "", clients * (rounds + 2))?;
            tell.send(server.port()?).map_err(|_| "nobody waits")?;
            server.run()
        });
        let port = port
            .recv()
            .map_err(|_| Fail::from("the server did not start"))?;
        let crowd = Crowd {
            args,
            addr: SocketAddr::new(ip, port),
            family: args.value("family", Family::Smc)?,
            expect: Expect::from_args(args, "")?,
            job: Job {
                kind: Kind::Short,
                size: 64,
                rounds: 1,
                bytes: 0,
                back: 0,
                seed: 1,
            },
            start: Barrier::new(clients as usize),
        };
        let mut times = Vec::new();
        thread::scope(|s| -> Result<(), Fail> {
            let crowd = &crowd;
            let all: Vec<_> = (1..=clients)
                .map(|n| s.spawn(move || crowd.client(n, rounds)))
                .collect();
            for (client, n) in all.into_iter().zip(1u64..) {
                let found = client.join().map_err(|_| Fail::from("a client panicked"))?;
                times.extend(found.context(&format!("client {n}"))?);
            }
            Ok(())
        })
        .unwrap_or_else(|e| {
            // The server waits for connections that never come.
            eprintln!("smct: {e}");
            std::process::exit(1);
        });
        server
            .join()
            .map_err(|_| Fail::from("server panicked"))?
            .context("server")?;
        times.sort_unstable();
        let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied();
        let (Some(p50), Some(p99)) = (at(0.5), at(0.99)) else {
            return Err("no connection was measured".into());
        };
        ensure!(
            times.len() as u64 == clients * rounds,
            "{} connections",
            times.len()
        );
        println!(
            "crowd connections={} p50_ns={p50} p99_ns={p99}",
            times.len()
        );
        Ok(())
    })
}
