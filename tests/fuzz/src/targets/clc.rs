// SPDX-License-Identifier: GPL-2.0

//! The CLC handshake: the parsers alone (`parse`), one machine against any stream (`stream`), two
//! machines against each other with all that can go wrong around them.

use super::Input;
use crate::handshake::{
    Lower,
    Net,
    Plan, //
};

mod parse;
mod stream;

pub use parse::parse;

/// What the lower layers do, from two bytes.
fn lower(input: &mut Input) -> Lower {
    let (what, delay) = (input.or_zero(), input.or_zero());
    let delay = match what % 4 {
        0 => u64::from(delay % 16),
        1 => u64::from(delay) * 4,
        _ => u64::from(delay) * 28,
    };
    match what >> 3 {
        0..=15 => Lower::Ok(delay),
        16..=29 => Lower::Fail(delay),
        _ => Lower::Hang,
    }
}

/// What a side does.
fn plan(server: bool, input: &mut Input) -> Plan {
    let flags = input.or_zero();
    Plan {
        server,
        first: flags & 1 != 0,
        speaks: flags & 2 != 0,
        lag: if flags & 4 != 0 {
            u64::from(input.or_zero()) * 2
        } else {
            0
        },
        closes: (flags & 0x18 == 0x18).then(|| u64::from(input.or_zero()) * 55),
        begin: lower(input),
        middle: lower(input),
        end: lower(input),
    }
}

/// Two machines: no byte of CLC reaches an application, and nobody is SMC alone.
fn handshake(server: bool, mut input: Input) {
    let latency = match input.or_zero() {
        n @ 0..=127 => u64::from(n % 4),
        n => u64::from(n - 128) * 6,
    };
    let segment = match input.or_zero() {
        0 => 1460,
        n => usize::from(n),
    };
    let plans = [plan(false, &mut input), plan(server, &mut input)];
    crate::handshake::run(Net { latency, segment }, plans);
}

/// Byte 0 says what is done with the rest.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    match input.or_zero() % 8 {
        0 => parse(input.0),
        1..=3 => stream::run(true, input),
        4 | 5 => stream::run(false, input),
        6 => handshake(true, input),
        _ => handshake(false, input),
    }
}
