// SPDX-License-Identifier: GPL-2.0

//! What the bytes are that TCP has received but nobody has read.

use crate::proto::wire::{
    clc::{
        may_be_clc,
        Header, //
    },
    WireError,
};

/// What is at the begin of the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// Not enough to tell, or not a whole message yet.
    Wait,
    /// Nothing, and nothing will come.
    Eof,
    /// The begin of a message, and nothing more will come.
    EofInside,
    /// Something else than a CLC message: an application's data.
    NotClc,
    /// It has the eyecatcher, but the header is not valid.
    Bad(WireError),
    /// A whole message, not yet parsed.
    Message(Header),
}

/// Looks at the received bytes; `eof` says that the peer sends no more than these.
pub(super) fn look(peeked: &[u8], eof: bool) -> Input {
    if !may_be_clc(peeked) {
        return Input::NotClc;
    }
    match Header::parse(peeked) {
        Ok(header) if peeked.len() >= header.length => Input::Message(header),
        Ok(_) | Err(WireError::Truncated) if !eof => Input::Wait,
        Ok(_) => Input::EofInside,
        Err(WireError::Truncated) if peeked.is_empty() => Input::Eof,
        // Less than the eyecatcher is no begin of a message.
        Err(WireError::Truncated) if peeked.len() < 4 => Input::NotClc,
        Err(WireError::Truncated) => Input::EofInside,
        Err(error) => Input::Bad(error),
    }
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_clc_stream))]
mod tests {
    use super::*;

    /// A DECLINE, version 1.
    const MSG: [u8; 28] = {
        let mut msg = [0; 28];
        (msg[0], msg[1], msg[2], msg[3]) = (0xe2, 0xd4, 0xc3, 0xd9);
        (msg[4], msg[6], msg[7]) = (4, 28, 0x10);
        msg
    };

    #[test]
    fn a_message_byte_by_byte() {
        for n in 0..MSG.len() {
            let part = MSG.get(..n).unwrap_or_default();
            assert_eq!(look(part, false), Input::Wait);
        }
        assert!(matches!(look(&MSG, false), Input::Message(h) if h.length == 28));
        assert!(matches!(look(&MSG, true), Input::Message(_)));
    }

    #[test]
    fn the_end_of_the_stream() {
        assert_eq!(look(&[], true), Input::Eof);
        assert_eq!(look(&MSG[..3], true), Input::NotClc);
        assert_eq!(look(&MSG[..4], true), Input::EofInside);
        assert_eq!(look(&MSG[..8], true), Input::EofInside);
        assert_eq!(look(&MSG[..27], true), Input::EofInside);
    }

    #[test]
    fn other_bytes() {
        assert_eq!(look(b"G", false), Input::NotClc);
        assert_eq!(look(b"GET / HTTP/1.1", true), Input::NotClc);
        let mut msg = MSG;
        msg[6] = 0xff;
        assert_eq!(look(&msg, false), Input::Bad(WireError::Length));
    }
}
