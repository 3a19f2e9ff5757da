// SPDX-License-Identifier: GPL-2.0

//! Two connections under any sequence of operations: nothing is lost, doubled or reordered,
//! everything ends. All checks are in `pair`.

use crate::pair::{
    How,
    Pair,
    Sizes, //
};

/// One of the small ring sizes.
fn size(bits: u8) -> u32 {
    1 << (14 + u32::from(bits & 3) % 3)
}

/// Byte 0: sizes of the rings. Byte 1: urgent data in the stream (bits 0 and 1), and bit 2: the
/// link dies at the end. Then operations.
pub fn run(data: &[u8]) {
    let [rings, flags, ops @ ..] = data else {
        return;
    };
    let sizes = Sizes {
        sndbuf: [size(*rings), size(rings >> 2)],
        rmb: [size(rings >> 4), size(rings >> 6)],
        inline: [flags & 1 != 0, flags & 2 != 0],
    };
    if flags & 4 == 0 {
        crate::pair::run(sizes, ops);
    } else {
        link_dies(sizes, ops);
    }
}

/// What was delivered can be read, nothing hangs.
fn link_dies(sizes: Sizes, ops: &[u8]) {
    let mut pair = Pair::new(sizes);
    for op in ops.chunks_exact(2) {
        pair.step(op[0], op[1]);
    }
    pair.cut();
    for at in [0, 1] {
        pair.recv(at, usize::MAX);
        pair.recv(at, usize::MAX);
        assert!(pair.sides[at].conn.finished());
        assert!(pair.sides[at].conn.drained());
        assert!(pair.send(at, 1, How::Plain).is_err());
        assert_eq!(pair.sides[at].conn.readable(), 0);
    }
}
