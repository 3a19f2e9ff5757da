// SPDX-License-Identifier: GPL-2.0

//! What is fuzzed: each target is a function that takes any bytes and panics if something that
//! must hold does not.

pub mod cdc;
pub mod clc;
pub mod conn;
pub mod group;
pub mod llc;

/// A target's name and function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const ALL: &[Target] = &[
    ("cdc", cdc::run),
    ("clc", clc::run),
    ("conn", conn::run),
    ("group", group::run),
    ("llc", llc::run),
];

/// Reads an input piece by piece.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    /// The next byte.
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next byte, 0 at the end.
    pub(crate) fn or_zero(&mut self) -> u8 {
        self.byte().unwrap_or(0)
    }

    /// The next two bytes, 0 at the end.
    pub(crate) fn short(&mut self) -> u16 {
        u16::from_be_bytes([self.or_zero(), self.or_zero()])
    }

    /// The next four bytes, 0 at the end.
    pub(crate) fn word(&mut self) -> u32 {
        (u32::from(self.short()) << 16) | u32::from(self.short())
    }

    /// Up to `n` bytes.
    pub(crate) fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        head
    }
}
