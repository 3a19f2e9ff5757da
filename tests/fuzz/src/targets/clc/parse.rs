// SPDX-License-Identifier: GPL-2.0

//! The parsers of CLC messages on any bytes.

use crate::proto::wire::{
    clc::{
        may_be_clc,
        ClcBuf,
        Header,
        Kind, //
    },
    clc_accept::Accept,
    clc_decline::Decline,
    clc_proposal::{
        Offer,
        Proposal, //
    },
    WireError,
};

/// Whether it can be told again as it was: the newest version with an offer of SMC-R only.
fn repeatable(p: &Proposal) -> bool {
    p.version == 2 && p.v1 == Offer::Neither && p.v2 == Offer::R && p.gid_v1 == [0; 16]
}

/// What was read of a PROPOSAL comes back.
fn proposal(bytes: &[u8]) -> Result<(), WireError> {
    let read = Proposal::parse(bytes)?;
    assert!((1..=2).contains(&read.version) && read.eids.len() <= 8);
    if repeatable(&read) {
        let mut buf = ClcBuf::new();
        read.emit(&mut buf);
        assert_eq!(Proposal::parse(buf.as_slice()), Ok(read));
    }
    Ok(())
}

/// What was read of an ACCEPT or CONFIRM comes back.
fn accept(bytes: &[u8]) -> Result<(), WireError> {
    let read = Accept::parse(bytes)?;
    assert!((1..=2).contains(&read.version));
    assert_eq!(read.fce.is_some(), read.version == 2 && read.first_contact);
    assert!(read.qpn < 1 << 24 && read.psn < 1 << 24 && read.mtu < 16);
    assert!(read.rmbe_size.bytes().is_power_of_two());
    let mut buf = ClcBuf::new();
    read.emit_accept(&mut buf);
    assert_eq!(Accept::parse(buf.as_slice()), Ok(read));
    read.emit_confirm(&mut buf);
    assert_eq!(Accept::parse(buf.as_slice()), Ok(read));
    Ok(())
}

/// What was read of a DECLINE comes back.
fn decline(bytes: &[u8]) -> Result<(), WireError> {
    let read = Decline::parse(bytes)?;
    let mut buf = ClcBuf::new();
    read.emit(&mut buf);
    assert_eq!(Decline::parse(buf.as_slice()), Ok(read));
    Ok(())
}

/// Reads bytes as everything: only whole messages are read, each as what it is, and nothing
/// behind a message matters.
pub fn parse(bytes: &[u8]) {
    let results = [proposal(bytes), accept(bytes), decline(bytes)];
    let header = match Header::parse(bytes) {
        Ok(header) => header,
        Err(error) => {
            assert_eq!(results, [Err(error); 3]);
            assert_eq!(
                error == WireError::HeadEyecatcher,
                !may_be_clc(bytes) && bytes.len() >= 8
            );
            return;
        }
    };
    assert!(may_be_clc(bytes));
    let own = match header.kind {
        Kind::Proposal => 0,
        Kind::Accept | Kind::Confirm => 1,
        Kind::Decline => 2,
    };
    for (i, result) in results.iter().enumerate() {
        if i != own {
            assert_eq!(*result, Err(WireError::Unexpected));
        }
    }
    let Some(whole) = bytes.get(..header.length) else {
        assert_eq!(results[own], Err(WireError::Truncated));
        return;
    };
    let parsers = [proposal, accept, decline];
    assert_eq!(parsers[own](whole), results[own]);
    let short = &whole[..header.length - 1];
    assert_eq!(parsers[own](short), Err(WireError::Truncated));
}
