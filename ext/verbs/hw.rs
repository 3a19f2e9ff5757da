// SPDX-License-Identifier: GPL-2.0

//! The verbs objects of one queue pair. Creating and dropping any of them may sleep.

use super::{
    client::DevRef,
    mr::Entry,
    qp::Shape,
    send_cq::Handle, //
};
use crate::ext::abi::bindings;
use core::ptr::NonNull;
use kernel::{
    error::from_err_ptr,
    prelude::*, //
};

/// Data that should go to the device by value: a message, or a small write.
const INLINE: u32 = 64;

/// The completion queue of receives, served in softirq.
struct Cq(NonNull<bindings::ib_cq>);

impl Cq {
    /// Allocates a queue for `size` completions.
    fn new(dev: &DevRef, size: u32) -> Result<Self> {
        let size = c_int::try_from(size)?;
        // SAFETY: The device is valid.
        let cq = from_err_ptr(unsafe { bindings::smc_rs_alloc_cq(dev.as_raw(), size) })?;
        Ok(Self(NonNull::new(cq).ok_or(ENOMEM)?))
    }
}

impl Drop for Cq {
    fn drop(&mut self) {
        // SAFETY: The queue is ours; its queue pair has been destroyed (field order in `Hw`).
        unsafe { bindings::ib_free_cq(self.0.as_ptr()) }
    }
}

/// A protection domain.
struct Pd(NonNull<bindings::ib_pd>);

impl Pd {
    /// Allocates one.
    fn new(dev: &DevRef) -> Result<Self> {
        // SAFETY: The device is valid.
        let pd = from_err_ptr(unsafe { bindings::smc_rs_alloc_pd(dev.as_raw()) })?;
        Ok(Self(NonNull::new(pd).ok_or(ENOMEM)?))
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: The domain is ours; all that used it is gone (field order in `Hw`).
        unsafe { bindings::smc_rs_dealloc_pd(self.0.as_ptr()) }
    }
}

/// A reliable-connected queue pair.
struct RawQp(NonNull<bindings::ib_qp>);

impl RawQp {
    /// Creates one and returns the size of data it takes inline: what we would like, or, from a
    /// device that has less, what it gives unasked.
    fn new(pd: &Pd, cqs: (&Cq, &Handle), shape: &Shape, send_sge: u32) -> Result<(Self, u32)> {
        Self::with_inline(pd, cqs, shape, send_sge, INLINE)
            .or_else(|_| Self::with_inline(pd, cqs, shape, send_sge, 0))
    }

    /// Creates one that takes at least `inline` bytes inline.
    fn with_inline(
        pd: &Pd,
        (cq, send_cq): (&Cq, &Handle),
        shape: &Shape,
        send_sge: u32,
        inline: u32,
    ) -> Result<(Self, u32)> {
        let mut attr = bindings::ib_qp_init_attr {
            send_cq: send_cq.as_raw(),
            recv_cq: cq.0.as_ptr(),
            cap: bindings::ib_qp_cap {
                max_send_wr: shape.send_wrs(),
                max_recv_wr: shape.recv_wrs(),
                max_send_sge: send_sge,
                max_recv_sge: 2,
                max_inline_data: inline,
                ..pin_init::zeroed()
            },
            sq_sig_type: bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
            qp_type: bindings::ib_qp_type_IB_QPT_RC,
            ..pin_init::zeroed()
        };
        // SAFETY: Domain and completion queue are valid; `attr` is a full set of attributes.
        let qp = from_err_ptr(unsafe { bindings::smc_rs_create_qp(pd.0.as_ptr(), &mut attr) })?;
        let qp = Self(NonNull::new(qp).ok_or(ENOMEM)?);
        Ok((qp, attr.cap.max_inline_data))
    }
}

impl Drop for RawQp {
    fn drop(&mut self) {
        // SAFETY: The queue pair is ours and drained.
        unsafe { bindings::smc_rs_destroy_qp(self.0.as_ptr()) }
    }
}

/// Memory for messages, mapped for the device both ways.
pub(super) struct MsgBuf {
    /// The device it is mapped for.
    dev: NonNull<bindings::ib_device>,
    /// The memory; page aligned.
    pub(super) mem: NonNull<u8>,
    /// Size in bytes.
    pub(super) len: usize,
    /// Its DMA address.
    pub(super) dma: u64,
    /// Whether it needs syncs.
    pub(super) sync: bool,
}

impl MsgBuf {
    /// Allocates and maps `len` bytes.
    fn new(dev: &DevRef, len: usize) -> Result<Self> {
        let (mut contiguous, mut bad) = (false, false);
        // SAFETY: `contiguous` may be written.
        let mem = unsafe { bindings::smc_rs_ring_alloc(len, &mut contiguous) };
        let mem = NonNull::new(mem.cast::<u8>()).ok_or(ENOMEM)?;
        if contiguous {
            // SAFETY: The memory is contiguous and `len` long.
            let dma = unsafe {
                bindings::smc_rs_dma_map(dev.as_raw(), mem.as_ptr().cast(), len, &mut bad)
            };
            if !bad {
                return Ok(Self {
                    dev: NonNull::new(dev.as_raw()).ok_or(EINVAL)?,
                    mem,
                    len,
                    dma,
                    // SAFETY: The address was mapped above.
                    sync: unsafe { bindings::smc_rs_dma_need_sync(dev.as_raw(), dma) },
                });
            }
        }
        // SAFETY: The memory was allocated above and is not mapped.
        unsafe { bindings::smc_rs_ring_free(mem.as_ptr().cast(), len, contiguous) };
        Err(ENOMEM)
    }
}

impl Drop for MsgBuf {
    fn drop(&mut self) {
        // SAFETY: It was mapped and allocated (contiguously) by `new`; the queue pair that used it
        // is gone (field order in `Hw`), the device is not.
        unsafe {
            bindings::smc_rs_dma_unmap(self.dev.as_ptr(), self.dma, self.len);
            bindings::smc_rs_ring_free(self.mem.as_ptr().cast(), self.len, true);
        }
    }
}

/// Everything a queue pair has on its device; dropped in this order, which the verbs demand.
pub(super) struct Hw {
    /// Regions mapped on it.
    pub(super) regions: KVec<Entry>,
    /// The queue pair.
    qp: RawQp,
    /// The completion queue of its receives.
    #[expect(dead_code)]
    cq: Cq,
    /// That of its sends. The handler of the other one uses it too, hence this order.
    pub(super) send_cq: Handle,
    /// The messages' memory.
    pub(super) buf: MsgBuf,
    /// The protection domain.
    pd: Pd,
    /// What data the queue pair takes inline.
    pub(super) max_inline: u32,
    /// How many pieces a work request may gather.
    pub(super) send_sge: u32,
    /// The device.
    pub(super) dev: DevRef,
}

// SAFETY: Verbs objects may be used from any thread.
unsafe impl Send for Hw {}

impl Hw {
    /// Creates all of it.
    pub(super) fn new(dev: DevRef, shape: &Shape) -> Result<Self> {
        if dev.attrs().max_recv_sge < 2 || dev.attrs().max_send_sge < 1 {
            return Err(EOPNOTSUPP);
        }
        let send_sge = dev.attrs().max_send_sge.min(2);
        let pd = Pd::new(&dev)?;
        let buf = MsgBuf::new(&dev, shape.buf_len())?;
        let cq = Cq::new(&dev, shape.recv_wrs())?;
        let send_cq = Handle::new(&dev, shape.send_wrs())?;
        let (qp, max_inline) = RawQp::new(&pd, (&cq, &send_cq), shape, send_sge)?;
        Ok(Self {
            regions: KVec::new(),
            qp,
            cq,
            send_cq,
            buf,
            pd,
            max_inline,
            send_sge,
            dev,
        })
    }

    /// The raw queue pair.
    pub(super) fn qp(&self) -> *mut bindings::ib_qp {
        self.qp.0.as_ptr()
    }

    /// The raw protection domain.
    pub(super) fn pd(&self) -> *mut bindings::ib_pd {
        self.pd.0.as_ptr()
    }

    /// Moves the queue pair to the error state and waits for all its work requests.
    pub(super) fn drain(&self) {
        self.send_cq.drain();
        // SAFETY: The queue pair is valid, its completion queues are ones of `ib_alloc_cq` with
        // room for the extra completions, and the caller has stopped all posting.
        unsafe { bindings::ib_drain_qp(self.qp()) }
    }
}
