// SPDX-License-Identifier: GPL-2.0

//! What a transport offers upwards and asks of the layers above.
//!
//! `lgr` and `cdc` name only the types here and the handles [`Link`](super::Link),
//! [`TxSlot`](super::TxSlot) and [`Mr`](super::Mr), none of which shows what moves the bytes.

use super::{
    Mr,
    TxDone, //
};
use kernel::sync::Arc;

/// Bytes of a CDC message and of a version 1 LLC message.
pub(crate) const MSG_LEN: usize = 44;

/// What a link tells the layer above.
///
/// Called in softirq or worker context with no lock of this layer held; must not sleep.
pub(crate) trait LinkUpper: Send + Sync {
    /// An LLC message (anything but CDC) of at least 44 bytes.
    fn on_llc(&self, msg: &[u8]);
    /// A CDC message.
    fn on_cdc(&self, msg: &[u8; MSG_LEN]);
    /// A slot is free again after [`Link::take_slot`](super::Link::take_slot) or
    /// [`Link::send_llc`](super::Link::send_llc) found none.
    fn on_slots_free(&self);
    /// The link broke, or its device or GID is going away; called at most once, in a worker. The
    /// link tears itself down after this returns. It may race with, and come after, the upper
    /// layer's own [`Link::shut_down`](super::Link::shut_down).
    fn on_link_down(&self);
}

/// Owner of a posted message; kept alive until the completion.
pub(crate) trait TxOwner: Send + Sync {
    /// The message posted with `cookie` left (`ok`: and the peer's NIC acknowledged it and all
    /// writes before it). Called exactly once per successful post, in softirq context; must not
    /// sleep.
    fn tx_done(self: Arc<Self>, cookie: TxDone, ok: bool);
}

/// One piece of a send ring to be written to the peer.
pub(crate) struct WriteSeg<'a> {
    /// The source ring as mapped on the same link.
    pub(crate) local: &'a Mr,
    /// Offset in it.
    pub(crate) offset: u32,
    /// Bytes.
    pub(crate) len: u32,
    /// Where to in the peer's address space.
    pub(crate) remote_addr: u64,
    /// The peer's key for it.
    pub(crate) rkey: u32,
}

/// How to reach a peer's GID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextHop {
    /// MAC address of the peer or of the gateway.
    pub(crate) mac: [u8; 6],
    /// Whether a gateway is in between.
    pub(crate) gateway: bool,
}

/// The peer's end of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerQp {
    /// Its GID.
    pub(crate) gid: [u8; 16],
    /// Its queue pair.
    pub(crate) qpn: u32,
    /// The first packet sequence number it will send.
    pub(crate) psn: u32,
    /// Its MTU (`enum ib_mtu`).
    pub(crate) mtu: u8,
    /// How to get there.
    pub(crate) hop: NextHop,
}
