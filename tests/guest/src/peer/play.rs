// SPDX-License-Identifier: GPL-2.0
//! The peer's part of a case.

use std::time::Duration;
use std::time::Instant;

use super::app::FROM_APP;
use super::case::Case;
use super::case::End;
use super::case::Expect;
use super::case::Step;
use super::message::Facts;
use super::tcp::Conn;
use super::tcp::Open;
use super::tcp::LONG;
use super::tcp::SMC;
use crate::ensure;
use crate::proto::reason::Reason;
use crate::proto::wire::clc::Header;
use crate::proto::wire::clc::Kind;
use crate::proto::wire::clc::EYECATCHER_R;
use crate::proto::wire::clc_accept::Accept;
use crate::proto::wire::clc_decline::Decline;
use crate::proto::wire::clc_proposal::Proposal;
use crate::Fail;

/// Plays a case to its end; then the host's side may look at its own.
pub fn play(case: &Case, conn: &mut Conn, facts: &mut Facts) -> Result<(), Fail> {
    if case.twin.is_empty() {
        return alone(case, conn, facts);
    }
    let mut twin = conn.twin();
    twin.open(Open::Client(SMC))?;
    for step in &case.twin {
        one(step, &mut twin, facts).map_err(|e| Fail(format!("twin: {e}")))?;
    }
    alone(case, conn, facts)?;
    twin.say_rst()
}

fn alone(case: &Case, conn: &mut Conn, facts: &mut Facts) -> Result<(), Fail> {
    conn.open(case.open)?;
    for (n, step) in case.steps.iter().enumerate() {
        one(step, conn, facts).map_err(|e| Fail(format!("peer's step {}: {e}", n + 1)))?;
    }
    match case.expect {
        Expect::Tcp(End::Error(_)) | Expect::Fallback(_, _, End::Error(_)) => Ok(()),
        Expect::Tcp(_) | Expect::Fallback(..) => {
            conn.acks = true;
            hear_plain(conn, FROM_APP)
        }
        Expect::Connect(_) | Expect::Dropped | Expect::Left => Ok(()),
    }
}

fn one(step: &Step, conn: &mut Conn, facts: &mut Facts) -> Result<(), Fail> {
    match step {
        Step::Say {
            msg,
            plain,
            mss,
            urgent,
        } => {
            let bytes = [&msg.bytes(facts)[..], plain].concat();
            for part in bytes.chunks((*mss).min(bytes.len().max(1))) {
                conn.say(part, *urgent)?;
            }
            Ok(())
        }
        Step::Hear(kind) => hear(conn, facts, *kind),
        Step::MayHear(kind) => may_hear(conn, *kind),
        Step::Declined(reason) => declined(conn, *reason),
        Step::Reset => reset(conn),
        Step::Quiet(ms) => quiet(conn, Duration::from_millis(*ms)),
        Step::Wait(ms) => {
            let end = Instant::now() + Duration::from_millis(*ms);
            while conn.pump(end)? {}
            Ok(())
        }
        Step::HasReset => {
            ensure!(conn.rst, "no RST so far");
            reset(conn)
        }
        Step::Acked => acked(conn),
        Step::Leave => facts.leave.send(()).map_err(|_| "nobody to leave".into()),
        Step::Fin => conn.say_fin(),
        Step::Rst => conn.say_rst(),
        Step::Window(window) => {
            conn.window = *window;
            conn.ack()
        }
        Step::Acks(on) => {
            conn.acks = *on;
            if *on {
                conn.ack()?;
            }
            Ok(())
        }
    }
}

/// The next whole message of the host.
fn message(conn: &mut Conn) -> Result<(Header, Vec<u8>), Fail> {
    let deadline = Instant::now() + LONG;
    loop {
        if conn.stream.len() >= 8 {
            let header = Header::parse(&conn.stream)
                .map_err(|e| Fail(format!("{e:?} in {:02x?}", conn.stream)))?;
            if conn.stream.len() >= header.length {
                let rest = conn.stream.split_off(header.length);
                let msg = std::mem::replace(&mut conn.stream, rest);
                return Ok((header, msg));
            }
        }
        ensure!(
            !conn.rst && !conn.fin,
            "{} instead of a message, after {:02x?}",
            if conn.rst { "RST" } else { "FIN" },
            conn.stream
        );
        ensure!(
            conn.pump(deadline)?,
            "no message, only {:02x?}",
            conn.stream
        );
    }
}

fn hear(conn: &mut Conn, facts: &mut Facts, kind: Kind) -> Result<(), Fail> {
    let (header, msg) = message(conn)?;
    ensure!(
        header.kind == kind,
        "{:?} instead of {kind:?}: {msg:02x?}",
        header.kind
    );
    match kind {
        Kind::Accept => {
            let accept = Accept::parse(&msg).map_err(|e| Fail(format!("ACCEPT: {e:?}")))?;
            facts.accept = Some(accept);
        }
        Kind::Proposal => {
            Proposal::parse(&msg).map_err(|e| Fail(format!("PROPOSAL: {e:?}")))?;
        }
        Kind::Confirm => {
            Accept::parse(&msg).map_err(|e| Fail(format!("CONFIRM: {e:?}")))?;
        }
        Kind::Decline => {}
    }
    ensure!(
        conn.stream.is_empty(),
        "{:02x?} after {kind:?}",
        conn.stream
    );
    Ok(())
}

fn may_hear(conn: &mut Conn, kind: Kind) -> Result<(), Fail> {
    let deadline = Instant::now() + LONG;
    while conn.stream.len() < 4 && !conn.rst {
        ensure!(conn.pump(deadline)?, "the host says nothing");
    }
    if conn.stream.starts_with(&EYECATCHER_R) {
        let (header, _) = message(conn)?;
        ensure!(header.kind == kind, "{:?}, not {kind:?}", header.kind);
    }
    Ok(())
}

fn declined(conn: &mut Conn, reason: Reason) -> Result<(), Fail> {
    let (header, msg) = message(conn)?;
    ensure!(
        header.kind == Kind::Decline,
        "{:?}, not DECLINE",
        header.kind
    );
    let decline = Decline::parse(&msg).map_err(|e| Fail(format!("DECLINE: {e:?}")))?;
    ensure!(
        decline.reason == reason,
        "declined for {:#010x} ({}), not {:#010x}",
        decline.reason.0,
        decline.reason.text(),
        reason.0
    );
    let out_of_sync = reason == Reason::SYNCERR;
    ensure!(
        decline.out_of_sync == out_of_sync,
        "out of sync is {}",
        decline.out_of_sync
    );
    Ok(())
}

fn hear_plain(conn: &mut Conn, bytes: &[u8]) -> Result<(), Fail> {
    let deadline = Instant::now() + LONG;
    while conn.stream.len() < bytes.len() && bytes.starts_with(&conn.stream) {
        ensure!(!conn.rst, "RST instead of the application's bytes");
        ensure!(
            conn.pump(deadline)?,
            "the application's bytes do not come, only {:02x?}",
            conn.stream
        );
    }
    ensure!(
        conn.stream == bytes,
        "heard {:02x?}, not {bytes:02x?}",
        conn.stream
    );
    conn.stream.clear();
    Ok(())
}

fn reset(conn: &mut Conn) -> Result<(), Fail> {
    let deadline = Instant::now() + LONG;
    while !conn.rst {
        ensure!(
            (conn.stream.is_empty() || !conn.acks) && !conn.fin,
            "no RST but {:02x?}, FIN: {}",
            conn.stream,
            conn.fin
        );
        ensure!(conn.pump(deadline)?, "no RST");
    }
    Ok(())
}

fn quiet(conn: &mut Conn, time: Duration) -> Result<(), Fail> {
    let start = Instant::now();
    while conn.pump(start + time)? {
        ensure!(
            !conn.rst && !conn.fin && (conn.stream.is_empty() || !conn.acks),
            "after {:?}: RST {} FIN {} {:02x?}",
            start.elapsed(),
            conn.rst,
            conn.fin,
            conn.stream
        );
    }
    Ok(())
}

fn acked(conn: &mut Conn) -> Result<(), Fail> {
    let deadline = Instant::now() + LONG;
    while !conn.all_acked() {
        ensure!(!conn.rst, "RST");
        ensure!(conn.pump(deadline)?, "the host acknowledges nothing");
    }
    Ok(())
}
