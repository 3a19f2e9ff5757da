// SPDX-License-Identifier: GPL-2.0
//! The client: connects, does a job, asks for the transport, prints facts and times.

use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::sync::Barrier;
use std::sync::Condvar;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use crate::args::Args;
use crate::checks;
use crate::ensure;
use crate::job;
use crate::job::Facts;
use crate::job::Job;
use crate::job::Kind;
use crate::server::set_buffers;
use crate::server::Server;
use crate::sock::Family;
use crate::sock::Sock;
use crate::transport::Expect;
use crate::Context;
use crate::Fail;

const MIB: u64 = 1 << 20;

fn job_of(name: &str, args: &Args) -> Result<Job, Fail> {
    let kind = match name {
        "data" => Kind::Data,
        "pingpong" => Kind::PingPong,
        "stream" => Kind::Stream,
        "short" => Kind::Short,
        "hold" => Kind::Hold,
        "half" => Kind::Half,
        "half-back" => Kind::HalfBack,
        "flush" => Kind::Flush,
        "flush-back" => Kind::FlushBack,
        "abort" => Kind::Abort,
        "abort-back" => Kind::AbortBack,
        "urgent" => Kind::Urgent,
        "urgent-back" => Kind::UrgentBack,
        _ => return Err(format!("no job {name}").into()),
    };
    let bytes = args.number("bytes", 4 * MIB)?;
    let sized = matches!(
        kind,
        Kind::PingPong | Kind::Stream | Kind::Short | Kind::Hold
    );
    let default = if sized { 64 } else { 10 * MIB };
    let option = if sized { "size" } else { "chunk" };
    Ok(Job {
        kind,
        size: args.number(option, default)? as usize,
        rounds: args.number("rounds", 1)?,
        bytes,
        back: args.number("back", bytes)?,
        seed: args.number("seed", 1)?,
    })
}

/// Lets so many through at a time.
struct Gate {
    free: Mutex<u64>,
    freed: Condvar,
}

impl Gate {
    fn new(n: u64) -> Self {
        Self {
            free: Mutex::new(n.max(1)),
            freed: Condvar::new(),
        }
    }

    fn pass<T>(&self, f: impl FnOnce() -> T) -> T {
        // A poisoned lock means that a thread panicked, which fails the run anyway.
        let lock = || self.free.lock().unwrap_or_else(|e| e.into_inner());
        let mut free = lock();
        while *free == 0 {
            free = self.freed.wait(free).unwrap_or_else(|e| e.into_inner());
        }
        *free -= 1;
        drop(free);
        let value = f();
        *lock() += 1;
        self.freed.notify_one();
        value
    }
}

struct Client<'a> {
    args: &'a Args,
    family: Family,
    addr: SocketAddr,
    expect: Expect,
}

impl Client<'_> {
    fn connect(&self) -> Result<Sock, Fail> {
        let sock = Sock::new(self.family).context("socket")?;
        set_buffers(&sock, self.args, "")?;
        sock.connect(self.addr).context("connect")?;
        Ok(sock)
    }

    /// One connection with one job, and what the kernel says of it.
    fn one(&self, job: &Job) -> Result<(Facts, String, u64), Fail> {
        self.on(&self.connect()?, job)
    }

    /// One job on a connection that is there.
    fn on(&self, sock: &Sock, job: &Job) -> Result<(Facts, String, u64), Fail> {
        sock.send_all(&job.emit()).context("header")?;
        let start = Instant::now();
        let facts = job::drive(sock, job)?;
        let ns = start.elapsed().as_nanos() as u64;
        let found = self.expect.check(sock)?;
        let text = format!("transport={} reason={:#010x}", found.name, found.reason);
        if job.kind == Kind::Hold {
            println!("holding {text}");
            thread::sleep(Duration::from_millis(self.args.number("ms", 0)?));
        }
        Ok((facts, text, ns))
    }

    /// The same job on many connections at once, with different seeds. With `--ramp K` at most K
    /// connections are being made at a time; the jobs begin when all are there.
    fn parallel(&self, job: &Job, n: u64) -> Result<(), Fail> {
        let mut failed = 0;
        let ramp = Gate::new(self.args.number("ramp", n)?);
        let open = Barrier::new(n as usize);
        thread::scope(|s| {
            let threads: Vec<_> = (0..n)
                .map(|i| {
                    let mut job = job.clone();
                    job.seed = job.seed.wrapping_add(i * 1000);
                    let (ramp, open) = (&ramp, &open);
                    s.spawn(move || {
                        let sock = ramp.pass(|| self.connect());
                        open.wait();
                        self.on(&sock?, &job)
                    })
                })
                .collect();
            for t in threads {
                match t.join() {
                    Ok(Ok(_)) => {}
                    Ok(Err(e)) => {
                        println!("FAILED: {e}");
                        failed += 1;
                    }
                    Err(_) => failed += 1,
                }
            }
        });
        ensure!(failed == 0, "{failed} of {n} connections failed");
        println!("parallel={n} bytes={} OK", job.bytes);
        Ok(())
    }

    /// Timed connect + 64 bytes each way + close; a look at the transport before and after.
    fn short(&self, job: &Job) -> Result<(), Fail> {
        let round = |check: bool| -> Result<(), Fail> {
            let sock = self.connect()?;
            sock.send_all(&job.emit())?;
            job::drive(&sock, job)?;
            if check {
                self.expect.check(&sock)?;
            }
            Ok(())
        };
        for _ in 0..self.args.number("warm", 1)? {
            round(true)?;
        }
        let start = Instant::now();
        for _ in 0..job.rounds {
            round(false)?;
        }
        let ns = start.elapsed().as_nanos() as u64;
        round(true)?;
        println!(
            "time job=Short rounds={} ns={ns} ns_each={:.1}",
            job.rounds,
            ns as f64 / job.rounds.max(1) as f64
        );
        Ok(())
    }

    /// Timed ping-pong or stream on one connection, after a warm-up on that connection.
    fn timed(&self, job: &Job) -> Result<(), Fail> {
        let (facts, text, ns) = self.one(job)?;
        let each = match job.kind {
            Kind::Stream => ns as f64 / facts.sent.max(1) as f64,
            _ => ns as f64 / job.rounds.max(1) as f64,
        };
        println!(
            "time job={:?} size={} rounds={} bytes={} ns={ns} ns_each={each:.4} {text}",
            job.kind, job.size, job.rounds, job.bytes
        );
        Ok(())
    }
}

/// `smct pair`: a server in a thread of its own, then the client.
pub fn pair(name: &str, args: &Args) -> Result<(), Fail> {
    let count = args.number("count", args.number("parallel", 1)?)?;
    thread::scope(|s| {
        let (tell, port) = mpsc::channel();
        let server = s.spawn(move || {
            if let Some(ns) = args.text("server-ns") {
                checks::enter(&checks::netns(ns)?)?;
            }
            let server = Server::new(args, "server-", count)?;
            tell.send(server.port()?).map_err(|_| "nobody waits")?;
            server.run()
        });
        let client = match port.recv() {
            Ok(port) => run_at(name, args, port),
            Err(_) => Err("the server did not start".into()),
        };
        if let (Err(e), false) = (&client, server.is_finished()) {
            // The server may wait for ever for a connection that never came.
            thread::sleep(Duration::from_secs(2));
            eprintln!("smct: client: {e}");
            std::process::exit(1);
        }
        let server = server.join().map_err(|_| Fail::from("server panicked"))?;
        server.context("server")?;
        client
    })
}

/// `smct client`.
pub fn run(name: &str, args: &Args) -> Result<(), Fail> {
    run_at(name, args, args.number("port", 0)? as u16)
}

fn run_at(name: &str, args: &Args, port: u16) -> Result<(), Fail> {
    let job = job_of(name, args)?;
    let ip: IpAddr = args
        .text("addr")
        .unwrap_or("10.1.1.1")
        .parse()
        .context("--addr")?;
    let client = Client {
        args,
        family: args.value("family", Family::Smc)?,
        addr: SocketAddr::new(ip, port),
        expect: Expect::from_args(args, "")?,
    };
    let n = args.number("parallel", 1)?;
    let result = match job.kind {
        _ if n > 1 => client.parallel(&job, n),
        Kind::Short => client.short(&job),
        Kind::PingPong | Kind::Stream => client.timed(&job),
        _ => client.one(&job).map(|(facts, text, _)| {
            println!(
                "done job={:?} sent={} received={} sha256={} match {text}",
                job.kind, facts.sent, facts.received, facts.digest
            );
        }),
    };
    match result {
        Err(e) if args.flag("broken-ok") => {
            println!("broken: {e}");
            Ok(())
        }
        other => other,
    }
}
