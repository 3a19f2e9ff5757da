// SPDX-License-Identifier: GPL-2.0
//! Reproducible random numbers (xorshift64*): both ends can make the same stream.

/// A generator.
#[derive(Clone)]
pub struct Rng(u64);

impl Rng {
    /// A generator for a seed.
    pub fn new(seed: u64) -> Self {
        // Spread small seeds; zero would stay zero.
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Fills a buffer.
    pub fn fill(&mut self, data: &mut [u8]) {
        for part in data.chunks_mut(8) {
            let bytes = self.next().to_le_bytes();
            part.copy_from_slice(&bytes[..part.len()]);
        }
    }

    /// A size from 1 to `max`, every order of magnitude equally likely.
    pub fn size(&mut self, max: usize) -> usize {
        let bits = usize::BITS - max.max(1).leading_zeros();
        let limit = 1usize << (self.next() % u64::from(bits) + 1);
        (self.next() as usize % limit).clamp(1, max)
    }
}
