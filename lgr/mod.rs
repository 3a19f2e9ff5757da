// SPDX-License-Identifier: GPL-2.0

//! Link groups: which connections share a link, the link's life, the LLC exchanges on it.
//!
//! Layers above see a [`Group`] through a [`Seat`], one for each connection. Messages for
//! connections go through the [`Port`]s in the group's token table.
//!
//! Locks: the list of groups (mutex, held for a look) before any group's spinlocks, of which never
//! two are held, except that a group's timer is set under `state`. Nothing is called upwards or
//! downwards under a spinlock.

pub(crate) mod avoid;
mod control;
mod group;
mod info;
mod offer;
mod queue;
mod registry;
mod rings;
mod tokens;
mod upper;
mod waiter;

pub(crate) use self::{
    group::{
        Group,
        Key,
        Phase,
        Seat, //
    },
    offer::{
        Offer,
        Settings,
        MAX_CONNS, //
    },
    registry::{
        exit,
        find_client,
        find_server,
        for_each,
        net_exit,
        Found, //
    },
    tokens::{
        Port,
        Pushed, //
    },
    waiter::{
        Waiter,
        Wake, //
    }, //
};
