// SPDX-License-Identifier: GPL-2.0

//! Malformed CLC messages.

use super::{
    flipped,
    proposal::{
        self,
        Parts, //
    },
    with,
    with_two,
    Broken, //
};
use crate::proto::{
    clc::{
        samples,
        Client,
        ClientEvent,
        Outcome,
        Server,
        ServerEvent, //
    },
    reason::Reason,
    size::SizeCode,
    wire::{
        clc::{
            ClcBuf,
            Header,
            Kind, //
        },
        clc_accept::Accept,
        clc_decline::Decline,
        clc_proposal::Proposal,
        WireError,
    },
};
use std::ops::Range;

/// What was read.
#[derive(PartialEq, Debug)]
enum Read {
    Proposal(Proposal),
    Accept(Accept),
    Decline(Decline),
}

/// A good message.
struct Good {
    bytes: Vec<u8>,
    /// Bytes whose values mean nothing.
    reserved: Vec<Range<usize>>,
    /// Bits (byte, mask) that mean nothing.
    bits: Vec<(usize, u8)>,
    /// The trailer is looked at.
    trailer: bool,
}

/// Reads a message as what its header says.
fn read(bytes: &[u8]) -> Result<Read, WireError> {
    match Header::parse(bytes)?.kind {
        Kind::Proposal => Proposal::parse(bytes).map(Read::Proposal),
        Kind::Accept | Kind::Confirm => Accept::parse(bytes).map(Read::Accept),
        Kind::Decline => Decline::parse(bytes).map(Read::Decline),
    }
}

/// ACCEPT and CONFIRM of each kind.
fn accepts() -> Vec<Good> {
    let mut all = Vec::new();
    let v1 = Accept {
        version: 1,
        eid: crate::proto::eid::Eid::BLANK,
        fce: None,
        ..samples::accept(true)
    };
    for (accept, confirm) in [
        (v1, false),
        (v1, true),
        (samples::accept(false), false),
        (samples::accept(false), true),
        (samples::accept(true), false),
        (samples::accept(true), true),
    ] {
        let mut buf = ClcBuf::new();
        if confirm {
            accept.emit_confirm(&mut buf);
        } else {
            accept.emit_accept(&mut buf);
        }
        let mut reserved = vec![51..52, 60..61];
        let mut bits = vec![(7, 0x04)];
        if accept.version == 2 {
            reserved.push(96..104);
        }
        if accept.fce.is_some() {
            reserved.extend([106..108, 144..156]);
            bits.push((104, 0x7f));
            if confirm {
                reserved.push(156..176);
            }
        }
        all.push(Good {
            bytes: buf.as_slice().to_vec(),
            reserved,
            bits,
            trailer: true,
        });
    }
    all
}

/// DECLINE of both versions.
fn declines() -> Vec<Good> {
    let decline = |version, reason| {
        let mut buf = ClcBuf::new();
        Decline::new(version, [1; 8], reason).emit(&mut buf);
        let bytes = buf.as_slice().to_vec();
        let mut bits = vec![(7, 0x07), (20, 0x0f)];
        bits.push((bytes.len() - 1, 0xff));
        Good {
            reserved: vec![21..24, 24..bytes.len()],
            bytes,
            bits,
            trailer: false,
        }
    };
    vec![decline(1, Reason::MEM), decline(2, Reason::SYNCERR)]
}

/// PROPOSALs of each kind.
fn proposals() -> Vec<Good> {
    Parts::all()
        .into_iter()
        .map(|parts| Good {
            bytes: parts.bytes(),
            reserved: parts.reserved(),
            bits: parts.bits(),
            trailer: true,
        })
        .collect()
}

/// All that can be done to any message.
fn message(good: &Good, broken: &mut Broken) {
    let bytes = &good.bytes;
    let want = read(bytes).expect("a good message");
    let mut parse = |bytes: &[u8]| {
        let result = read(bytes);
        broken.note(&result);
        machines(bytes);
        result
    };
    for n in 0..bytes.len() {
        assert_eq!(parse(&bytes[..n]), Err(WireError::Truncated));
    }
    let mut long = bytes.clone();
    long.resize(1100, 0);
    assert_eq!(parse(&long).as_ref(), Ok(&want));
    for length in (0..1100).chain([0x7fff, 0x8000, 0xffff]) {
        let result = parse(&with_two(&long, 5, length));
        assert_eq!(result.is_ok(), usize::from(length) == bytes.len());
    }
    for bit in 0..32 {
        let (at, bit) = (usize::from(bit / 8), bit % 8);
        let head = parse(&flipped(bytes, at, bit));
        assert_eq!(head, Err(WireError::HeadEyecatcher));
        let tail = parse(&flipped(bytes, bytes.len() - 4 + at, bit));
        if good.trailer {
            assert_eq!(tail, Err(WireError::TailEyecatcher));
        } else {
            assert_eq!(tail.as_ref(), Ok(&want));
        }
    }
    for value in 0..=255 {
        let kind = parse(&with(bytes, 4, value));
        assert!((1..=4).contains(&value) || kind == Err(WireError::Kind));
        // Version and types: any result, but none for version 0, and that of 2 for all above.
        let flags = parse(&with(bytes, 7, value));
        match value >> 4 {
            0 => assert_eq!(flags, Err(WireError::Version)),
            3.. => assert_eq!(flags, parse(&with(bytes, 7, (value & 0xf) | 0x20))),
            _ => {}
        }
    }
    // An eyecatcher of SMC-D: a proposal or decline is the same, the others are not for us.
    let ism = parse(&with(bytes, 3, 0xc4));
    if let Read::Accept(_) = want {
        assert_eq!(ism, Err(WireError::NotSmcR));
    } else {
        assert_eq!(ism.as_ref(), Ok(&want));
    }
    for at in good.reserved.iter().cloned().flatten() {
        for bit in 0..8 {
            let changed = parse(&flipped(bytes, at, bit));
            assert_eq!(changed.as_ref(), Ok(&want), "byte {at} bit {bit}");
        }
    }
    for (at, mask) in &good.bits {
        for bit in (0..8).filter(|bit| mask & (1 << bit) != 0) {
            let changed = parse(&flipped(bytes, *at, bit));
            assert_eq!(changed.as_ref(), Ok(&want), "byte {at} bit {bit}");
        }
    }
}

/// Each machine in each state in which it waits for a message: it consumes nothing but whole
/// messages, and decides when the stream ends.
fn machines(bytes: &[u8]) {
    let accept = samples::accept(true);
    let mut waits = Server::new(0);
    server(&mut waits, bytes);
    let mut waits = Server::new(0);
    waits.on_input(samples::proposal_bytes().as_slice(), false, 0);
    waits.poll();
    waits.contact_accept(&accept, 0);
    waits.poll_transmit();
    server(&mut waits, bytes);
    let mut waits = Client::new(0);
    waits.start(Ok(&samples::proposal()), 0);
    waits.poll_transmit();
    client(&mut waits, bytes);
    let mut waits = Client::new(0);
    waits.start(Err(Reason::NOSMCDEV), 0);
    waits.poll_transmit();
    client(&mut waits, bytes);
}

/// The whole stream comes, then its end.
fn server(machine: &mut Server, bytes: &[u8]) {
    let begin = machine.on_input(bytes, false, 1);
    let used = if begin > 0 {
        begin
    } else {
        machine.on_input(bytes, true, 1)
    };
    machine.poll_transmit();
    let event = machine.poll();
    consumed(used, bytes, event.is_some());
    let late = matches!(&event, Some(ServerEvent::Decided(outcome)) if *outcome == Outcome::Smc);
    assert!(!late);
}

/// The whole stream comes, then its end.
fn client(machine: &mut Client, bytes: &[u8]) {
    let begin = machine.on_input(bytes, false, 1);
    let used = if begin > 0 {
        begin
    } else {
        machine.on_input(bytes, true, 1)
    };
    machine.poll_transmit();
    let event = machine.poll();
    consumed(used, bytes, event.is_some());
    let late = matches!(&event, Some(ClientEvent::Decided(outcome)) if *outcome == Outcome::Smc);
    assert!(!late);
}

/// Nothing or a whole message; something is said about it either way.
fn consumed(used: usize, bytes: &[u8], told: bool) {
    if used > 0 {
        assert_eq!(Header::parse(bytes).map(|h| h.length), Ok(used));
    } else {
        assert!(told, "the end of the stream changes nothing");
    }
}

/// What only an ACCEPT or CONFIRM has: sizes and MTUs.
fn accept_fields(good: &Good, broken: &mut Broken) {
    for value in 0..=255 {
        let changed = with(&good.bytes, 50, value);
        let read = Accept::parse(&changed);
        broken.note(&read);
        let read = read.expect("any size and MTU can be told");
        assert_eq!(read.rmbe_size, SizeCode::from_high_nibble(value));
        assert_eq!(read.rmbe_size.bytes(), 16384 << (value >> 4));
        assert_eq!(read.mtu, value & 15);
        assert_eq!(read.mtu_valid(), (1..=5).contains(&(value & 15)));
    }
    // As SMC-D, or with the flag of first contact but without the extension.
    for types in 1..4 {
        let changed = with(&good.bytes, 7, good.bytes[7] | types);
        assert_eq!(Accept::parse(&changed), Err(WireError::NotSmcR));
    }
    if good.bytes.len() == 108 {
        let first = Accept::parse(&with(&good.bytes, 7, 0x28));
        assert_eq!(first, Err(WireError::FirstContactLength));
        broken.note(&first);
    }
    // Each length of version 2 that the header allows, with the trailer where it must be.
    for length in 48..=1024usize {
        let mut changed = good.bytes.clone();
        changed.resize(length, 0);
        changed[length - 4..].copy_from_slice(&good.bytes[..4]);
        let changed = with_two(&changed, 5, u16::try_from(length).expect("short"));
        let read = Accept::parse(&changed);
        broken.note(&read);
        let (v1, first) = (good.bytes[7] >> 4 == 1, good.bytes[7] & 8 != 0);
        let least = if first { 160 } else { 108 };
        let fits = if v1 { length == 68 } else { length >= least };
        assert_eq!(read.is_ok(), fits, "length {length}");
    }
}

/// CLC messages.
pub fn clc() -> Broken {
    let mut broken = Broken::default();
    for good in accepts() {
        message(&good, &mut broken);
        accept_fields(&good, &mut broken);
    }
    for good in declines() {
        message(&good, &mut broken);
    }
    for good in proposals() {
        message(&good, &mut broken);
    }
    proposal::fields(&mut broken);
    // One of each where another is expected.
    let (proposal, accept) = (
        samples::proposal_bytes(),
        samples::accept_bytes(&samples::accept(true)),
    );
    broken.note(&Accept::parse(proposal.as_slice()));
    broken.note(&Proposal::parse(accept.as_slice()));
    broken.note(&Decline::parse(accept.as_slice()));
    broken
}
