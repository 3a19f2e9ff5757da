// SPDX-License-Identifier: GPL-2.0
//! A hostile peer with a TCP of its own: `smct peer list` and `smct peer run`.
//!
//! It lives on an interface of a namespace whose kernel has none of its addresses. It puts the
//! SMC option into its SYN and SYN-ACK and then says whatever a case wants. The application is on
//! the host under test, in another namespace; each case has an address of its own.

mod app;
mod case;
mod cases;
mod message;
mod play;
mod tcp;
mod wire;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddrV4;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use self::app::Table;
use self::case::Case;
use self::case::Expect;
use self::message::Facts;
use self::tcp::Conn;
use self::tcp::Open;
use self::wire::peer_ip;
use self::wire::Wire;
use self::wire::HOST;
use crate::args::number;
use crate::args::Args;
use crate::checks::enter;
use crate::checks::netns;
use crate::ensure;
use crate::Context;
use crate::Fail;

/// Port of a peer that is a server.
const PORT: u16 = 5000;
/// Quick cases that run at once; slow ones all do.
const WORKERS: usize = 4;

/// `smct peer list`: one line for each case.
pub fn list() {
    for case in cases::all() {
        let device = if case.bare { "no device" } else { "device" };
        println!(
            "{:36} {:14} {device:9} {:?}",
            case.name,
            case.role(),
            case.expect
        );
    }
}

/// What the cases share.
struct Rig {
    wire: Arc<Wire>,
    host_ns: fs::File,
    table: Table,
}

/// `smct peer run [NAME]`: runs the cases that suit the host under test.
pub fn run(only: Option<&str>, args: &Args) -> Result<(), Fail> {
    let peer_ns = netns(args.text("ns").unwrap_or("h2"))?;
    let host_ns = netns(args.text("host-ns").unwrap_or("h1"))?;
    let bare = args.flag("bare");
    let role = args.text("role").unwrap_or("");
    let cases: Vec<(usize, Case)> = cases::all().into_iter().enumerate().collect();
    let (together, alone): (Vec<_>, Vec<_>) = cases
        .into_iter()
        .filter(|(_, c)| c.bare == bare && c.role().starts_with(role))
        .filter(|(_, c)| only.is_none_or(|name| c.name.starts_with(name)))
        .partition(|(_, c)| !c.alone);
    let (slow, quick): (Vec<_>, Vec<_>) = together.into_iter().partition(|(_, c)| c.slow());
    let ran = slow.len() + quick.len() + alone.len();
    ensure!(ran > 0, "no such case");
    enter(&peer_ns)?;
    let wire = Arc::new(Wire::open(args.text("interface").unwrap_or("e2"))?);
    enter(&host_ns)?;
    let rig = Rig {
        wire,
        host_ns,
        table: Table::default(),
    };
    let before = fallbacks()?;
    let failed = AtomicUsize::new(0);
    let next = AtomicUsize::new(0);
    thread::scope(|s| -> Result<(), Fail> {
        s.spawn(|| rig.wire.run());
        let result = rig.wire.resolve();
        if result.is_ok() {
            thread::scope(|s| {
                for case in &slow {
                    s.spawn(|| judge(&rig, case, &failed));
                }
                for _ in 0..WORKERS {
                    s.spawn(|| {
                        while let Some(case) = quick.get(next.fetch_add(1, Ordering::Relaxed)) {
                            judge(&rig, case, &failed);
                        }
                    });
                }
            });
        }
        if result.is_ok() {
            // As a new thread: this one has nothing to do with namespaces.
            thread::scope(|s| {
                for case in &alone {
                    s.spawn(|| judge(&rig, case, &failed));
                }
            });
        }
        rig.wire.stop();
        result
    })?;
    let failed = failed.into_inner();
    println!("peer: {} of {ran} cases passed", ran - failed);
    ensure!(failed == 0, "{failed} of {ran} cases failed");
    counters(
        before,
        slow.iter()
            .chain(&quick)
            .chain(&alone)
            .map(|(_, case)| case),
    )
}

/// Runs a case and says how it went.
fn judge(rig: &Rig, (n, case): &(usize, Case), failed: &AtomicUsize) {
    let start = Instant::now();
    let result = enter(&rig.host_ns).and_then(|()| single(rig, *n, case));
    let ms = start.elapsed().as_millis();
    match result {
        Ok(()) => println!("peer {} OK {ms} ms", case.name),
        Err(e) => {
            failed.fetch_add(1, Ordering::Relaxed);
            println!("peer {} FAILED {ms} ms: {e}", case.name);
        }
    }
}

/// One case: the peer's part in a thread, the application's here.
fn single(rig: &Rig, n: usize, case: &Case) -> Result<(), Fail> {
    let ip = peer_ip(n);
    let peer = SocketAddrV4::new(ip, PORT);
    let rx = rig.wire.claim(peer);
    let (leave, left) = mpsc::channel();
    let mut facts = Facts {
        ip,
        accept: None,
        leave,
    };
    let (port_tx, port_rx) = mpsc::channel();
    thread::scope(|s| {
        let part = s.spawn(move || {
            let port = match case.open {
                Open::Client(_) => port_rx.recv().map_err(|_| "no listener")?,
                _ => 0,
            };
            let host = SocketAddrV4::new(HOST, port);
            let mut conn = Conn::new(rig.wire.clone(), rx, peer, host);
            conn.window = case.window;
            let played = play::play(case, &mut conn, &mut facts);
            played.map(|()| conn)
        });
        let (mut part, mut conn) = (Some(part), None);
        let mut play = || -> Result<(), Fail> {
            if let Some(part) = part.take() {
                conn = Some(part.join().map_err(|_| "the peer panicked")??);
            }
            Ok(())
        };
        let result = match case.open {
            Open::Client(_) => {
                let host = SocketAddrV4::new(HOST, 0);
                let tell = |port| {
                    let _ = port_tx.send(port);
                };
                app::accepts(case, peer, host, &rig.table, tell, &left, &mut play)
            }
            _ => app::connects(case, peer, &rig.table, &left, &mut play),
        };
        // The peer's part may say why.
        let other = play().err();
        // What is left of the connection goes at once.
        if let Some(conn) = conn {
            conn.say_rst()?;
        }
        match (result, other) {
            (Err(e), Some(other)) => Err(Fail(format!("{e}; {other}"))),
            (result, _) => result,
        }
    })
}

/// How often the namespace's sockets fell back, by reason; `None`: reasons without a counter.
fn fallbacks() -> Result<BTreeMap<Option<u32>, u64>, Fail> {
    let text = fs::read_to_string("/proc/thread-self/net/smc_stat").context("smc_stat")?;
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let reason = match words.next().and_then(|name| name.strip_prefix("fallback_")) {
            Some("other") => None,
            Some(reason) if reason.starts_with("0x") => number(reason).map(|n| n as u32),
            _ => continue,
        };
        let count = words.next().and_then(|w| w.parse().ok()).unwrap_or(0);
        counts.insert(reason, count);
    }
    Ok(counts)
}

/// The counters have moved by exactly what the cases expect.
fn counters<'a>(
    before: BTreeMap<Option<u32>, u64>,
    cases: impl Iterator<Item = &'a Case>,
) -> Result<(), Fail> {
    let found = fallbacks()?;
    let mut expected = before;
    for case in cases {
        if let Expect::Fallback(reason, ..) = case.expect {
            let key = Some(reason.0).filter(|_| found.contains_key(&Some(reason.0)));
            *expected.entry(key).or_default() += 1;
        }
    }
    ensure!(
        found == expected,
        "fallbacks by reason: {found:08x?}, expected {expected:08x?}"
    );
    Ok(())
}
