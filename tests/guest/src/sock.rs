// SPDX-License-Identifier: GPL-2.0
//! Sockets of all families under test, as thin wrappers around the system calls, so
//! that a test sees exactly the errno the kernel gave.

use std::io;
use std::mem;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::net::SocketAddrV4;
use std::net::SocketAddrV6;
use std::os::fd::AsRawFd;
use std::os::fd::FromRawFd;
use std::os::fd::OwnedFd;
use std::os::fd::RawFd;
use std::str::FromStr;
use std::time::Duration;

use libc::c_int;

/// AF_SMC, not in every libc.
pub const AF_SMC: c_int = 43;
/// IPPROTO_SMC.
pub const IPPROTO_SMC: c_int = 256;

/// How a socket is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// AF_SMC, protocol 0 (IPv4).
    Smc,
    /// AF_SMC, protocol 1 (IPv6).
    Smc6,
    /// AF_INET, IPPROTO_SMC.
    Ipproto,
    /// AF_INET6, IPPROTO_SMC.
    Ipproto6,
    /// AF_INET, TCP.
    Tcp,
    /// AF_INET6, TCP.
    Tcp6,
}

impl Family {
    /// Arguments for `socket()`: domain and protocol.
    pub fn socket_args(self) -> (c_int, c_int) {
        match self {
            Self::Smc => (AF_SMC, 0),
            Self::Smc6 => (AF_SMC, 1),
            Self::Ipproto => (libc::AF_INET, IPPROTO_SMC),
            Self::Ipproto6 => (libc::AF_INET6, IPPROTO_SMC),
            Self::Tcp => (libc::AF_INET, 0),
            Self::Tcp6 => (libc::AF_INET6, 0),
        }
    }

    /// Whether addresses are IPv6.
    pub fn is_v6(self) -> bool {
        matches!(self, Self::Smc6 | Self::Ipproto6 | Self::Tcp6)
    }
}

impl FromStr for Family {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Ok(match text {
            "smc" => Self::Smc,
            "smc6" => Self::Smc6,
            "ipproto" => Self::Ipproto,
            "ipproto6" => Self::Ipproto6,
            "tcp" => Self::Tcp,
            "tcp6" => Self::Tcp6,
            _ => return Err(()),
        })
    }
}

/// Result of a system call that gives a count.
fn check(ret: isize) -> io::Result<usize> {
    usize::try_from(ret).map_err(|_| io::Error::last_os_error())
}

/// One socket.
#[derive(Debug)]
pub struct Sock {
    fd: OwnedFd,
    v6: bool,
}

impl AsRawFd for Sock {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Raw `socket()`.
pub fn socket(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed.
    let fd = check(unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) } as isize)?;
    // SAFETY: the kernel just gave us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

impl Sock {
    /// A stream socket of the family.
    pub fn new(family: Family) -> io::Result<Self> {
        let (domain, protocol) = family.socket_args();
        Ok(Self {
            fd: socket(domain, libc::SOCK_STREAM, protocol)?,
            v6: family.is_v6(),
        })
    }

    /// A socket that listens at the address.
    pub fn listen(family: Family, addr: SocketAddr, backlog: c_int) -> io::Result<Self> {
        let sock = Self::new(family)?;
        sock.set_int(libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        sock.bind(addr)?;
        sock.start_listen(backlog)?;
        Ok(sock)
    }

    /// `listen()`.
    pub fn start_listen(&self, backlog: c_int) -> io::Result<()> {
        // SAFETY: no memory is passed.
        check(unsafe { libc::listen(self.as_raw_fd(), backlog) } as isize).map(drop)
    }

    /// `bind()`.
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        let (raw, len) = raw_addr(addr, self.v6);
        // SAFETY: `raw` is a valid socket address of `len` bytes.
        let ret = unsafe { libc::bind(self.as_raw_fd(), (&raw as *const Storage).cast(), len) };
        check(ret as isize).map(drop)
    }

    /// `connect()`.
    pub fn connect(&self, addr: SocketAddr) -> io::Result<()> {
        let (raw, len) = raw_addr(addr, self.v6);
        // SAFETY: `raw` is a valid socket address of `len` bytes.
        let ret = unsafe { libc::connect(self.as_raw_fd(), (&raw as *const Storage).cast(), len) };
        check(ret as isize).map(drop)
    }

    /// `accept()`.
    pub fn accept(&self) -> io::Result<(Self, SocketAddr)> {
        // SAFETY: all-zero is a valid sockaddr_storage.
        let mut raw: Storage = unsafe { mem::zeroed() };
        let mut len = mem::size_of::<Storage>() as libc::socklen_t;
        // SAFETY: address and length are valid for writing.
        let ret = unsafe {
            libc::accept4(
                self.as_raw_fd(),
                (&mut raw as *mut Storage).cast(),
                &mut len,
                libc::SOCK_CLOEXEC,
            )
        };
        let fd = check(ret as isize)?;
        // SAFETY: the kernel just gave us this descriptor.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
        Ok((Self { fd, v6: self.v6 }, addr_of(&raw)?))
    }

    /// `send()`.
    pub fn send(&self, data: &[u8], flags: c_int) -> io::Result<usize> {
        // SAFETY: the slice is valid for reading.
        check(unsafe {
            libc::send(
                self.as_raw_fd(),
                data.as_ptr().cast(),
                data.len(),
                flags | libc::MSG_NOSIGNAL,
            )
        })
    }

    /// `recv()`.
    pub fn recv(&self, data: &mut [u8], flags: c_int) -> io::Result<usize> {
        // SAFETY: the slice is valid for writing.
        check(unsafe {
            libc::recv(
                self.as_raw_fd(),
                data.as_mut_ptr().cast(),
                data.len(),
                flags,
            )
        })
    }

    /// Sends all of it.
    pub fn send_all(&self, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            match self.send(data, 0) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => data = &data[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Receives exactly this much.
    pub fn recv_all(&self, mut data: &mut [u8]) -> io::Result<()> {
        while !data.is_empty() {
            match self.recv(data, 0) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => data = &mut data[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// `shutdown()`.
    pub fn shutdown(&self, how: c_int) -> io::Result<()> {
        // SAFETY: no memory is passed.
        check(unsafe { libc::shutdown(self.as_raw_fd(), how) } as isize).map(drop)
    }

    /// An integer option.
    pub fn set_int(&self, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
        self.set_raw(level, name, &value)
    }

    fn set_raw<T>(&self, level: c_int, name: c_int, value: &T) -> io::Result<()> {
        // SAFETY: `value` is valid for reading its own size.
        let ret = unsafe {
            libc::setsockopt(
                self.as_raw_fd(),
                level,
                name,
                (value as *const T).cast(),
                mem::size_of::<T>() as libc::socklen_t,
            )
        };
        check(ret as isize).map(drop)
    }

    /// Reads an integer option.
    pub fn get_int(&self, level: c_int, name: c_int) -> io::Result<c_int> {
        let mut value: c_int = 0;
        let mut len = mem::size_of::<c_int>() as libc::socklen_t;
        // SAFETY: value and length are valid for writing.
        let ret = unsafe {
            libc::getsockopt(
                self.as_raw_fd(),
                level,
                name,
                (&mut value as *mut c_int).cast(),
                &mut len,
            )
        };
        check(ret as isize).map(|_| value)
    }

    /// SO_RCVTIMEO or SO_SNDTIMEO.
    pub fn set_timeout(&self, name: c_int, time: Duration) -> io::Result<()> {
        let value = libc::timeval {
            tv_sec: time.as_secs() as libc::time_t,
            tv_usec: libc::suseconds_t::from(time.subsec_micros()),
        };
        self.set_raw(libc::SOL_SOCKET, name, &value)
    }

    /// SO_LINGER.
    pub fn set_linger(&self, on: bool, seconds: c_int) -> io::Result<()> {
        let value = libc::linger {
            l_onoff: on.into(),
            l_linger: seconds,
        };
        self.set_raw(libc::SOL_SOCKET, libc::SO_LINGER, &value)
    }

    /// O_NONBLOCK on or off.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        // SAFETY: no memory is passed.
        let flags =
            check(unsafe { libc::fcntl(self.as_raw_fd(), libc::F_GETFL) } as isize)? as c_int;
        let flags = if on {
            flags | libc::O_NONBLOCK
        } else {
            flags & !libc::O_NONBLOCK
        };
        // SAFETY: no memory is passed.
        check(unsafe { libc::fcntl(self.as_raw_fd(), libc::F_SETFL, flags) } as isize).map(drop)
    }

    /// `getsockname()`.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.name(libc::getsockname)
    }

    /// `getpeername()`.
    pub fn peer(&self) -> io::Result<SocketAddr> {
        self.name(libc::getpeername)
    }

    fn name(
        &self,
        call: unsafe extern "C" fn(c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> c_int,
    ) -> io::Result<SocketAddr> {
        // SAFETY: all-zero is a valid sockaddr_storage.
        let mut raw: Storage = unsafe { mem::zeroed() };
        let mut len = mem::size_of::<Storage>() as libc::socklen_t;
        // SAFETY: address and length are valid for writing.
        let ret = unsafe {
            call(
                self.as_raw_fd(),
                (&mut raw as *mut Storage).cast(),
                &mut len,
            )
        };
        check(ret as isize)?;
        addr_of(&raw)
    }

    /// `poll()` for some events; zero when the time is over.
    pub fn poll(&self, events: i16, time: Duration) -> io::Result<i16> {
        let mut one = libc::pollfd {
            fd: self.as_raw_fd(),
            events,
            revents: 0,
        };
        // SAFETY: one valid entry.
        let ret = unsafe { libc::poll(&mut one, 1, time.as_millis() as c_int) };
        check(ret as isize).map(|_| one.revents)
    }

    /// An `ioctl()` that gives an integer (FIONREAD, SIOCOUTQ).
    pub fn ioctl_int(&self, request: libc::c_ulong) -> io::Result<c_int> {
        let mut value: c_int = 0;
        // SAFETY: these requests write one integer.
        let ret = unsafe { libc::ioctl(self.as_raw_fd(), request as _, &mut value) };
        check(ret as isize).map(|_| value)
    }

    /// Inode number, by which the kernel's tables name a socket.
    pub fn inode(&self) -> io::Result<u64> {
        // SAFETY: all-zero is a valid stat.
        let mut stat: libc::stat = unsafe { mem::zeroed() };
        // SAFETY: `stat` is valid for writing.
        check(unsafe { libc::fstat(self.as_raw_fd(), &mut stat) } as isize)?;
        Ok(stat.st_ino)
    }
}

type Storage = libc::sockaddr_storage;

/// The kernel's form of an address; IPv4 becomes v4-mapped on an IPv6 socket.
fn raw_addr(addr: SocketAddr, v6: bool) -> (Storage, libc::socklen_t) {
    // SAFETY: all-zero is a valid sockaddr_storage.
    let mut raw: Storage = unsafe { mem::zeroed() };
    let ip = match addr.ip() {
        IpAddr::V4(ip) if v6 => IpAddr::V6(ip.to_ipv6_mapped()),
        ip => ip,
    };
    let port = addr.port().to_be();
    match ip {
        IpAddr::V4(ip) => {
            let value = libc::sockaddr_in {
                sin_family: libc::AF_INET as _,
                sin_port: port,
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(ip.octets()),
                },
                sin_zero: [0; 8],
            };
            // SAFETY: sockaddr_storage is large and aligned enough for every address.
            unsafe {
                (&mut raw as *mut Storage)
                    .cast::<libc::sockaddr_in>()
                    .write(value)
            };
            (raw, mem::size_of::<libc::sockaddr_in>() as _)
        }
        IpAddr::V6(ip) => {
            let value = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as _,
                sin6_port: port,
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr {
                    s6_addr: ip.octets(),
                },
                sin6_scope_id: 0,
            };
            // SAFETY: as above.
            unsafe {
                (&mut raw as *mut Storage)
                    .cast::<libc::sockaddr_in6>()
                    .write(value)
            };
            (raw, mem::size_of::<libc::sockaddr_in6>() as _)
        }
    }
}

fn addr_of(raw: &Storage) -> io::Result<SocketAddr> {
    match c_int::from(raw.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says what it is, and the storage is large enough.
            let v = unsafe { &*(raw as *const Storage).cast::<libc::sockaddr_in>() };
            let ip = v.sin_addr.s_addr.to_ne_bytes().into();
            Ok(SocketAddrV4::new(ip, u16::from_be(v.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v = unsafe { &*(raw as *const Storage).cast::<libc::sockaddr_in6>() };
            let ip = v.sin6_addr.s6_addr.into();
            Ok(SocketAddrV6::new(ip, u16::from_be(v.sin6_port), 0, 0).into())
        }
        other => Err(io::Error::other(format!("address family {other}"))),
    }
}
