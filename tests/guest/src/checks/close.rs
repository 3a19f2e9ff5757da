// SPDX-License-Identifier: GPL-2.0
//! The ends of a connection.

use std::io;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use super::errno;
use super::fails;
use super::wait_for;
use super::Rig;
use super::LONG;
use super::SHORT;
use crate::ensure;
use crate::rng::Rng;
use crate::sock::Sock;
use crate::Context;
use crate::Fail;

fn expect_end(what: &str, sock: &Sock) -> Result<(), Fail> {
    let mut byte = [0];
    let n = sock.recv(&mut byte, 0).context(what)?;
    ensure!(n == 0, "{what}: data instead of the end");
    Ok(())
}

/// Half close: the other direction still works.
pub fn shutdown_write(rig: &Rig) -> Result<(), Fail> {
    let (client, server) = rig.pair()?;
    client.send_all(b"last")?;
    client.shutdown(libc::SHUT_WR)?;
    fails("send after shutdown", libc::EPIPE, client.send(b"x", 0))?;
    let mut data = [0; 4];
    server.recv_all(&mut data)?;
    ensure!(&data == b"last", "got {data:?}");
    expect_end("server", &server)?;
    expect_end("server again", &server)?;
    let big = vec![9; 200_000];
    thread::scope(|s| {
        let reader = s.spawn(|| {
            let mut back = vec![0; 200_000];
            client.recv_all(&mut back)
        });
        server
            .send_all(&big)
            .context("send to a half closed peer")?;
        reader
            .join()
            .map_err(|_| "panic")?
            .context("recv after shutdown")
    })?;
    server.shutdown(libc::SHUT_WR)?;
    expect_end("client", &client)
}

/// SHUT_RDWR ends both directions at both ends.
pub fn shutdown_both(rig: &Rig) -> Result<(), Fail> {
    let (client, server) = rig.pair()?;
    client.shutdown(libc::SHUT_RDWR)?;
    expect_end("own recv", &client)?;
    fails("own send", libc::EPIPE, client.send(b"x", 0))?;
    expect_end("peer's recv", &server)
}

/// Close with much data on the way: the peer gets all of it, then the end.
pub fn in_flight(rig: &Rig) -> Result<(), Fail> {
    const TOTAL: usize = 1 << 20;
    let (client, server) = rig.pair()?;
    let mut data = vec![0; TOTAL];
    Rng::new(3).fill(&mut data);
    let expected = data.clone();
    let sender = thread::spawn(move || client.send_all(&data).map(|()| drop(client)));
    // The last part must still be on its way when the sender is gone.
    thread::sleep(SHORT);
    let mut got = Vec::new();
    let mut buffer = vec![0; 3000];
    loop {
        let n = server.recv(&mut buffer, 0).context("recv")?;
        if n == 0 {
            break;
        }
        got.extend_from_slice(&buffer[..n]);
    }
    sender.join().map_err(|_| "panic")?.context("send")?;
    ensure!(
        got.len() == TOTAL,
        "{} of {TOTAL} bytes before the end",
        got.len()
    );
    ensure!(got == expected, "data differs");
    Ok(())
}

/// A reader that sleeps is woken by the peer's close.
pub fn wakes_reader(rig: &Rig) -> Result<(), Fail> {
    let (client, server) = rig.pair()?;
    let closer = thread::spawn(move || {
        thread::sleep(SHORT);
        drop(client);
    });
    expect_end("sleeping reader", &server)?;
    closer.join().map_err(|_| "panic".into())
}

/// After the peer's close: the end, then (a RST later) EPIPE or ECONNRESET for send.
pub fn epipe(rig: &Rig) -> Result<(), Fail> {
    let (client, server) = rig.pair()?;
    drop(client);
    expect_end("after close", &server)?;
    let start = Instant::now();
    let code = loop {
        if let Err(e) = server.send(b"x", 0) {
            break e.raw_os_error().unwrap_or(-1);
        }
        ensure!(start.elapsed() < LONG, "send goes on for ever");
        thread::sleep(Duration::from_millis(20));
    };
    ensure!(
        code == libc::EPIPE || code == libc::ECONNRESET,
        "send: errno {code}"
    );
    // From now on it is EPIPE.
    fails("send", libc::EPIPE, server.send(b"x", 0))
}

fn expect_reset(what: &str, sock: &Sock) -> Result<(), Fail> {
    wait_for(what, sock, libc::POLLIN)?;
    let mut buffer = [0; 100];
    fails(what, libc::ECONNRESET, sock.recv(&mut buffer, 0))?;
    // Reported once, then the end.
    let n = sock.recv(&mut buffer, 0).context("recv after the reset")?;
    ensure!(n == 0, "data after the reset");
    Ok(())
}

/// SO_LINGER with time 0: close resets.
pub fn linger_abort(rig: &Rig) -> Result<(), Fail> {
    let (client, server) = rig.pair()?;
    client.set_linger(true, 0)?;
    drop(client);
    expect_reset("recv after an aborting close", &server)
}

/// Close with unread data resets, as TCP does.
pub fn unread(rig: &Rig) -> Result<(), Fail> {
    let (client, server) = rig.pair()?;
    server.send_all(b"never read")?;
    wait_for("data", &client, libc::POLLIN)?;
    drop(client);
    expect_reset("recv after a close with unread data", &server)
}

/// Closing a listener ends an accept that sleeps on shutdown, and frees the port.
pub fn listener(rig: &Rig) -> Result<(), Fail> {
    let (listener, addr) = rig.listener()?;
    thread::scope(|s| {
        let sleeper = s.spawn(|| errno("accept", listener.accept()));
        thread::sleep(SHORT);
        listener.shutdown(libc::SHUT_RDWR).context("shutdown")?;
        let code = sleeper.join().map_err(|_| "panic")??;
        ensure!(code == libc::EINVAL, "accept woke with errno {code}");
        Ok::<(), Fail>(())
    })?;
    drop(listener);
    let client = rig.client()?;
    fails("connect", libc::ECONNREFUSED, client.connect(addr))
}

/// Closing a listener resets connections that nobody accepted.
pub fn pending(rig: &Rig) -> Result<(), Fail> {
    let (listener, addr) = rig.listener()?;
    let client = rig.client()?;
    client.connect(addr)?;
    drop(listener);
    wait_for("client", &client, libc::POLLIN)?;
    let mut byte = [0];
    match client.recv(&mut byte, 0) {
        Err(e) if e.kind() == io::ErrorKind::ConnectionReset => Ok(()),
        other => Err(format!("recv: {other:?}, expected a reset").into()),
    }
}
