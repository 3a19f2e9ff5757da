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

/// Sets the buffer sizes that the command line asks for.
pub fn set_buffers(sock: &Sock, args: &Args) -> Result<(), Fail> {
    for (option, name) in [("sndbuf", libc::SO_SNDBUF), ("rcvbuf", libc::SO_RCVBUF)] {
        let size = args.number(option, 0)?;
        if size > 0 {
            sock.set_int(libc::SOL_SOCKET, name, size as i32).context(option)?;
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

/// `smct server`.
pub fn run(args: &Args) -> Result<(), Fail> {
    let family: Family = args.value("family", Family::Smc)?;
    let any = if family.is_v6() { "::" } else { "0.0.0.0" };
    let ip: IpAddr = args.text("addr").unwrap_or(any).parse().context("--addr")?;
    let port = args.number("port", 0)? as u16;
    let count = args.number("count", 1)?;
    let expect = Arc::new(Expect::from_args(args)?);
    let (quiet, broken_ok) = (args.flag("quiet"), args.flag("broken-ok"));

    let sock = Sock::new(family).context("socket")?;
    sock.set_int(libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    set_buffers(&sock, args)?;
    sock.bind(SocketAddr::new(ip, port)).context("bind")?;
    sock.start_listen(1024).context("listen")?;
    println!("listening port={}", sock.local()?.port());

    // Bounded by the connections that are open, not by all there ever were.
    let mut threads = Vec::new();
    let mut failed = 0u64;
    let mut reap = |t: thread::JoinHandle<Result<(), Fail>>| match t.join() {
        Ok(Ok(())) => {}
        Ok(Err(e)) if broken_ok => println!("broken: {e}"),
        Ok(Err(e)) => {
            println!("FAILED: {e}");
            failed += 1;
        }
        Err(_) => failed += 1,
    };
    for _ in 0..count {
        let (conn, _) = sock.accept().context("accept")?;
        let expect = expect.clone();
        if count > 1 && args.flag("inline") {
            serve(&conn, &expect, quiet)?;
            continue;
        }
        threads.push(thread::spawn(move || serve(&conn, &expect, quiet)));
        while let Some(at) = threads.iter().position(|t| t.is_finished()) {
            reap(threads.swap_remove(at));
        }
    }
    threads.into_iter().for_each(&mut reap);
    if failed > 0 {
        return Err(format!("{failed} of {count} connections failed").into());
    }
    Ok(())
}
