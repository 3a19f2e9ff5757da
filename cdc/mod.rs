// SPDX-License-Identifier: GPL-2.0

//! Connections: the data path around the machine in [`crate::proto::conn`], and the contacts that
//! make connections.
//!
//! The user is the socket layer. It calls a [`Conn`] and hears of [`Events`] as its [`Owner`].
//!
//! Locks: see [`Conn`].

mod conn;
mod contact;
mod events;
mod info;
mod io;
mod rx;
mod state;
mod tx;

pub(crate) use self::{
    conn::Conn,
    contact::{
        Contact,
        Progress, //
    },
    events::{
        Events,
        Owner, //
    },
    info::ConnInfo, //
};
