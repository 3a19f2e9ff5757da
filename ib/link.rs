// SPDX-License-Identifier: GPL-2.0

//! Links as the layers above see them: a queue pair, who owns its slots, whom to tell.

use super::{
    slot::Slots,
    transport::MSG_LEN,
    LinkUpper,
    Mr,
    Path,
    PeerQp,
    TxDone,
    TxOwner,
    WriteSeg, //
};
use crate::ext::{
    random,
    ring::RingMem,
    spinlock_bh::SpinLockBh,
    verbs::{
        Peer,
        Qp,
        QpUser,
        Shape,
        Write, //
    }, //
};
use kernel::{
    prelude::*,
    static_lock_class,
    sync::Arc, //
};

/// Slots for CDC messages.
const DATA_SLOTS: u32 = 16;

/// Slots for LLC messages.
const LLC_SLOTS: u32 = 4;

/// Receives.
const RECEIVES: u32 = 48;

/// First byte of a CDC message.
const CDC: u8 = 0xfe;

/// The queue pair of a link.
pub(super) type LinkQp = Qp<LinkUser>;

/// Which slots are free.
struct Tx {
    /// The data slots.
    data: Slots,
    /// The slots for LLC messages.
    llc: Slots,
}

/// The queue pair's user.
#[pin_data]
pub(super) struct LinkUser {
    /// Device, port and GID.
    path: Path,
    /// Slots.
    #[pin]
    tx: SpinLockBh<Tx>,
    /// The layer above, until the queue pair is gone.
    #[pin]
    upper: SpinLockBh<Option<Arc<dyn LinkUpper>>>,
}

impl LinkUser {
    /// A new user.
    fn new(path: Path, upper: Arc<dyn LinkUpper>) -> impl PinInit<Self> {
        pin_init!(Self {
            path,
            tx <- SpinLockBh::new(
                Tx {
                    data: Slots::new(DATA_SLOTS),
                    llc: Slots::new(LLC_SLOTS),
                },
                c"smc_rs LinkUser.tx",
                static_lock_class!()
            ),
            upper <- SpinLockBh::new(Some(upper), c"smc_rs LinkUser.upper", static_lock_class!()),
        })
    }

    /// Device, port and GID.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The layer above.
    fn upper(&self) -> Option<Arc<dyn LinkUpper>> {
        self.upper.lock().clone()
    }

    /// Gives a data slot back; tells the layer above if somebody waits.
    fn put_data(&self, slot: u32) {
        let wanted = self.tx.lock().data.put(slot);
        self.tell_free(wanted);
    }

    /// Tells the layer above that it can go on, if it waits.
    fn tell_free(&self, wanted: bool) {
        if wanted {
            if let Some(upper) = self.upper() {
                upper.on_slots_free();
            }
        }
    }
}

impl QpUser for LinkUser {
    /// Who posted it, and what he wants to be told.
    type Tag = (Arc<dyn TxOwner>, TxDone);

    fn received(&self, msg: &[u8]) {
        let (Some(head), Some(upper)) = (msg.first_chunk::<MSG_LEN>(), self.upper()) else {
            return;
        };
        if head[0] == CDC {
            upper.on_cdc(head);
        } else {
            upper.on_llc(msg);
        }
    }

    fn sent(&self, slot: u32, tag: Option<Self::Tag>, ok: bool) {
        if slot >= DATA_SLOTS {
            let wanted = self.tx.lock().llc.put(slot - DATA_SLOTS);
            self.tell_free(wanted);
            return;
        }
        if let Some((owner, cookie)) = tag {
            owner.tx_done(cookie, ok);
        }
        self.put_data(slot);
    }

    fn down(&self) {
        if let Some(upper) = self.upper() {
            upper.on_link_down();
        }
    }

    fn gone(&self, qpn: u32) {
        let upper = self.upper.lock().take();
        drop(upper);
        self.path.device.remove_link(qpn);
    }
}

/// One link: a reliable connection with message slots. Dropping it shuts it down.
pub(crate) struct Link {
    /// The queue pair.
    qp: Arc<LinkQp>,
    /// First packet sequence number we send.
    psn: u32,
    /// Our port's MTU.
    mtu: u8,
}

impl Link {
    /// Creates a link on `path`, ready to be connected. May sleep.
    pub(crate) fn new(path: &Path, upper: Arc<dyn LinkUpper>) -> Result<Arc<Self>> {
        let hold = path.device.dev.get().ok_or(ENODEV)?;
        let port = hold.query_port(path.port)?;
        if !port.active {
            return Err(ENETDOWN);
        }
        let shape = Shape {
            tx: DATA_SLOTS + LLC_SLOTS,
            data: DATA_SLOTS,
            rx: RECEIVES,
        };
        let user = LinkUser::new(path.clone(), upper);
        let qp = LinkQp::new(hold, path.port, shape, user)?;
        let link = Arc::new(
            Self {
                qp,
                psn: random::word() & 0xff_ffff,
                mtu: port.mtu,
            },
            GFP_KERNEL,
        )?;
        path.device.add_link(&link.qp)?;
        Ok(link)
    }

    /// Our queue pair's number.
    pub(crate) fn qpn(&self) -> u32 {
        self.qp.qpn()
    }

    /// The first packet sequence number we send (24 bit).
    pub(crate) fn psn(&self) -> u32 {
        self.psn
    }

    /// Our GID.
    pub(crate) fn gid(&self) -> [u8; 16] {
        self.path().gid()
    }

    /// Our MAC address.
    pub(crate) fn mac(&self) -> [u8; 6] {
        self.path().mac()
    }

    /// Our port's MTU (`enum ib_mtu`), fresh at creation.
    pub(crate) fn mtu(&self) -> u8 {
        self.mtu
    }

    /// The path it was made for.
    pub(crate) fn path(&self) -> &Path {
        self.qp.user().path()
    }

    /// Posts the receives and lets the peer reach us (INIT, RTR). May sleep.
    pub(crate) fn connect(&self, peer: &PeerQp) -> Result {
        if !(1..=5).contains(&peer.mtu) {
            return Err(EINVAL);
        }
        let peer = Peer {
            gid: peer.gid,
            mac: peer.hop.mac,
            hop_limit: if peer.hop.gateway { 64 } else { 1 },
            qpn: peer.qpn,
            psn: peer.psn,
            mtu: peer.mtu.min(self.mtu),
        };
        self.path().with_gid(|gid| self.qp.connect(gid, &peer))
    }

    /// Lets us send (RTS). May sleep.
    pub(crate) fn activate(&self) -> Result {
        self.qp.activate(self.psn)
    }

    /// Whether messages can be sent: activated and neither broken nor shut down. Any context but
    /// hard interrupts.
    pub(crate) fn is_active(&self) -> bool {
        self.qp.is_ready()
    }

    /// Sends an LLC message of up to 48 bytes from the reserved slots. Never sleeps, softirq is
    /// fine. `EAGAIN`: none of the slots is free, [`LinkUpper::on_slots_free`] comes when one is;
    /// `ENOTCONN`: not active.
    pub(crate) fn send_llc(&self, msg: &[u8]) -> Result {
        let tx = &self.qp.user().tx;
        let slot = tx.lock().llc.take().ok_or(EAGAIN)?;
        let done = self
            .qp
            .post(DATA_SLOTS + slot, core::iter::empty(), msg, None, true);
        if done.is_err() {
            // Nobody has to be told: nothing can be sent any more.
            let _ = tx.lock().llc.put(slot);
        }
        done
    }

    /// Takes a slot to post with. `None`: all are in use, or the link is not active; in the first
    /// case [`LinkUpper::on_slots_free`] comes when one is free. Never sleeps.
    pub(crate) fn take_slot(&self) -> Option<TxSlot<'_>> {
        if !self.qp.is_ready() {
            return None;
        }
        let Some(index) = self.qp.user().tx.lock().data.take() else {
            self.qp.want_sent();
            return None;
        };
        Some(TxSlot {
            user: self.qp.user(),
            index,
        })
    }

    /// Posts `writes` and then the message `cdc` as one chain. Never sleeps, softirq is fine.
    ///
    /// All writes must be out of one ring, which stays mapped until the completion. Those that go
    /// on where the one before ended are joined; two runs of two pieces fit.
    ///
    /// On success `owner` is kept until the completion, which calls its [`TxOwner::tx_done`] when
    /// the next message comes in, or soon if `want` or after [`Link::want_sent`]. On an
    /// error nothing will be called but [`LinkUpper::on_link_down`], from a worker. Either may
    /// happen before this returns.
    pub(crate) fn post(
        &self,
        slot: TxSlot<'_>,
        writes: &[WriteSeg<'_>],
        cdc: &[u8; MSG_LEN],
        owner: Arc<dyn TxOwner>,
        cookie: TxDone,
        want: bool,
    ) -> Result {
        if !core::ptr::eq(slot.user, self.qp.user()) {
            return Err(EINVAL);
        }
        let list = writes.iter().map(|w| Write {
            region: w.local.region(),
            offset: w.offset,
            len: w.len,
            remote_addr: w.remote_addr,
            rkey: w.rkey,
        });
        self.qp
            .post(slot.index, list, cdc, Some((owner, cookie)), want)?;
        // The slot goes back when the completion comes.
        slot.posted();
        Ok(())
    }

    /// Somebody waits for the completion of what was posted. Any context but hard interrupts.
    pub(crate) fn want_sent(&self) {
        self.qp.want_sent();
    }

    /// Maps a send ring for [`Link::post`]. The link must be active if the memory is not
    /// contiguous, as that needs a registration. May sleep.
    pub(crate) fn map(&self, mem: &Arc<RingMem>) -> Result<Mr> {
        let mr = Mr::new(self.qp.map(mem, false)?);
        self.register_mr(&mr)?;
        Ok(mr)
    }

    /// Maps an RMB and gets its key; the peer can use it after [`Link::register_mr`]. May sleep.
    pub(crate) fn alloc_mr(&self, mem: &Arc<RingMem>) -> Result<Mr> {
        Ok(Mr::new(self.qp.map(mem, true)?))
    }

    /// Makes the key of [`Link::alloc_mr`] valid. The link must be active. Sleeps up to 5 s; a
    /// time-out breaks the link.
    pub(crate) fn register_mr(&self, mr: &Mr) -> Result {
        self.qp.register(mr.region())
    }

    /// [`Link::alloc_mr`] and [`Link::register_mr`].
    pub(crate) fn register(&self, mem: &Arc<RingMem>) -> Result<Mr> {
        let mr = self.alloc_mr(mem)?;
        self.register_mr(&mr)?;
        Ok(mr)
    }

    /// Breaks the link on purpose: no message is sent any more, outstanding ones complete, and
    /// everything is released in a worker. May be called repeatedly and in any context but hard
    /// interrupts.
    pub(crate) fn shut_down(&self) {
        self.qp.shut_down();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.qp.shut_down();
    }
}

/// A data slot taken for one post; dropping it gives it back, which may call
/// [`LinkUpper::on_slots_free`].
#[must_use]
pub(crate) struct TxSlot<'a> {
    /// Whose slot it is.
    user: &'a LinkUser,
    /// Which.
    index: u32,
}

impl TxSlot<'_> {
    /// Lets go of the slot without giving it back.
    fn posted(mut self) {
        self.index = DATA_SLOTS;
    }
}

impl Drop for TxSlot<'_> {
    fn drop(&mut self) {
        if self.index < DATA_SLOTS {
            self.user.put_data(self.index);
        }
    }
}
