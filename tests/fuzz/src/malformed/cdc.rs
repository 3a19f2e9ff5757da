// SPDX-License-Identifier: GPL-2.0

//! Malformed CDC messages.

use super::{
    flipped,
    with, //
};
use crate::proto::{
    conn::{
        ConnConfig,
        Connection,
        PeerFault, //
    },
    cursor::{
        Cursor,
        CursorFault, //
    },
    ring::RingSize,
    wire::cdc::{
        Cdc,
        CdcError,
        ConnFlags,
        ProdFlags, //
    },
};

/// A connection to which a peer with a ring of 32 KiB may write 16 KiB, having got nothing.
fn connection() -> Connection {
    let size = |bytes| RingSize::new(bytes).expect("ring size");
    Connection::new(ConnConfig {
        sndbuf: size(1 << 14),
        rmb: size(1 << 14),
        peer_rmb: size(1 << 15),
        peer_token: 1,
        ack_floor: 2304,
    })
}

/// Cursors that no peer can have, and all flags.
fn fields() {
    let first = Cdc {
        seq: 1,
        ..Cdc::default()
    };
    let take = |cdc: Cdc| {
        let bytes = cdc.emit();
        connection().on_cdc(&Cdc::parse(&bytes).expect("a frame"))
    };
    for wrap in 0..=u16::MAX {
        for count in [0, 1, 16383, 16384, 16385, 32767, 32768, 1 << 31, u32::MAX] {
            let cursor = Cursor { wrap, count };
            let behind = wrap >= 0x8000 || (wrap, count) == (0, 0);
            let prod = take(Cdc {
                prod: cursor,
                ..first
            });
            let fault = match count {
                16384.. => Some(CursorFault::Outside),
                _ if behind || wrap == 0 || (wrap, count) == (1, 0) => None,
                _ => Some(CursorFault::TooFar),
            };
            assert_eq!(prod.err(), fault.map(PeerFault::Producer), "{cursor:?}");
            let cons = take(Cdc {
                cons: cursor,
                ..first
            });
            let fault = match count {
                32768.. => Some(CursorFault::Outside),
                _ if behind => None,
                _ => Some(CursorFault::TooFar),
            };
            assert_eq!(cons.err(), fault.map(PeerFault::Consumer), "{cursor:?}");
        }
    }
    for value in 0..=255 {
        let flags = take(Cdc {
            flags: ProdFlags(value),
            ..first
        });
        // Only the one that speaks of messages that never came is a fault.
        let lost = (value & 0x08 != 0).then_some(PeerFault::LostMessages);
        assert_eq!(flags.err(), lost);
        let state = take(Cdc {
            state: ConnFlags(value),
            ..first
        });
        let effects = state.expect("any state can be told");
        assert_eq!(effects.peer_done, value & 0xe0 != 0);
        assert_eq!(effects.peer_closed, value & 0x40 != 0);
        assert_eq!(effects.peer_aborted, value & 0x20 != 0);
    }
}

/// CDC messages.
pub fn cdc() {
    fields();
    let good = Cdc {
        seq: 0x0102,
        token: 0x0304_0506,
        prod: Cursor { wrap: 7, count: 8 },
        cons: Cursor { wrap: 9, count: 10 },
        flags: ProdFlags(0xb0),
        state: ConnFlags(0x80),
    };
    let bytes = good.emit();
    for n in 0..=bytes.len() {
        let want = if n < 26 {
            Err(CdcError::Short)
        } else {
            Ok(good)
        };
        assert_eq!(Cdc::parse(&bytes[..n]), want);
    }
    for value in 0..=255 {
        let kind = Cdc::parse(&with(&bytes, 0, value));
        assert_eq!(kind == Ok(good), value == 0xfe);
        assert!(kind == Ok(good) || kind == Err(CdcError::Type));
        let length = Cdc::parse(&with(&bytes, 1, value));
        assert_eq!(length == Ok(good), value == 44);
        assert!(length == Ok(good) || length == Err(CdcError::Length));
    }
    // Each bit is either reserved and means nothing, or is one of the message that is read.
    for byte in 2..bytes.len() {
        let reserved = matches!(byte, 8 | 9 | 16 | 17 | 26..=43);
        for bit in 0..8 {
            let changed = flipped(&bytes, byte, bit);
            let read = Cdc::parse(&changed).expect("a frame");
            assert_eq!(read == good, reserved, "byte {byte} bit {bit}");
            assert!(reserved || read.emit().as_slice() == changed);
        }
    }
}
