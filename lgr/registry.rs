// SPDX-License-Identifier: GPL-2.0

//! The list of all link groups, and the ways to find one in it.

use super::group::{
    End,
    Group,
    Key,
    Phase,
    Seat, //
};
use crate::{
    ext::{
        net::NetId,
        static_mutex::StaticMutex, //
    },
    proto::reason::Reason, //
};
use kernel::{
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// All groups that aren't dying. Held for a look only: nothing waits under it.
static GROUPS: StaticMutex<KVec<Arc<Group>>> =
    StaticMutex::new(KVec::new(), c"smc_rs_groups", static_lock_class!());

/// The last group number; upstream counts in steps of 256 too.
static LAST_ID: Atomic<u32> = Atomic::new(0);

/// Groups that exist, the dying ones included.
static COUNT: Atomic<i32> = Atomic::new(0);

/// The module goes away: no new groups.
static CLOSED: Atomic<bool> = Atomic::new(false);

/// A number for a new group; the low byte is free for link numbers.
pub(super) fn next_id() -> u32 {
    LAST_ID.fetch_add(256, Relaxed).wrapping_add(256)
}

/// Shows that a group exists.
pub(super) struct Counted(());

impl Counted {
    /// One more group exists.
    pub(super) fn new() -> Self {
        COUNT.add(1, Relaxed);
        Self(())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        COUNT.add(-1, Relaxed);
    }
}

/// Enters a group.
pub(super) fn add(group: Arc<Group>) -> Result {
    let mut groups = GROUPS.lock();
    if CLOSED.load(Relaxed) {
        return Err(ENODEV);
    }
    groups.push(group, GFP_KERNEL)?;
    Ok(())
}

/// Takes a group out.
pub(super) fn remove(group: &Arc<Group>) {
    let found = {
        let mut groups = GROUPS.lock();
        let at = groups.iter().position(|g| Arc::ptr_eq(g, group));
        at.and_then(|at| groups.remove(at).ok())
    };
    drop(found);
}

/// What there is for a new connection of a server.
pub(crate) enum Found {
    /// A seat in a group that the client should have, too.
    Seat(Seat),
    /// A first contact with the same client is under way.
    Forming,
    /// Nothing.
    Nothing,
}

/// Looks for a seat for a new connection of a server.
pub(crate) fn find_server(key: &Key) -> Found {
    let groups = GROUPS.lock();
    let mut fitting = groups.iter().filter(|group| group.key == *key);
    if let Some(seat) = fitting.find_map(Group::sit) {
        return Found::Seat(seat);
    }
    let mut fitting = groups.iter().filter(|group| group.key == *key);
    if fitting.any(Group::forming) {
        Found::Forming
    } else {
        Found::Nothing
    }
}

/// A seat in the group of a client whose link leads to the server's queue pair `qpn`.
pub(crate) fn find_client(key: &Key, qpn: u32) -> Result<Seat, Reason> {
    let groups = GROUPS.lock();
    let mut known = false;
    for group in groups.iter().filter(|group| group.key == *key) {
        known |= group.phase() == Phase::Live;
        if group.peer_qpn() == qpn {
            if let Some(seat) = Group::sit(group) {
                return Ok(seat);
            }
        }
    }
    Err(if known {
        Reason::NOSRVLINK
    } else {
        Reason::SYNCERR
    })
}

/// The peer of `group` has given its queue pair `qpn` to it. A number is used once at a time: what
/// else leads there has lost its other end, though nothing may have told. May sleep.
pub(super) fn end_rivals(group: &Group, qpn: u32) {
    let (key, groups) = (&group.key, GROUPS.lock());
    let rivals = groups.iter().filter(|other| {
        other.id != group.id
            && other.peer_qpn() == qpn
            && other.key.peer_gid == key.peer_gid
            && other.key.peer_id == key.peer_id
            && other.key.peer_ip == key.peer_ip
            && other.key.net == key.net
    });
    for rival in rivals {
        rival.end(End::LinkDown);
    }
}

/// Ends all groups that `which` wants. May sleep.
fn end_groups(which: impl Fn(&Group) -> bool) {
    let groups = GROUPS.lock();
    for group in groups.iter().filter(|group| which(group)) {
        group.end(End::Going);
    }
}

/// A namespace goes away: its groups end. For pernet pre_exit; may sleep.
pub(crate) fn net_exit(net: NetId) {
    end_groups(|group| group.key.net == net);
}

/// Module exit: ends all groups and waits until they are gone. No sockets exist any more. Sleeps.
pub(crate) fn exit() {
    CLOSED.store(true, Relaxed);
    end_groups(|_| true);
    while COUNT.load(Relaxed) > 0 {
        fsleep(Delta::from_millis(10));
    }
    // The list's memory would be leaked: statics are not dropped.
    *GROUPS.lock() = KVec::new();
}

/// Calls `f` for each group. May sleep if `f` does; the list is not locked meanwhile.
pub(crate) fn for_each(mut f: impl FnMut(&Arc<Group>)) {
    let mut at = 0;
    loop {
        // A group that leaves meanwhile may make the walk miss another one: it is for display.
        let group = GROUPS.lock().get(at).cloned();
        match group {
            Some(group) => f(&group),
            None => return,
        }
        at += 1;
    }
}
