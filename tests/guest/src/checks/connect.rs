// SPDX-License-Identifier: GPL-2.0
//! Connecting and accepting.

use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use super::fails;
use super::wait_for;
use super::Rig;
use super::LONG;
use super::SHORT;
use crate::ensure;
use crate::sock::Sock;
use crate::Context;
use crate::Fail;

/// Connect returns before the server called accept, and data written then is not lost.
pub fn before_accept(rig: &Rig) -> Result<(), Fail> {
    let (listener, addr) = rig.listener()?;
    let client = rig.client()?;
    client.connect(addr).context("connect")?;
    client.send_all(b"early").context("send before accept")?;
    let (server, _) = listener.accept().context("accept")?;
    let mut data = [0; 5];
    server.recv_all(&mut data)?;
    ensure!(&data == b"early", "got {data:?}");
    rig.check(&client, &server)
}

/// Several connections wait for one accept after the other.
pub fn many_before_accept(rig: &Rig) -> Result<(), Fail> {
    let (listener, addr) = rig.listener()?;
    let mut clients = Vec::new();
    for i in 0..8u8 {
        let client = rig.client()?;
        client.connect(addr).context("connect")?;
        client.send_all(&[i])?;
        clients.push(client);
    }
    for _ in 0..8 {
        let (server, peer) = listener.accept().context("accept")?;
        let mut byte = [0];
        server.recv_all(&mut byte)?;
        let client = clients.get(usize::from(byte[0])).ok_or("no such client")?;
        ensure!(
            client.local()?.port() == peer.port(),
            "accept gave {peer}, but the data came from {}",
            client.local()?
        );
        rig.check(client, &server)?;
    }
    Ok(())
}

fn finish_nonblocking(rig: &Rig, listener: &Sock, client: &Sock) -> Result<(), Fail> {
    let error = client.get_int(libc::SOL_SOCKET, libc::SO_ERROR)?;
    ensure!(error == 0, "SO_ERROR is {error}");
    client.send_all(b"x").context("send")?;
    let (server, _) = listener.accept()?;
    let mut byte = [0];
    server.recv_all(&mut byte)?;
    rig.check(client, &server)
}

/// EINPROGRESS, EALREADY or success while it lasts, POLLOUT, SO_ERROR 0, EISCONN after.
pub fn nonblocking(rig: &Rig) -> Result<(), Fail> {
    let (listener, addr) = rig.listener()?;
    let client = rig.client()?;
    client.set_nonblocking(true)?;
    if client.connect(addr).is_ok() {
        return Err("non-blocking connect to another host succeeded at once".into());
    }
    // The handshake may or may not be over by now.
    if let Err(e) = client.connect(addr) {
        let code = e.raw_os_error().unwrap_or(-1);
        ensure!(
            code == libc::EALREADY || code == libc::EISCONN,
            "second connect: {e}"
        );
    }
    let found = wait_for("connected", &client, libc::POLLOUT)?;
    ensure!(
        found & (libc::POLLERR | libc::POLLHUP) == 0,
        "poll says {found:#x}"
    );
    finish_nonblocking(rig, &listener, &client)?;
    // The first call after the connection was made says so, once; Linux TCP does the same.
    let _ = client.connect(addr);
    fails(
        "connect when connected",
        libc::EISCONN,
        client.connect(addr),
    )
}

/// The same by epoll: nothing before the connection is made, EPOLLOUT after.
pub fn epoll(rig: &Rig) -> Result<(), Fail> {
    let (listener, addr) = rig.listener()?;
    let client = rig.client()?;
    client.set_nonblocking(true)?;
    // SAFETY: no memory is passed.
    let ep = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    ensure!(ep >= 0, "epoll_create1");
    let mut event = libc::epoll_event {
        events: (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET) as u32,
        u64: 7,
    };
    fails("connect", libc::EINPROGRESS, client.connect(addr))?;
    // SAFETY: `event` is valid for reading.
    let ret = unsafe { libc::epoll_ctl(ep, libc::EPOLL_CTL_ADD, client.as_raw_fd(), &mut event) };
    ensure!(ret == 0, "epoll_ctl");
    // SAFETY: `event` is valid for writing one entry.
    let ret = unsafe { libc::epoll_wait(ep, &mut event, 1, LONG.as_millis() as i32) };
    // SAFETY: ours.
    unsafe { libc::close(ep) };
    let events = event.events;
    ensure!(ret == 1, "epoll_wait says {ret}");
    ensure!(
        events & libc::EPOLLOUT as u32 != 0,
        "epoll says {events:#x}"
    );
    finish_nonblocking(rig, &listener, &client)
}

/// Nobody listens: ECONNREFUSED, blocking and non-blocking.
pub fn refused(rig: &Rig) -> Result<(), Fail> {
    let (listener, addr) = rig.listener()?;
    drop(listener);
    let client = rig.client()?;
    fails("connect", libc::ECONNREFUSED, client.connect(addr))?;
    let client = rig.client()?;
    client.set_nonblocking(true)?;
    fails("connect", libc::EINPROGRESS, client.connect(addr))?;
    let found = wait_for("refused", &client, libc::POLLOUT)?;
    ensure!(found & libc::POLLERR != 0, "no POLLERR: {found:#x}");
    let error = client.get_int(libc::SOL_SOCKET, libc::SO_ERROR)?;
    ensure!(error == libc::ECONNREFUSED, "SO_ERROR is {error}");
    Ok(())
}

/// Accept without a connection: EAGAIN at once, or after SO_RCVTIMEO; POLLIN when there is one.
pub fn accept_eagain(rig: &Rig) -> Result<(), Fail> {
    let (listener, addr) = rig.listener()?;
    listener.set_timeout(libc::SO_RCVTIMEO, SHORT)?;
    fails("accept with a time limit", libc::EAGAIN, listener.accept())?;
    listener.set_nonblocking(true)?;
    fails("accept", libc::EAGAIN, listener.accept())?;
    ensure!(
        listener.poll(libc::POLLIN, SHORT)? == 0,
        "listener is readable"
    );
    let client = rig.client()?;
    client.connect(addr)?;
    client.send_all(b"x")?;
    wait_for("listener", &listener, libc::POLLIN)?;
    let (server, _) = listener.accept().context("accept after poll")?;
    let mut byte = [0];
    server.recv_all(&mut byte)?;
    rig.check(&client, &server)
}

/// A socket that is not connected answers as TCP does.
pub fn not_connected(rig: &Rig) -> Result<(), Fail> {
    let client = rig.client()?;
    let mut byte = [0];
    fails("send", libc::EPIPE, client.send(b"x", 0))?;
    fails("recv", libc::ENOTCONN, client.recv(&mut byte, 0))?;
    fails("getpeername", libc::ENOTCONN, client.peer())?;
    fails("shutdown", libc::ENOTCONN, client.shutdown(libc::SHUT_WR))?;
    fails("accept", libc::EINVAL, client.accept())?;
    let found = client.poll(libc::POLLIN | libc::POLLOUT, SHORT)?;
    ensure!(
        found & libc::POLLHUP != 0,
        "poll of a fresh socket says {found:#x}"
    );
    let other: SocketAddr = "203.0.113.9:1".parse().map_err(|_| "address")?;
    fails(
        "bind to a foreign address",
        libc::EADDRNOTAVAIL,
        client.bind(other),
    )
}
