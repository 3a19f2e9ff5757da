// SPDX-License-Identifier: GPL-2.0
//! Test program of the virtual machine: servers, clients and checks over every way to
//! make a stream socket. It asks the kernel which transport a socket uses, prints facts
//! and exits non-zero when one is not as expected.

mod args;
mod checks;
mod client;
mod crowd;
mod failnth;
mod genl;
mod job;
mod netlink;
mod peer;
// The module's own formats, to speak with it and to break them.
#[path = "../../../proto/mod.rs"]
#[allow(dead_code, unused_imports)]
mod proto;
mod rng;
mod server;
mod sock;
mod transport;

use std::fmt;
use std::io;
use std::process::ExitCode;

/// Why a test failed.
#[derive(Debug)]
pub struct Fail(pub String);

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Fail {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Fail {
    fn from(text: &str) -> Self {
        Self(text.to_string())
    }
}

impl From<io::Error> for Fail {
    fn from(e: io::Error) -> Self {
        Self(e.to_string())
    }
}

/// Adds what was being done to an error.
pub trait Context<T> {
    /// Puts `what` before the error's text.
    fn context(self, what: &str) -> Result<T, Fail>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn context(self, what: &str) -> Result<T, Fail> {
        self.map_err(|e| Fail(format!("{what}: {e}")))
    }
}

/// Fails with a formatted text unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($cond:expr, $($text:tt)+) => {
        if !$cond {
            return Err($crate::Fail(format!($($text)+)));
        }
    };
}

const USAGE: &str = "\
usage: smct server [--family F] [--addr A] --port P [--count N] [--expect T] [--reason R]
                   [--sndbuf N] [--rcvbuf N] [--broken-ok!] [--accept-delay-ms N]
       smct client JOB [--family F] --addr A --port P [--expect T] [--reason R] [--parallel N [--ramp K]]
                   [--seed N] [--sndbuf N] [--rcvbuf N] [--broken-ok!] [--retry-ms N]
         jobs: data [--bytes N] [--back N] [--chunk N]   both directions, SHA-256 at both ends
               pingpong [--size N] [--rounds N] [--warm N]   stream [--size N] [--bytes N]
               short [--rounds N] [--warm N]                 connect + 64 B each way + close
               hold [--ms N]                                 say hello, then wait
               half half-back     data, end of that direction, data the other way (-back: server begins)
               flush flush-back   data, close at once           abort abort-back   close with data unread
               urgent urgent-back an urgent byte
               (all with --bytes, --back, --chunk)
       smct pair JOB ...          server (in --server-ns NS) and client in one process;
                   --server-family, -expect, -reason, -sndbuf, -rcvbuf if they differ
       smct crowd [--clients N] [--rounds N] [--ns-prefix P] --server-ns NS [--expect T]
                   clients in namespaces P1, P2, ... connect N times each; percentiles of connect()
       smct check NAME|all|list [--family F] [--server-ns NS] [--client-ns NS] [--addr A]
                   [--expect T]
       smct peer list            the hostile peer's cases
       smct peer run [NAME] [--role client|server] [--host-ns NS] [--ns NS] [--interface I] [--bare!]
                   runs those that begin with NAME against the module; bare: those for a host without RDMA device
       smct socket F             make a socket of the family, print errno on failure
       smct sockets              check the errno table of socket()
       smct stat NAME [--equals N] [--min N]   a counter of the module
       smct failnth OP           each allocation of OP fails in turn; OP is insmod listen first again
                                 accept data close [--kind slab|page] [--from N] [--to N] [--step N]
                                 [--min N] [--verbose!]
       smct gone                 wait until no socket of the module is left
       smct ueid NAME            give upstream's module a user-defined EID
       smct power-off            end this machine at once
--ns NS: in this network namespace
F: smc smc6 ipproto ipproto6 tcp tcp6      T: SMC-R TCP any
";

fn run() -> Result<(), Fail> {
    let args = args::Args::parse(std::env::args().skip(1))?;
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    if let (Some(ns), false) = (args.text("ns"), words.first() == Some(&"peer")) {
        checks::enter(&checks::netns(ns)?)?;
    }
    match words.as_slice() {
        ["server"] => server::run(&args),
        ["client", job] => client::run(job, &args),
        ["pair", job] => client::pair(job, &args),
        ["crowd"] => crowd::run(&args),
        ["stat", name] => transport::stat(name, &args),
        ["gone"] => transport::gone(),
        ["failnth", op] => failnth::run(op, &args),
        ["check", name] => checks::run(name, &args),
        ["peer", "list"] => {
            peer::list();
            Ok(())
        }
        ["peer", "run"] => peer::run(None, &args),
        ["peer", "run", name] => peer::run(Some(name), &args),
        ["socket", family] => {
            let family = family.parse().map_err(|()| Fail::from("no such family"))?;
            sock::Sock::new(family).map(drop).context("socket")
        }
        ["sockets"] => checks::table::run(),
        ["power-off"] => power_off(),
        ["ueid", name] => genl::add_ueid(name),
        _ => Err(USAGE.into()),
    }
}

fn power_off() -> Result<(), Fail> {
    // SAFETY: No pointers; it does not return when it succeeds.
    let rc = unsafe { libc::reboot(libc::RB_POWER_OFF) };
    Err(Fail(format!(
        "power-off: {rc}, {}",
        io::Error::last_os_error()
    )))
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("smct: {e}");
            ExitCode::FAILURE
        }
    }
}
