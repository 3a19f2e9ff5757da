// SPDX-License-Identifier: GPL-2.0

//! All sockets that have a state, for `/proc/net/smc`.

use super::state::State;
use crate::ext::{
    global::Global,
    spinlock_bh::{
        new_spinlock_bh,
        SpinLockBh, //
    }, //
};
use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// The sockets by id.
type Sockets = SpinLockBh<RBTree<u64, State>>;

static SOCKETS: Global<Sockets> = Global::new();
static NEXT: Atomic<u64> = Atomic::new(1);

/// Makes the table; module init.
pub(crate) fn init() -> Result {
    SOCKETS.set(Arc::pin_init(
        new_spinlock_bh!(RBTree::new(), "smc_rs_sockets"),
        GFP_KERNEL,
    )?)
}

/// Drops the table; module exit, when no socket is left. Sleeps.
pub(crate) fn exit() {
    SOCKETS.take();
}

/// A fresh id.
pub(super) fn next_id() -> u64 {
    NEXT.fetch_add(1, Relaxed)
}

/// Enters a socket; without memory it is only missing in the listing. May sleep.
pub(super) fn insert(state: &State) {
    let Ok(node) = RBTreeNode::new(state.id, Arc::clone(state), GFP_KERNEL) else {
        return;
    };
    if let Some(table) = SOCKETS.get() {
        let old = table.lock().insert(node);
        drop(old);
    }
}

/// Takes a socket out; any context.
pub(super) fn remove(id: u64) {
    if let Some(table) = SOCKETS.get() {
        let node = table.lock().remove_node(&id);
        drop(node);
    }
}

/// Calls `f` on each socket. It may sleep; sockets that come or go meanwhile may be missed.
pub(crate) fn for_each(mut f: impl FnMut(&State)) {
    let Some(table) = SOCKETS.get() else {
        return;
    };
    let mut next = 0;
    loop {
        let found = {
            let guard = table.lock();
            guard
                .cursor_lower_bound(&next)
                .map(|c| (*c.current().0, Arc::clone(c.current().1)))
        };
        let Some((id, state)) = found else {
            return;
        };
        f(&state);
        next = id.saturating_add(1);
    }
}
