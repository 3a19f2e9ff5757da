// SPDX-License-Identifier: GPL-2.0

//! Kernel RDMA verbs.
//!
//! [`Client`] announces devices as [`Dev`]; a [`DevRef`] keeps one from going away. [`Qp`] is a
//! reliable connection with message slots which owns everything it needs, and which every posted
//! work request keeps alive.
//!
//! C headers: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h),
//! [`include/rdma/ib_cache.h`](srctree/include/rdma/ib_cache.h)

mod client;
mod gid;
mod hw;
mod mr;
mod post;
mod qp;
mod send_cq;

pub(crate) use self::{
    client::{
        Client,
        ClientOps,
        Dev,
        DevRef,
        Event,
        Port, //
    },
    gid::{
        GidAttr,
        Hop, //
    },
    mr::Region,
    post::Write,
    qp::{
        Peer,
        Qp,
        QpUser,
        Shape, //
    },
};
