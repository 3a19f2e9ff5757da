// SPDX-License-Identifier: GPL-2.0

//! Ring memory mapped on a queue pair's device.

use super::{
    hw::Hw,
    qp::{
        Qp,
        QpUser, //
    },
};
use crate::ext::{
    abi::bindings,
    ring::RingMem, //
};
use core::ptr::NonNull;
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            AtomicFlag,
            Full, //
        },
        Arc, //
    },
};

/// What both the region's handle and the queue pair know of it.
pub(super) struct Shared {
    /// The memory; kept until the region is unmapped.
    pub(super) mem: Arc<RingMem>,
    /// Key for our own work requests.
    pub(super) lkey: u32,
    /// Key for the peer's.
    pub(super) rkey: u32,
    /// Address of the first byte in work requests.
    pub(super) addr: u64,
    /// The C object, if there is one, null otherwise; valid while the region is mapped.
    pub(super) mr: *mut bindings::ib_mr,
    /// Access rights to be registered.
    pub(super) access: c_int,
    /// How it is mapped, for syncs; valid while the region is mapped.
    map: NonNull<Map>,
    /// Whether syncs are needed.
    pub(super) sync: bool,
    /// How many posted messages read it.
    posted: Atomic<i32>,
    /// The handle is gone.
    dead: AtomicFlag,
}

// SAFETY: The pointers are used as their field comments say, from any thread.
unsafe impl Send for Shared {}
// SAFETY: As above.
unsafe impl Sync for Shared {}

/// A mapping for DMA.
enum Map {
    /// One address.
    Single(u64, usize),
    /// A table.
    Table(bindings::sg_table),
}

/// The queue pair's side of a region: dropping it deregisters and unmaps. May sleep.
///
/// # Invariants
///
/// `dev` is the device of the `Hw` that owns the entry.
pub(super) struct Entry {
    /// The device.
    dev: *mut bindings::ib_device,
    /// The mapping.
    map: Pin<KBox<Map>>,
    /// The registered region, or null.
    mr: *mut bindings::ib_mr,
    /// The rest; last, as it holds the memory.
    shared: Arc<Shared>,
}

impl Entry {
    /// Maps `mem` on the device of `hw`; with `remote` the peer may be given a key to write it.
    pub(super) fn new(hw: &Hw, mem: &Arc<RingMem>, remote: bool) -> Result<Self> {
        if mem.is_contiguous() && !remote {
            Self::local(hw, mem)
        } else {
            Self::registered(hw, mem, remote)
        }
    }

    /// Maps contiguous memory for reading by our own work requests.
    fn local(hw: &Hw, mem: &Arc<RingMem>) -> Result<Self> {
        let (dev, len, mut bad) = (hw.dev.as_raw(), mem.size(), false);
        // SAFETY: The memory is contiguous and outlives the mapping, as `shared` keeps it.
        let dma = unsafe { bindings::smc_rs_dma_map(dev, mem.as_ptr().cast(), len, &mut bad) };
        if bad {
            return Err(ENOMEM);
        }
        let map = KBox::pin(Map::Single(dma, len), GFP_KERNEL);
        let map = match map {
            Ok(map) => map,
            Err(e) => {
                // SAFETY: It was mapped above.
                unsafe { bindings::smc_rs_dma_unmap(dev, dma, len) };
                return Err(e.into());
            }
        };
        // SAFETY: The domain is valid while `hw` is; the address was mapped above.
        let (lkey, sync) = unsafe {
            (
                (*hw.pd()).local_dma_lkey,
                bindings::smc_rs_dma_need_sync(dev, dma),
            )
        };
        Self::finish(
            dev,
            map,
            core::ptr::null_mut(),
            mem,
            [lkey, 0],
            dma,
            sync,
            false,
        )
    }

    /// Maps memory and allocates a key for it.
    fn registered(hw: &Hw, mem: &Arc<RingMem>, remote: bool) -> Result<Self> {
        let dev = hw.dev.as_raw();
        let mut map = KBox::new(Map::Table(pin_init::zeroed()), GFP_KERNEL)?;
        let Map::Table(sgt) = &mut *map else {
            return Err(EINVAL);
        };
        // SAFETY: The memory is `size()` long, page aligned, contiguous as said, and outlives the
        // mapping.
        to_result(unsafe {
            bindings::smc_rs_sgt_map(
                dev,
                sgt,
                mem.as_ptr().cast(),
                mem.size(),
                mem.is_contiguous(),
            )
        })?;
        let mr = Self::alloc(hw, sgt, mem.size());
        let mr = match mr {
            Ok(mr) => mr,
            Err(e) => {
                // SAFETY: It was mapped above.
                unsafe { bindings::smc_rs_sgt_unmap(dev, sgt) };
                return Err(e);
            }
        };
        // SAFETY: The region and the mapping are valid.
        let (keys, addr, sync) = unsafe {
            (
                [(*mr).lkey, if remote { (*mr).rkey } else { 0 }],
                (*mr).iova,
                bindings::smc_rs_sgt_need_sync(dev, sgt),
            )
        };
        Self::finish(dev, KBox::into_pin(map), mr, mem, keys, addr, sync, remote)
    }

    /// Allocates a region and gives it the pages of `sgt`.
    fn alloc(hw: &Hw, sgt: &mut bindings::sg_table, len: usize) -> Result<*mut bindings::ib_mr> {
        let pages = u32::try_from(len / kernel::page::PAGE_SIZE)?;
        // SAFETY: The domain is valid while `hw` is.
        let mr = from_err_ptr(unsafe {
            bindings::ib_alloc_mr(hw.pd(), bindings::ib_mr_type_IB_MR_TYPE_MEM_REG, pages)
        })?;
        // SAFETY: Region and table are valid, the table is mapped for the region's device.
        let done = to_result(unsafe { bindings::smc_rs_map_mr(mr, sgt) });
        if done.is_err() {
            // SAFETY: The region was allocated above.
            unsafe { bindings::smc_rs_dereg_mr(mr) };
        }
        done.map(|()| mr)
    }

    /// Makes an entry of what was mapped.
    #[expect(clippy::too_many_arguments)]
    fn finish(
        dev: *mut bindings::ib_device,
        map: Pin<KBox<Map>>,
        mr: *mut bindings::ib_mr,
        mem: &Arc<RingMem>,
        keys: [u32; 2],
        addr: u64,
        sync: bool,
        remote: bool,
    ) -> Result<Self> {
        let mut access = bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE;
        if remote {
            access |= bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE;
        }
        let shared = Arc::new(
            Shared {
                mem: mem.clone(),
                lkey: keys[0],
                rkey: keys[1],
                addr,
                mr,
                access: access as c_int,
                map: NonNull::from(&*map),
                sync,
                posted: Atomic::new(0),
                dead: AtomicFlag::new(false),
            },
            GFP_KERNEL,
        );
        match shared {
            Ok(shared) => Ok(Self {
                dev,
                map,
                mr,
                shared,
            }),
            Err(e) => {
                Self::release(dev, mr, &map);
                Err(e.into())
            }
        }
    }

    /// Gives back region and mapping.
    fn release(dev: *mut bindings::ib_device, mr: *mut bindings::ib_mr, map: &Map) {
        // SAFETY: They are the ones that were made for `dev`, and are not used any more: the
        // region is deregistered before its memory is unmapped.
        unsafe {
            if !mr.is_null() {
                bindings::smc_rs_dereg_mr(mr);
            }
            match map {
                Map::Single(dma, len) => bindings::smc_rs_dma_unmap(dev, *dma, *len),
                Map::Table(sgt) => {
                    bindings::smc_rs_sgt_unmap(dev, core::ptr::from_ref(sgt).cast_mut())
                }
            }
        }
    }

    /// What the handle shares.
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Whether nobody has the handle any more and nothing that was posted reads it.
    pub(super) fn is_unused(&self) -> bool {
        self.shared.dead.load(Acquire) && self.shared.posted.load(Acquire) == 0
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        Self::release(self.dev, self.mr, &self.map);
    }
}

impl Shared {
    /// A message that reads it is being posted, by somebody who has the handle.
    pub(super) fn hold(&self) {
        self.posted.fetch_add(1, Full);
    }

    /// Such a message completed; true if the worker should look.
    #[must_use]
    pub(super) fn release(&self) -> bool {
        self.posted.fetch_sub(1, Full) == 1 && self.dead.load(Acquire)
    }

    /// Syncs a range.
    ///
    /// # Safety
    ///
    /// The region must be mapped on `dev`.
    pub(super) unsafe fn sync(
        &self,
        dev: *mut bindings::ib_device,
        offset: u32,
        len: u32,
        to_cpu: bool,
    ) {
        let (offset, len) = (offset as usize, len as usize);
        // SAFETY: The mapping is valid while the region is mapped.
        match unsafe { self.map.as_ref() } {
            // SAFETY: As above.
            Map::Single(dma, _) => unsafe {
                bindings::smc_rs_dma_sync(dev, dma + offset as u64, len, to_cpu)
            },
            // SAFETY: As above.
            Map::Table(sgt) => unsafe {
                bindings::smc_rs_sgt_sync(
                    dev,
                    core::ptr::from_ref(sgt).cast_mut(),
                    offset,
                    len,
                    to_cpu,
                )
            },
        }
    }
}

/// A handle to a mapped region. Dropping it (any context) lets a worker unmap it, once no posted
/// message reads it; the memory stays until then.
pub(crate) struct Region<U: QpUser> {
    /// The region.
    pub(super) shared: Arc<Shared>,
    /// Where it is mapped.
    pub(super) qp: Arc<Qp<U>>,
}

impl<U: QpUser> Region<U> {
    /// The peer's key; 0 if it has none.
    pub(crate) fn rkey(&self) -> u32 {
        self.shared.rkey
    }

    /// The address of the first byte in work requests.
    pub(crate) fn addr(&self) -> u64 {
        self.shared.addr
    }

    /// The memory.
    pub(crate) fn mem(&self) -> &Arc<RingMem> {
        &self.shared.mem
    }

    /// Makes what the device wrote visible to the CPU. Any context but hard interrupts.
    pub(crate) fn sync_for_cpu(&self, offset: u32, len: u32) {
        if self.shared.sync {
            self.qp.sync_for_cpu(&self.shared, offset, len);
        }
    }
}

impl<U: QpUser> Drop for Region<U> {
    fn drop(&mut self) {
        // Fully ordered, as is `release`: one of the two sees the other.
        self.shared.dead.xchg(true, Full);
        self.qp.kick();
    }
}
