// SPDX-License-Identifier: GPL-2.0

//! The CDC message (connection data control, RFC 7609 A.4): cursors and flags of one connection.

use super::super::cursor::Cursor;

/// Bytes of a CDC message on the wire.
pub(crate) const CDC_LEN: usize = 44;
/// Bytes of it that carry something; a receiver needs no more.
const HEAD_LEN: usize = 26;
/// Message type of a CDC.
pub(crate) const CDC_TYPE: u8 = 0xfe;
/// What the length byte says.
const CDC_LEN_BYTE: u8 = 44;

/// Flags about the sender's producer cursor. Unknown bits are kept and mean nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ProdFlags(pub(crate) u8);

impl ProdFlags {
    /// B: the sender filled the receiver's buffer.
    pub(crate) const BLOCKED: Self = Self(0x80);
    /// P: urgent data will follow.
    pub(crate) const URGENT_PENDING: Self = Self(0x40);
    /// U: the byte before the producer cursor is urgent.
    pub(crate) const URGENT_PRESENT: Self = Self(0x20);
    /// R: the sender wants the receiver's consumer cursor now.
    pub(crate) const UPDATE_REQUESTED: Self = Self(0x10);
    /// F: no cursors; tells which message was the last one before a change of links.
    pub(crate) const VALIDATION: Self = Self(0x08);

    /// Whether any flag of `other` is set.
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// These flags and, if `on`, those of `other`.
    pub(crate) const fn with(self, other: Self, on: bool) -> Self {
        if on {
            Self(self.0 | other.0)
        } else {
            self
        }
    }
}

/// Flags about the state of the sender's side of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ConnFlags(pub(crate) u8);

impl ConnFlags {
    /// D: the sender will write no more.
    pub(crate) const DONE: Self = Self(0x80);
    /// C: the sender closed, having read all it got.
    pub(crate) const CLOSED: Self = Self(0x40);
    /// A: the sender closed abnormally, or without reading all it got.
    pub(crate) const ABORTED: Self = Self(0x20);
    /// C or A.
    pub(crate) const ANY_CLOSE: Self = Self(0x60);
    /// All flags with a meaning.
    pub(crate) const KNOWN: Self = Self(0xe0);

    /// Whether any flag of `other` is set.
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// These flags and those of `other`.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These flags without those of `other`.
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Only the flags that `other` has too.
    pub(crate) const fn only(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// One CDC message. Parsing checks the frame only; cursors are checked against the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Cdc {
    /// Sequence number, 1 for the first message of a connection.
    pub(crate) seq: u16,
    /// The receiver's token for the connection.
    pub(crate) token: u32,
    /// Up to where the sender wrote into the receiver's buffer.
    pub(crate) prod: Cursor,
    /// Up to where the sender read its own buffer.
    pub(crate) cons: Cursor,
    /// Producer flags.
    pub(crate) flags: ProdFlags,
    /// Connection state flags.
    pub(crate) state: ConnFlags,
}

/// Why bytes are not a CDC message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CdcError {
    /// Fewer bytes than a CDC needs.
    Short,
    /// Another type of message.
    Type,
    /// The length byte is wrong.
    Length,
}

impl Cdc {
    /// Reads a message; bytes past the ones with a meaning may be missing.
    #[rustfmt::skip]
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, CdcError> {
        let head: &[u8; HEAD_LEN] = bytes.first_chunk().ok_or(CdcError::Short)?;
        let [
            kind, len, s0, s1, t0, t1, t2, t3,
            _, _, pw0, pw1, p0, p1, p2, p3,
            _, _, cw0, cw1, c0, c1, c2, c3,
            flags, state,
        ] = *head;
        if kind != CDC_TYPE {
            return Err(CdcError::Type);
        }
        if len != CDC_LEN_BYTE {
            return Err(CdcError::Length);
        }
        Ok(Self {
            seq: u16::from_be_bytes([s0, s1]),
            token: u32::from_be_bytes([t0, t1, t2, t3]),
            prod: Cursor {
                wrap: u16::from_be_bytes([pw0, pw1]),
                count: u32::from_be_bytes([p0, p1, p2, p3]),
            },
            cons: Cursor {
                wrap: u16::from_be_bytes([cw0, cw1]),
                count: u32::from_be_bytes([c0, c1, c2, c3]),
            },
            flags: ProdFlags(flags),
            state: ConnFlags(state),
        })
    }

    /// The message as it goes on the wire.
    #[rustfmt::skip]
    pub(crate) fn emit(&self) -> [u8; CDC_LEN] {
        let [s0, s1] = self.seq.to_be_bytes();
        let [t0, t1, t2, t3] = self.token.to_be_bytes();
        let [pw0, pw1] = self.prod.wrap.to_be_bytes();
        let [p0, p1, p2, p3] = self.prod.count.to_be_bytes();
        let [cw0, cw1] = self.cons.wrap.to_be_bytes();
        let [c0, c1, c2, c3] = self.cons.count.to_be_bytes();
        [
            CDC_TYPE, CDC_LEN_BYTE, s0, s1, t0, t1, t2, t3,
            0, 0, pw0, pw1, p0, p1, p2, p3,
            0, 0, cw0, cw1, c0, c1, c2, c3,
            self.flags.0, self.state.0,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ]
    }
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_cdc))]
mod tests {
    use super::*;

    /// A message in which every field is different.
    const MESSAGE: Cdc = Cdc {
        seq: 0x0102,
        token: 0x0304_0506,
        prod: Cursor {
            wrap: 0x0708,
            count: 0x090a_0b0c,
        },
        cons: Cursor {
            wrap: 0x0d0e,
            count: 0x0f10_1112,
        },
        flags: ProdFlags(0x90),
        state: ConnFlags(0x40),
    };

    /// The same on the wire.
    #[rustfmt::skip]
    const WIRE: [u8; CDC_LEN] = [
        0xfe, 44, 1, 2, 3, 4, 5, 6,
        0, 0, 7, 8, 9, 10, 11, 12,
        0, 0, 13, 14, 15, 16, 17, 18,
        0x90, 0x40,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    #[test]
    fn emits() {
        assert_eq!(MESSAGE.emit(), WIRE);
    }

    #[test]
    fn parses() {
        assert_eq!(Cdc::parse(&WIRE), Ok(MESSAGE));
        assert_eq!(WIRE.get(..26).map(Cdc::parse), Some(Ok(MESSAGE)));
    }

    #[test]
    fn rejects() {
        assert_eq!(Cdc::parse(&[]), Err(CdcError::Short));
        assert_eq!(WIRE.get(..25).map(Cdc::parse), Some(Err(CdcError::Short)));
        let [_, tail @ ..] = WIRE;
        assert_eq!(Cdc::parse(&tail), Err(CdcError::Type));
        let mut wrong = WIRE;
        if let Some(len) = wrong.get_mut(1) {
            *len = 43;
        }
        assert_eq!(Cdc::parse(&wrong), Err(CdcError::Length));
    }

    #[test]
    fn flags() {
        let both = ProdFlags::BLOCKED.with(ProdFlags::UPDATE_REQUESTED, true);
        assert!(both.has(ProdFlags::BLOCKED));
        assert!(both.has(ProdFlags::UPDATE_REQUESTED));
        assert!(!both.has(ProdFlags::VALIDATION));
        assert!(!ProdFlags::default()
            .with(ProdFlags::BLOCKED, false)
            .has(ProdFlags::BLOCKED));
        let state = ConnFlags::DONE.and(ConnFlags::CLOSED);
        assert!(state.has(ConnFlags::ANY_CLOSE));
        assert!(!state.without(ConnFlags::CLOSED).has(ConnFlags::ANY_CLOSE));
        assert_eq!(ConnFlags(0xff).only(ConnFlags::KNOWN), ConnFlags(0xe0));
    }
}
