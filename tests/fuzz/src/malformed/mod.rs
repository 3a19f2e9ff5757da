// SPDX-License-Identifier: GPL-2.0

//! Malformed messages made by hand: of each message every truncation, every value of every
//! length, count, offset, type and version, every reserved bit, every size code. Each function
//! checks what is made of them and tells which rules were broken.

mod cdc;
mod clc;
mod llc;
mod proposal;

use crate::proto::wire::WireError;

pub use cdc::cdc;
pub use clc::clc;
pub use llc::llc;

/// The rules that were broken so far.
#[derive(Default)]
pub struct Broken(Vec<WireError>);

impl Broken {
    /// Notes the rule that a message broke, if it did.
    fn note<T>(&mut self, result: &Result<T, WireError>) {
        if let Err(error) = result {
            if !self.0.contains(error) {
                self.0.push(*error);
            }
        }
    }

    /// Adds those of another.
    pub fn add(&mut self, other: Broken) {
        for error in other.0 {
            self.note::<()>(&Err(error));
        }
    }

    /// Whether a rule was broken.
    pub(crate) fn has(&self, error: WireError) -> bool {
        self.0.contains(&error)
    }
}

/// All rules. The match names each, so that a new one can't be forgotten.
pub(crate) fn rules() -> Vec<WireError> {
    use WireError::*;
    let next = |error| {
        Some(match error {
            Truncated => HeadEyecatcher,
            HeadEyecatcher => TailEyecatcher,
            TailEyecatcher => Version,
            Version => Kind,
            Kind => Unexpected,
            Unexpected => Length,
            Length => IpAreaOffset,
            IpAreaOffset => IpAreaNoIsm,
            IpAreaNoIsm => V6Prefixes,
            V6Prefixes => V1NoOffer,
            V1NoOffer => ProposalLength,
            ProposalLength => V2ExtOffset,
            V2ExtOffset => EidCount,
            EidCount => IsmGidCount,
            IsmGidCount => DV2ExtOffset,
            DV2ExtOffset => NotSmcR,
            NotSmcR => AcceptV1Length,
            AcceptV1Length => AcceptV2Length,
            AcceptV2Length => FirstContactLength,
            FirstContactLength => DeclineLength,
            DeclineLength => LlcTruncated,
            LlcTruncated => LlcV1Length,
            LlcV1Length => LlcV2Length,
            LlcV2Length => LlcRkeyCount,
            LlcRkeyCount => LlcRkeyLinks,
            LlcRkeyLinks => LlcFlood,
            LlcFlood => return None,
        })
    };
    std::iter::successors(Some(Truncated), |error| next(*error)).collect()
}

/// A message with one bit flipped.
fn flipped(message: &[u8], byte: usize, bit: u8) -> Vec<u8> {
    let mut changed = message.to_vec();
    changed[byte] ^= 1 << bit;
    changed
}

/// A message with one byte changed.
fn with(message: &[u8], byte: usize, value: u8) -> Vec<u8> {
    let mut changed = message.to_vec();
    changed[byte] = value;
    changed
}

/// A message with two bytes changed.
fn with_two(message: &[u8], byte: usize, value: u16) -> Vec<u8> {
    let mut changed = message.to_vec();
    changed[byte..byte + 2].copy_from_slice(&value.to_be_bytes());
    changed
}
