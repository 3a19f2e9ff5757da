// SPDX-License-Identifier: GPL-2.0

//! The table that leads from the alert token of a CDC message to its connection.

use crate::{
    ext::{
        random,
        spinlock_bh::{
            new_spinlock_bh,
            SpinLockBh, //
        }, //
    },
    proto::wire::cdc::Cdc, //
};
use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::Arc, //
};

/// What became of a connection that was asked to post once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// Nothing more to post.
    Idle,
    /// One post went out and there is more to do: it is at the end of the queue again.
    Queued,
    /// There was no free slot; it asked for one again.
    Blocked,
}

/// A connection as its link group sees it. No method sleeps unless it says so.
pub(crate) trait Port: Send + Sync {
    /// A CDC message for this connection came. Softirq.
    fn on_cdc(self: Arc<Self>, cdc: &Cdc);
    /// Slots are free: post at most once. Softirq.
    fn on_slots(self: Arc<Self>) -> Pushed;
    /// The link group is going down: report it to the user. Process context.
    fn on_group_down(self: Arc<Self>);
    /// The link is dead: the peer can't write any more, no completion is outstanding for long.
    /// Process context, may sleep.
    fn on_link_gone(self: Arc<Self>);
    /// Ends the wait for a peer that doesn't finish a dead connection; returns whether the
    /// connection still has to wait. Process context, may sleep.
    fn expire(self: Arc<Self>, now: u64) -> bool;
}

/// Token to connection; a reference is taken inside the lock.
#[pin_data]
pub(crate) struct Tokens {
    /// The tree, by token.
    #[pin]
    tree: SpinLockBh<RBTree<u32, Arc<dyn Port>>>,
}

impl Tokens {
    /// An empty table.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            tree <- new_spinlock_bh!(RBTree::new(), "smc_rs_tokens"),
        })
    }

    /// Draws an unused token and enters the connection made for it. May sleep.
    ///
    /// Tokens are random, so a peer can't guess those of other link groups.
    pub(crate) fn insert<P: Port + 'static>(
        &self,
        make: impl FnOnce(u32) -> Result<Arc<P>>,
    ) -> Result<Arc<P>> {
        let spare = RBTreeNodeReservation::new(GFP_KERNEL)?;
        let token = self.draw();
        let port = make(token)?;
        let node = spare.into_node(token, port.clone() as Arc<dyn Port>);
        // Two contacts may draw the same number at the same time; the later one gives up.
        let old = {
            let mut tree = self.tree.lock();
            match tree.get(&token) {
                None => tree.insert(node),
                Some(_) => Some(node),
            }
        };
        match old {
            None => Ok(port),
            Some(_) => Err(EAGAIN),
        }
    }

    /// A token not in use at this moment; never 0.
    fn draw(&self) -> u32 {
        loop {
            let token = random::word();
            if token != 0 && self.tree.lock().get(&token).is_none() {
                return token;
            }
        }
    }

    /// The connection of a token.
    pub(super) fn get(&self, token: u32) -> Option<Arc<dyn Port>> {
        self.tree.lock().get(&token).cloned()
    }

    /// Takes a connection out; later messages for it are dropped.
    pub(crate) fn remove(&self, token: u32) {
        let node = self.tree.lock().remove_node(&token);
        drop(node);
    }

    /// The connection with the smallest token that is at least `from`.
    pub(super) fn next(&self, from: u32) -> Option<(u32, Arc<dyn Port>)> {
        let tree = self.tree.lock();
        let cursor = tree.cursor_lower_bound(&from)?;
        let (token, port) = cursor.current();
        Some((*token, port.clone()))
    }

    /// Calls `f` for each connection, without the lock.
    pub(super) fn for_each(&self, mut f: impl FnMut(Arc<dyn Port>)) {
        let mut from = 0;
        while let Some((token, port)) = self.next(from) {
            f(port);
            match token.checked_add(1) {
                Some(next) => from = next,
                None => break,
            }
        }
    }
}
