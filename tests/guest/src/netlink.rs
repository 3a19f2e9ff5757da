// SPDX-License-Identifier: GPL-2.0
//! Just enough netlink for upstream's socket diagnosis and generic netlink.

use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;

use crate::sock;
use crate::transport::Transport;
use crate::Fail;

const NETLINK_SOCK_DIAG: i32 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const HEADER: usize = 16;

/// A netlink socket.
pub struct Netlink(OwnedFd);

impl Netlink {
    /// Opens one for a protocol.
    pub fn new(protocol: i32) -> io::Result<Self> {
        sock::socket(libc::AF_NETLINK, libc::SOCK_RAW, protocol).map(Self)
    }

    /// Sends a request and collects the payloads of the answers; an error answer is an
    /// error. `flags` come on top of NLM_F_REQUEST.
    pub fn call(&self, kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let mut message = Vec::with_capacity(HEADER + body.len());
        message.extend(((HEADER + body.len()) as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        message.extend(1u32.to_ne_bytes());
        message.extend(0u32.to_ne_bytes());
        message.extend(body);
        // SAFETY: the vector is valid for reading.
        let n = unsafe {
            libc::send(
                self.0.as_raw_fd(),
                message.as_ptr().cast(),
                message.len(),
                0,
            )
        };
        if n < 0 {
            return Err(io::Error::last_os_error());
        }
        self.answers(flags & NLM_F_DUMP != 0)
    }

    fn answers(&self, dump: bool) -> io::Result<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        let mut buffer = vec![0u8; 1 << 16];
        loop {
            // SAFETY: the buffer is valid for writing.
            let n = unsafe {
                libc::recv(
                    self.0.as_raw_fd(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    0,
                )
            };
            let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
            let mut rest = &buffer[..n];
            while rest.len() >= HEADER {
                let len = u32_at(rest, 0) as usize;
                let kind = u16::from_ne_bytes([rest[4], rest[5]]);
                if len < HEADER || len > rest.len() {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                let body = &rest[HEADER..len];
                match kind {
                    NLMSG_DONE => return Ok(all),
                    NLMSG_ERROR => {
                        let code = u32_at(body, 0) as i32;
                        return if code == 0 {
                            Ok(all)
                        } else {
                            Err(io::Error::from_raw_os_error(-code))
                        };
                    }
                    _ => all.push(body.to_vec()),
                }
                rest = &rest[((len + 3) & !3).min(rest.len())..];
            }
            if !dump && !all.is_empty() {
                return Ok(all);
            }
        }
    }
}

/// A native-endian number inside a message.
pub fn u32_at(data: &[u8], at: usize) -> u32 {
    data.get(at..at + 4)
        .map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
}

/// One netlink attribute with padding.
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(((value.len() + 4) as u16).to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend(value);
    out.resize((out.len() + 3) & !3, 0);
    out
}

/// The attributes of a message part.
pub fn attributes(mut data: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut all = Vec::new();
    while data.len() >= 4 {
        let len = usize::from(u16::from_ne_bytes([data[0], data[1]]));
        let kind = u16::from_ne_bytes([data[2], data[3]]);
        if len < 4 || len > data.len() {
            break;
        }
        all.push((kind, data[4..len].to_vec()));
        data = &data[((len + 3) & !3).min(data.len())..];
    }
    all
}

/// Asks upstream's smc_diag for the socket with this inode. `None`: not one of its
/// sockets.
pub fn smc_diag(inode: u64) -> Result<Option<Transport>, Fail> {
    // struct smc_diag_msg: family, state, mode, shutdown; inet_diag_sockid (48 bytes);
    // uid; inode (64 bit, aligned to 8).
    const SOCKID: usize = 48;
    const UID: usize = 4 + SOCKID;
    const INODE: usize = (UID + 4 + 7) & !7;
    const MESSAGE: usize = INODE + 8;
    const FALLBACK: u16 = 4;
    let mut request = vec![sock::AF_SMC as u8, 0, 1 << (FALLBACK - 1), 0];
    request.resize(4 + SOCKID, 0);
    let answers =
        match Netlink::new(NETLINK_SOCK_DIAG)?.call(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &request) {
            Ok(answers) => answers,
            // Neither module is loaded, or not its diagnosis: nobody knows this socket.
            Err(e) if e.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
            Err(e) => return Err(format!("smc_diag: {e}").into()),
        };
    for answer in answers {
        let Some(found) = answer.get(INODE..MESSAGE) else {
            continue;
        };
        if u64::from_ne_bytes(found.try_into().unwrap_or_default()) != inode {
            continue;
        }
        let name = match answer[2] {
            0 => "SMC-R",
            1 => "TCP",
            2 => "SMC-D",
            _ => "?",
        };
        let reason = attributes(&answer[MESSAGE..])
            .into_iter()
            .find(|(kind, _)| *kind == FALLBACK)
            .map_or(0, |(_, value)| u32_at(&value, 0));
        return Ok(Some(Transport {
            name: name.into(),
            reason,
        }));
    }
    Ok(None)
}
