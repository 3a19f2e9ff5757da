// SPDX-License-Identifier: GPL-2.0
//! Sending, receiving and polling.

use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;
use std::time::Instant;

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

/// 100 kB there and back.
pub fn echo(rig: &Rig) -> Result<(), Fail> {
    let (client, server) = rig.pair()?;
    let mut data = vec![0; 100_000];
    Rng::new(5).fill(&mut data);
    thread::scope(|s| {
        let echo = s.spawn(|| -> Result<(), Fail> {
            let mut buffer = vec![0; 100_000];
            server.recv_all(&mut buffer)?;
            server.send_all(&buffer)?;
            Ok(())
        });
        client.send_all(&data)?;
        let mut back = vec![0; 100_000];
        client.recv_all(&mut back)?;
        ensure!(back == data, "echo differs");
        echo.join().map_err(|_| Fail::from("panic"))?
    })
}

/// EAGAIN for a non-blocking socket and for MSG_DONTWAIT.
pub fn eagain(rig: &Rig) -> Result<(), Fail> {
    let (client, server) = rig.pair()?;
    let mut byte = [0];
    fails(
        "recv",
        libc::EAGAIN,
        client.recv(&mut byte, libc::MSG_DONTWAIT),
    )?;
    server.set_nonblocking(true)?;
    fails("recv", libc::EAGAIN, server.recv(&mut byte, 0))
}

/// SO_RCVTIMEO ends a recv with EAGAIN, neither early nor much too late.
pub fn rcvtimeo(rig: &Rig) -> Result<(), Fail> {
    let (client, _server) = rig.pair()?;
    client.set_timeout(libc::SO_RCVTIMEO, SHORT)?;
    let start = Instant::now();
    let mut byte = [0];
    fails("recv", libc::EAGAIN, client.recv(&mut byte, 0))?;
    let took = start.elapsed();
    ensure!(
        took >= SHORT - Duration::from_millis(20) && took < LONG,
        "recv gave up after {took:?}"
    );
    Ok(())
}

extern "C" fn on_alarm(_: i32) {}

/// Lets SIGALRM interrupt system calls (or restart them) after a time.
fn alarm_after(ms: i64, flags: i32) {
    // SAFETY: all-zero is valid for these plain structures; the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_alarm as *const () as usize;
        action.sa_flags = flags;
        libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut());
        let mut timer: libc::itimerval = std::mem::zeroed();
        timer.it_value.tv_usec = ms * 1000;
        libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut());
    }
}

/// A signal ends recv with EINTR; with SA_RESTART it goes on.
pub fn eintr(rig: &Rig) -> Result<(), Fail> {
    let (client, server) = rig.pair()?;
    let mut byte = [0];
    alarm_after(200, 0);
    fails("recv", libc::EINTR, client.recv(&mut byte, 0))?;
    thread::scope(|s| {
        // A thread of its own must not get the signal instead.
        s.spawn(|| {
            // SAFETY: `set` is valid; only this thread's mask changes.
            unsafe {
                let mut set: libc::sigset_t = std::mem::zeroed();
                libc::sigaddset(&mut set, libc::SIGALRM);
                libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            }
            thread::sleep(Duration::from_millis(800));
            let _ = server.send_all(b"r");
        });
        alarm_after(300, libc::SA_RESTART);
        let n = client.recv(&mut byte, 0).context("recv with SA_RESTART")?;
        ensure!(n == 1 && &byte == b"r", "got {n} {byte:?}");
        Ok(())
    })
}

/// POLLIN only with data, POLLRDHUP and POLLIN after the peer's shutdown.
pub fn poll(rig: &Rig) -> Result<(), Fail> {
    let (client, server) = rig.pair()?;
    let all = libc::POLLIN | libc::POLLOUT | libc::POLLRDHUP;
    let found = client.poll(all, SHORT)?;
    ensure!(found == libc::POLLOUT, "idle: {found:#x}");
    server.send_all(b"x")?;
    wait_for("data", &client, libc::POLLIN)?;
    let mut byte = [0];
    client.recv_all(&mut byte)?;
    let found = client.poll(all, SHORT)?;
    ensure!(found == libc::POLLOUT, "after reading: {found:#x}");
    server.shutdown(libc::SHUT_WR)?;
    let found = wait_for("end", &client, libc::POLLIN | libc::POLLRDHUP)?;
    ensure!(
        found & (libc::POLLHUP | libc::POLLERR) == 0,
        "half closed: {found:#x}"
    );
    ensure!(client.recv(&mut byte, 0)? == 0, "no end of stream");
    client.shutdown(libc::SHUT_WR)?;
    wait_for("both closed", &client, libc::POLLHUP)?;
    Ok(())
}

/// Edge-triggered epoll reports each arrival once.
pub fn epoll_edge(rig: &Rig) -> Result<(), Fail> {
    let (client, server) = rig.pair()?;
    // SAFETY: no memory is passed.
    let ep = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    ensure!(ep >= 0, "epoll_create1");
    let mut event = libc::epoll_event {
        events: (libc::EPOLLIN | libc::EPOLLET) as u32,
        u64: 1,
    };
    // SAFETY: `event` is valid for reading.
    let ret = unsafe { libc::epoll_ctl(ep, libc::EPOLL_CTL_ADD, client.as_raw_fd(), &mut event) };
    ensure!(ret == 0, "epoll_ctl");
    let mut wait = |time: Duration| {
        // SAFETY: room for one entry.
        unsafe { libc::epoll_wait(ep, &mut event, 1, time.as_millis() as i32) }
    };
    ensure!(wait(SHORT) == 0, "event without data");
    for _ in 0..3 {
        server.send_all(b"x")?;
        ensure!(wait(LONG) == 1, "no event for data");
        ensure!(wait(SHORT) == 0, "event without new data");
    }
    // SAFETY: ours.
    unsafe { libc::close(ep) };
    let mut data = [0; 3];
    client.recv_all(&mut data)?;
    Ok(())
}

/// Fills both buffers without blocking, then drains them: nothing lost, POLLOUT right.
pub fn fill_and_drain(rig: &Rig) -> Result<(), Fail> {
    let (client, server) = rig.pair()?;
    client.set_nonblocking(true)?;
    let chunk = [7u8; 5000];
    let mut sent = 0;
    for _ in 0..3 {
        loop {
            match client.send(&chunk, 0) {
                Ok(n) => sent += n,
                Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => break,
                Err(e) => return Err(e).context("send"),
            }
            ensure!(sent < 1 << 30, "it never fills up");
        }
        thread::sleep(SHORT);
    }
    ensure!(sent > 16_000, "full after {sent} bytes");
    let found = client.poll(libc::POLLOUT, SHORT)?;
    ensure!(found & libc::POLLOUT == 0, "POLLOUT while full");
    let mut buffer = vec![0; 1 << 16];
    let mut received = 0;
    while received < sent {
        let n = server.recv(&mut buffer, 0)?;
        ensure!(n > 0, "end of stream after {received} of {sent}");
        ensure!(buffer[..n].iter().all(|b| *b == 7), "data differs");
        received += n;
    }
    wait_for("space", &client, libc::POLLOUT)?;
    ensure!(
        server.poll(libc::POLLIN, SHORT)? == 0,
        "more came than was sent"
    );
    Ok(())
}

/// MSG_PEEK leaves the data, MSG_WAITALL waits for all of it.
pub fn peek_waitall(rig: &Rig) -> Result<(), Fail> {
    let (client, server) = rig.pair()?;
    client.send_all(b"abcdef")?;
    wait_for("data", &server, libc::POLLIN)?;
    let mut data = [0; 16];
    let n = server.recv(&mut data[..3], libc::MSG_PEEK)?;
    ensure!(&data[..n] == b"abc", "peeked {:?}", &data[..n]);
    thread::scope(|s| {
        s.spawn(|| {
            thread::sleep(SHORT);
            let _ = client.send_all(b"ghij");
        });
        let n = server.recv(&mut data[..10], libc::MSG_WAITALL)?;
        ensure!(&data[..n] == b"abcdefghij", "got {:?}", &data[..n]);
        Ok(())
    })
}

/// FIONREAD counts what is readable, SIOCOUTQ comes down to zero.
pub fn fionread(rig: &Rig) -> Result<(), Fail> {
    const SIOCOUTQ: libc::c_ulong = 0x5411;
    let (client, server) = rig.pair()?;
    client.send_all(&[1; 1000])?;
    let start = Instant::now();
    while server.ioctl_int(libc::FIONREAD)? != 1000 && start.elapsed() < LONG {
        thread::sleep(Duration::from_millis(10));
    }
    let found = server.ioctl_int(libc::FIONREAD)?;
    ensure!(found == 1000, "FIONREAD says {found}");
    let mut data = [0; 1000];
    server.recv_all(&mut data)?;
    while client.ioctl_int(SIOCOUTQ)? != 0 && start.elapsed() < LONG {
        thread::sleep(Duration::from_millis(10));
    }
    let found = client.ioctl_int(SIOCOUTQ)?;
    ensure!(found == 0, "SIOCOUTQ says {found}");
    Ok(())
}

fn vectors(sock: &Sock, parts: &mut [Vec<u8>], write: bool) -> isize {
    let vec: Vec<libc::iovec> = parts
        .iter_mut()
        .map(|p| libc::iovec {
            iov_base: p.as_mut_ptr().cast(),
            iov_len: p.len(),
        })
        .collect();
    // SAFETY: the vectors describe live buffers.
    unsafe {
        if write {
            libc::writev(sock.as_raw_fd(), vec.as_ptr(), vec.len() as i32)
        } else {
            libc::readv(sock.as_raw_fd(), vec.as_ptr(), vec.len() as i32)
        }
    }
}

/// Scattered and gathered data, with an empty piece.
pub fn iovecs(rig: &Rig) -> Result<(), Fail> {
    let (client, server) = rig.pair()?;
    let mut out = [
        b"ab".to_vec(),
        Vec::new(),
        b"cde".to_vec(),
        vec![b'z'; 7000],
    ];
    ensure!(vectors(&client, &mut out, true) == 7005, "writev");
    let start = Instant::now();
    while server.ioctl_int(libc::FIONREAD)? != 7005 && start.elapsed() < LONG {
        thread::sleep(Duration::from_millis(10));
    }
    let mut back = [vec![0; 3], vec![0; 7002]];
    let n = vectors(&server, &mut back, false);
    ensure!(n == 7005, "readv gave {n}");
    ensure!(back[0] == b"abc" && &back[1][..3] == b"dez", "data differs");
    Ok(())
}
