// SPDX-License-Identifier: GPL-2.0
//! Cuts the SMC messages of one host out of packet captures, one file each, for the corpus of
//! the parser tests: `record DIR ADDRESS CAPTURE...`.
//!
//! CLC messages come from the beginning of TCP streams, LLC and CDC messages from RoCE v2
//! datagrams that are one whole SEND. Equal messages are written once; of a kind of CDC that
//! differs in cursors only, a few are enough.

use std::collections::{
    BTreeMap,
    BTreeSet, //
};
use std::error::Error;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use etherparse::{
    NetSlice,
    SlicedPacket,
    TransportSlice, //
};

/// UDP port of RoCE v2.
const ROCE: u16 = 4791;
/// First bytes of every CLC message, for SMC-R.
const CLC_EYECATCHER: [u8; 4] = [0xe2, 0xd4, 0xc3, 0xd9];
/// Type of a CDC message.
const CDC: u8 = 0xfe;
/// LLC and CDC messages of 44 bytes.
const MESSAGE: usize = 44;
/// The most files of one kind.
const MOST: usize = 8;

/// One direction of a TCP connection.
type Flow = (IpAddr, u16, IpAddr, u16);

#[derive(Default)]
struct Recorder {
    /// Bytes by distance from the SYN.
    streams: BTreeMap<Flow, (u32, BTreeMap<u32, Vec<u8>>)>,
    /// Messages by kind.
    found: BTreeMap<String, BTreeSet<Vec<u8>>>,
}

impl Recorder {
    fn add(&mut self, kind: String, message: &[u8]) {
        let set = self.found.entry(kind).or_default();
        if set.len() < MOST {
            set.insert(message.to_vec());
        }
    }

    fn packet(&mut self, data: &[u8], host: IpAddr) -> Option<()> {
        let packet = SlicedPacket::from_ethernet(data).ok()?;
        let (from, to): (IpAddr, IpAddr) = match packet.net? {
            NetSlice::Ipv4(ip) => (
                ip.header().source_addr().into(),
                ip.header().destination_addr().into(),
            ),
            NetSlice::Ipv6(ip) => (
                ip.header().source_addr().into(),
                ip.header().destination_addr().into(),
            ),
        };
        if from != host {
            return None;
        }
        match packet.transport? {
            TransportSlice::Tcp(tcp) => {
                let flow = (from, tcp.source_port(), to, tcp.destination_port());
                let seq = tcp.sequence_number();
                if tcp.syn() {
                    self.streams
                        .insert(flow, (seq.wrapping_add(1), BTreeMap::new()));
                } else if let Some((first, parts)) = self.streams.get_mut(&flow) {
                    let at = seq.wrapping_sub(*first);
                    if !tcp.payload().is_empty() {
                        parts.insert(at, tcp.payload().to_vec());
                    }
                }
            }
            TransportSlice::Udp(udp) if udp.destination_port() == ROCE => self.roce(udp.payload()),
            _ => {}
        }
        Some(())
    }

    /// Base transport header (12 bytes), payload, checksum (4 bytes); SEND ONLY is 4.
    fn roce(&mut self, packet: &[u8]) {
        let Some(payload) = packet.get(12..12 + MESSAGE) else {
            return;
        };
        if packet[0] != 4 || packet.len() != 12 + MESSAGE + 4 {
            return;
        }
        let kind = match payload[0] {
            CDC => "cdc/cdc".to_string(),
            code => format!(
                "llc/v{}-type{}-flags{:02x}",
                code >> 4,
                code & 0xf,
                payload[3]
            ),
        };
        self.add(kind, payload);
    }

    /// CLC messages at the beginning of every stream.
    fn clc(&mut self) {
        for (_, (_, parts)) in std::mem::take(&mut self.streams) {
            let mut stream = Vec::new();
            for (at, part) in parts {
                match stream.len().checked_sub(at as usize) {
                    Some(known) if known < part.len() => stream.extend_from_slice(&part[known..]),
                    Some(_) => {}
                    None => break,
                }
            }
            let mut rest = &stream[..];
            while rest.starts_with(&CLC_EYECATCHER) && rest.len() >= 8 {
                let len = usize::from(u16::from_be_bytes([rest[5], rest[6]]));
                let Some(message) = rest.get(..len).filter(|m| !m.is_empty()) else {
                    break;
                };
                self.add(
                    format!("clc/v{}-type{}", message[7] >> 4, message[4]),
                    message,
                );
                rest = &rest[len..];
            }
        }
    }

    fn write(&self, dir: &Path) -> Result<usize, Box<dyn Error>> {
        let mut n = 0;
        for (kind, messages) in &self.found {
            for (i, message) in messages.iter().enumerate() {
                let path = dir.join(format!("{kind}-{i:02}.bin"));
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                fs::write(path, message)?;
                n += 1;
            }
            println!("{kind}: {}", messages.len());
        }
        Ok(n)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, host, captures @ ..] = args.as_slice() else {
        return Err("usage: record DIR ADDRESS CAPTURE...".into());
    };
    let mut recorder = Recorder::default();
    for path in captures {
        let mut reader = pcap_file::pcap::PcapReader::new(fs::File::open(path)?)?;
        // The last packet of a capture that was cut short is no reason to lose the others.
        while let Some(Ok(packet)) = reader.next_packet() {
            recorder.packet(&packet.data, host.parse()?);
        }
        recorder.clc();
    }
    match recorder.write(Path::new(dir))? {
        0 => Err("no message in the captures".into()),
        _ => Ok(()),
    }
}
