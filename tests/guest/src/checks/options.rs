// SPDX-License-Identifier: GPL-2.0
//! Names and options.

use super::Rig;
use crate::ensure;
use crate::Fail;

/// Both ends agree on the addresses.
pub fn getname(rig: &Rig) -> Result<(), Fail> {
    let (listener, addr) = rig.listener()?;
    let client = rig.client()?;
    client.connect(addr)?;
    let (server, from) = listener.accept()?;
    client.send_all(b"x")?;
    let mut byte = [0];
    server.recv_all(&mut byte)?;
    rig.check(&client, &server)?;
    let (c, s) = (client.local()?, server.local()?);
    ensure!(
        client.peer()? == s,
        "client's peer {} is not {s}",
        client.peer()?
    );
    ensure!(
        server.peer()? == c,
        "server's peer {} is not {c}",
        server.peer()?
    );
    ensure!(from == c, "accept said {from}, client is {c}");
    ensure!(s.port() == addr.port(), "server is {s}, listener {addr}");
    ensure!(
        listener.local()?.port() == addr.port(),
        "listener's own name"
    );
    Ok(())
}

/// Options reach TCP and are read back; they survive the decision of the transport.
pub fn options(rig: &Rig) -> Result<(), Fail> {
    let (listener, addr) = rig.listener()?;
    let client = rig.client()?;
    let table = [
        (libc::IPPROTO_TCP, libc::TCP_NODELAY, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 77),
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, 12_345),
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::SOL_SOCKET, libc::SO_PRIORITY, 3),
        (libc::SOL_SOCKET, libc::SO_MARK, 0),
    ];
    for (level, name, value) in table {
        client.set_int(level, name, value)?;
    }
    client.connect(addr)?;
    let (server, _) = listener.accept()?;
    client.send_all(b"x")?;
    let mut byte = [0];
    server.recv_all(&mut byte)?;
    rig.check(&client, &server)?;
    for (level, name, value) in table {
        let found = client.get_int(level, name)?;
        ensure!(
            found == value,
            "option {level}/{name} is {found}, was set to {value}"
        );
    }
    let kind = client.get_int(libc::SOL_SOCKET, libc::SO_TYPE)?;
    ensure!(kind == libc::SOCK_STREAM, "SO_TYPE is {kind}");
    let listening = listener.get_int(libc::SOL_SOCKET, libc::SO_ACCEPTCONN)?;
    ensure!(listening == 1, "SO_ACCEPTCONN is {listening}");
    ensure!(
        client.set_int(libc::IPPROTO_TCP, 9999, 1).is_err(),
        "an unknown option was taken"
    );
    Ok(())
}

/// SO_SNDBUF and SO_RCVBUF are doubled and read back as with TCP.
pub fn buffers(rig: &Rig) -> Result<(), Fail> {
    let client = rig.client()?;
    for name in [libc::SO_SNDBUF, libc::SO_RCVBUF] {
        client.set_int(libc::SOL_SOCKET, name, 100_000)?;
        let found = client.get_int(libc::SOL_SOCKET, name)?;
        ensure!(
            found == 200_000,
            "option {name} is {found}, expected 200000"
        );
    }
    Ok(())
}
