// SPDX-License-Identifier: GPL-2.0

//! Links as the layers above see them.

use super::{
    transport::MSG_LEN,
    LinkUpper,
    Mr,
    Path,
    PeerQp,
    TxDone,
    TxOwner,
    WriteSeg, //
};
use crate::ext::ring::RingMem;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// One link: a reliable connection with message slots. Dropping it shuts it down.
pub(crate) struct Link {
    /// The path it was made for.
    path: Path,
}

impl Link {
    /// Creates a link on `path`, ready to be connected. May sleep.
    pub(crate) fn new(_path: &Path, _upper: Arc<dyn LinkUpper>) -> Result<Arc<Self>> {
        Err(ENOSYS)
    }

    /// Our queue pair's number.
    pub(crate) fn qpn(&self) -> u32 {
        0
    }

    /// The first packet sequence number we send (24 bit).
    pub(crate) fn psn(&self) -> u32 {
        0
    }

    /// Our GID.
    pub(crate) fn gid(&self) -> [u8; 16] {
        [0; 16]
    }

    /// Our MAC address.
    pub(crate) fn mac(&self) -> [u8; 6] {
        [0; 6]
    }

    /// Our port's MTU (`enum ib_mtu`), fresh at creation.
    pub(crate) fn mtu(&self) -> u8 {
        0
    }

    /// The path it was made for.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Posts the receives and lets the peer reach us (INIT, RTR). May sleep.
    pub(crate) fn connect(&self, _peer: &PeerQp) -> Result {
        Err(ENOSYS)
    }

    /// Lets us send (RTS). May sleep.
    pub(crate) fn activate(&self) -> Result {
        Err(ENOSYS)
    }

    /// Whether messages can be sent: activated and neither broken nor shut down. Any context.
    pub(crate) fn is_active(&self) -> bool {
        false
    }

    /// Sends an LLC message of up to 48 bytes from the reserved slots. Never sleeps, softirq is
    /// fine. `EAGAIN`: none of the slots is free; `ENOTCONN`: not active.
    pub(crate) fn send_llc(&self, _msg: &[u8]) -> Result {
        Err(ENOSYS)
    }

    /// Takes a slot to post with. `None`: all are in use, or the link is not active; in the first
    /// case [`LinkUpper::on_slots_free`] comes when one is free. Never sleeps.
    pub(crate) fn take_slot(&self) -> Option<TxSlot> {
        None
    }

    /// Posts `writes` and then the message `cdc` as one chain. Never sleeps, softirq is fine.
    ///
    /// On success `owner` (and through it the source rings) is kept until the completion, which
    /// calls its [`TxOwner::tx_done`]. On an error nothing will be called but
    /// [`LinkUpper::on_link_down`], from a worker.
    pub(crate) fn post(
        &self,
        _slot: TxSlot,
        _writes: &[WriteSeg<'_>],
        _cdc: &[u8; MSG_LEN],
        _owner: Arc<dyn TxOwner>,
        _cookie: TxDone,
    ) -> Result {
        Err(ENOSYS)
    }

    /// Maps a send ring for [`Link::post`]. The link must be active (vmalloc'ed rings need a
    /// registration). May sleep.
    pub(crate) fn map(&self, _mem: &Arc<RingMem>) -> Result<Mr> {
        Err(ENOSYS)
    }

    /// Maps an RMB and gets its key; the peer can use it after [`Link::register_mr`]. May sleep.
    pub(crate) fn alloc_mr(&self, _mem: &Arc<RingMem>) -> Result<Mr> {
        Err(ENOSYS)
    }

    /// Makes the key of [`Link::alloc_mr`] valid. The link must be active. Sleeps up to 5 s; a
    /// time-out breaks the link.
    pub(crate) fn register_mr(&self, _mr: &Mr) -> Result {
        Err(ENOSYS)
    }

    /// [`Link::alloc_mr`] and [`Link::register_mr`].
    pub(crate) fn register(&self, mem: &Arc<RingMem>) -> Result<Mr> {
        let mr = self.alloc_mr(mem)?;
        self.register_mr(&mr)?;
        Ok(mr)
    }

    /// Breaks the link on purpose: no message is sent any more, outstanding ones complete, and
    /// everything is released in a worker. May be called repeatedly and in any context.
    pub(crate) fn shut_down(&self) {}
}

/// A data slot taken for one post; dropping it gives it back. Keeps its link's memory alive.
#[must_use]
pub(crate) struct TxSlot {}
