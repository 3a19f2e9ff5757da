// SPDX-License-Identifier: GPL-2.0
//! The wire: a packet socket on an interface whose kernel knows none of the addresses used
//! here. Answers ARP for all of them and hands TCP segments to whoever owns their address.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::mem;
use std::net::Ipv4Addr;
use std::net::SocketAddrV4;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::time::Duration;

use etherparse::NetSlice;
use etherparse::PacketBuilder;
use etherparse::SlicedPacket;
use etherparse::TransportSlice;

use crate::ensure;
use crate::sock::socket;
use crate::Context;
use crate::Fail;

/// The hardware address of all peers; the interface's own is another, so that its kernel
/// does not take part.
pub const MAC: [u8; 6] = [0x02, 0x66, 0, 0, 0, 0x66];
/// The host under test.
pub const HOST: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);

/// An address of the n-th peer.
pub fn peer_ip(n: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 2, 1 + (n / 200) as u8, 1 + (n % 200) as u8)
}

/// TCP header flags that matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub syn: bool,
    pub ack: bool,
    pub fin: bool,
    pub rst: bool,
    /// Urgent pointer.
    pub urg: Option<u16>,
}

/// A TCP segment, from either side.
#[derive(Clone, Debug)]
pub struct Segment {
    pub from: SocketAddrV4,
    pub to: SocketAddrV4,
    pub flags: Flags,
    pub seq: u32,
    pub ack: u32,
    pub window: u16,
    /// TCP options as they are on the wire.
    pub options: Vec<u8>,
    pub data: Vec<u8>,
}

/// The packet socket and the addresses that are in use.
pub struct Wire {
    fd: OwnedFd,
    owners: Mutex<HashMap<SocketAddrV4, mpsc::Sender<Segment>>>,
    host_mac: Mutex<Option<[u8; 6]>>,
    resolved: Condvar,
    stop: AtomicBool,
}

const ARP: u16 = 0x0806;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

impl Wire {
    /// Opens the socket on an interface of the calling thread's network namespace.
    pub fn open(interface: &str) -> Result<Self, Fail> {
        let all = (libc::ETH_P_ALL as u16).to_be();
        let fd = socket(libc::AF_PACKET, libc::SOCK_RAW, all.into()).context("packet socket")?;
        let name = CString::new(interface).context("interface")?;
        // SAFETY: a terminated string.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        ensure!(index != 0, "no interface {interface}");
        // SAFETY: all-zero is a valid sockaddr_ll.
        let mut addr: libc::sockaddr_ll = unsafe { mem::zeroed() };
        addr.sll_family = libc::AF_PACKET as _;
        addr.sll_protocol = all;
        addr.sll_ifindex = index as _;
        // SAFETY: a valid address of its own size.
        let ret = unsafe {
            libc::bind(
                fd.as_raw_fd(),
                (&addr as *const libc::sockaddr_ll).cast(),
                mem::size_of_val(&addr) as _,
            )
        };
        ensure!(ret == 0, "bind: {}", io::Error::last_os_error());
        let wire = Self {
            fd,
            owners: Mutex::default(),
            host_mac: Mutex::default(),
            resolved: Condvar::new(),
            stop: AtomicBool::new(false),
        };
        wire.option(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &(16 << 20))?;
        wire.option(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1)?;
        let tick = libc::timeval {
            tv_sec: 0,
            tv_usec: 100_000,
        };
        wire.option(libc::SOL_SOCKET, libc::SO_RCVTIMEO, &tick)?;
        Ok(wire)
    }

    fn option<T>(&self, level: libc::c_int, name: libc::c_int, value: &T) -> Result<(), Fail> {
        // SAFETY: `value` is valid for reading its own size.
        let ret = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                level,
                name,
                (value as *const T).cast(),
                mem::size_of::<T>() as _,
            )
        };
        ensure!(ret == 0, "setsockopt: {}", io::Error::last_os_error());
        Ok(())
    }

    /// Claims an address: its segments come out of the channel.
    pub fn claim(&self, address: SocketAddrV4) -> mpsc::Receiver<Segment> {
        let (tx, rx) = mpsc::channel();
        self.owners.lock().expect("owners").insert(address, tx);
        rx
    }

    /// Reads frames until [`Wire::stop`].
    pub fn run(&self) {
        let mut frame = vec![0; 70_000];
        while !self.stop.load(Ordering::Relaxed) {
            // SAFETY: the buffer is valid for writing.
            let n = unsafe {
                libc::recv(
                    self.fd.as_raw_fd(),
                    frame.as_mut_ptr().cast(),
                    frame.len(),
                    0,
                )
            };
            if let Some(frame) = usize::try_from(n).ok().and_then(|n| frame.get(..n)) {
                self.frame(frame);
            }
        }
    }

    /// Ends [`Wire::run`].
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn frame(&self, frame: &[u8]) {
        match frame.get(12..14) {
            Some(kind) if kind == ARP.to_be_bytes() => self.arp(frame),
            Some(_) => {
                if let Some(segment) = parse(frame) {
                    let owners = self.owners.lock().expect("owners");
                    if let Some(owner) = owners.get(&segment.to) {
                        let _ = owner.send(segment);
                    }
                }
            }
            None => {}
        }
    }

    /// Answers ARP requests of the host under test, learns its address from the answer to ours.
    fn arp(&self, frame: &[u8]) {
        let Some(body) = frame.get(14..42) else {
            return;
        };
        let (op, mac, from, to) = (body[7], &body[8..14], &body[14..18], &body[24..28]);
        if from != HOST.octets() {
            return;
        }
        let mac: [u8; 6] = mac.try_into().expect("six bytes");
        if op == 2 {
            *self.host_mac.lock().expect("mac") = Some(mac);
            self.resolved.notify_all();
        } else if to != HOST.octets() {
            self.send(&arp(mac, 2, to, mac, from));
        }
    }

    /// Finds the host under test.
    pub fn resolve(&self) -> Result<(), Fail> {
        let mut mac = self.host_mac.lock().expect("mac");
        for _ in 0..50 {
            let all = [0xff; 6];
            self.send(&arp(all, 1, &peer_ip(0).octets(), [0; 6], &HOST.octets()));
            let wait = Duration::from_millis(200);
            mac = self.resolved.wait_timeout(mac, wait).expect("mac").0;
            if mac.is_some() {
                return Ok(());
            }
        }
        Err("the host under test does not answer ARP".into())
    }

    fn send(&self, frame: &[u8]) {
        // SAFETY: the slice is valid for reading. A frame that is lost fails the case.
        unsafe { libc::send(self.fd.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
    }

    /// Sends a segment.
    pub fn segment(&self, s: &Segment) -> Result<(), Fail> {
        let mac = self.host_mac.lock().expect("mac").unwrap_or_default();
        let mut builder = PacketBuilder::ethernet2(MAC, mac)
            .ipv4(s.from.ip().octets(), s.to.ip().octets(), 64)
            .tcp(s.from.port(), s.to.port(), s.seq, s.window)
            .options_raw(&s.options)
            .context("TCP options")?;
        if !s.data.is_empty() {
            builder = builder.psh();
        }
        if s.flags.syn {
            builder = builder.syn();
        }
        if s.flags.ack {
            builder = builder.ack(s.ack);
        }
        if s.flags.fin {
            builder = builder.fin();
        }
        if s.flags.rst {
            builder = builder.rst();
        }
        if let Some(urgent) = s.flags.urg {
            builder = builder.urg(urgent);
        }
        let mut frame = Vec::with_capacity(builder.size(s.data.len()));
        builder.write(&mut frame, &s.data).context("segment")?;
        self.send(&frame);
        Ok(())
    }
}

/// An ARP frame from here: about address `from`, to whoever has `mac` and `to`.
fn arp(dest: [u8; 6], op: u8, from: &[u8], mac: [u8; 6], to: &[u8]) -> Vec<u8> {
    let head = [0, 1, 8, 0, 6, 4, 0, op];
    [
        &dest[..],
        &MAC,
        &ARP.to_be_bytes(),
        &head,
        &MAC,
        from,
        &mac,
        to,
    ]
    .concat()
}

/// The TCP segment in a frame. Checksums are not looked at: the kernel leaves them to a device.
fn parse(frame: &[u8]) -> Option<Segment> {
    let packet = SlicedPacket::from_ethernet(frame).ok()?;
    let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) = (packet.net, packet.transport)
    else {
        return None;
    };
    let ip = ip.header();
    Some(Segment {
        from: SocketAddrV4::new(ip.source_addr(), tcp.source_port()),
        to: SocketAddrV4::new(ip.destination_addr(), tcp.destination_port()),
        flags: Flags {
            syn: tcp.syn(),
            ack: tcp.ack(),
            fin: tcp.fin(),
            rst: tcp.rst(),
            urg: tcp.urg().then(|| tcp.urgent_pointer()),
        },
        seq: tcp.sequence_number(),
        ack: tcp.acknowledgment_number(),
        window: tcp.window_size(),
        options: tcp.options().to_vec(),
        data: tcp.payload().to_vec(),
    })
}
