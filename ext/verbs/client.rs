// SPDX-License-Identifier: GPL-2.0

//! Devices coming and going.

use crate::ext::{
    abi::bindings,
    net::NetPtr,
    spinlock_bh::SpinLockBh, //
};
use core::{
    marker::PhantomData,
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    error::{
        from_result,
        to_result, //
    },
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full, //
        },
        Arc,
        ArcBorrow,
        Completion, //
    },
    types::Opaque, //
};

/// Something happened to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It is broken.
    Fatal,
    /// A port's state or GID table changed.
    Changed,
}

/// What a client does about devices. Called in process context.
pub(crate) trait ClientOps: 'static {
    /// A device appeared; an error means that it is not wanted.
    fn add(dev: &Arc<Dev>) -> Result;
    /// Something happened to a device that was added. Must not wait for it to go away.
    fn event(dev: ArcBorrow<'_, Dev>, event: Event);
    /// A device goes away: no new [`DevRef`] can be had, those that exist must go soon. The
    /// device is released once the last has gone.
    fn remove(dev: &Arc<Dev>);
}

/// The registered client, which the `add` callback is not told.
static CLIENT: Atomic<*mut bindings::ib_client> = Atomic::new(ptr::null_mut());

/// A registration as client of the RDMA core. There can be one.
pub(crate) struct Client<T: ClientOps> {
    /// The C side of it.
    raw: Pin<KBox<Opaque<bindings::ib_client>>>,
    /// Whose callbacks are called.
    _ops: PhantomData<T>,
}

// SAFETY: The registration is not tied to a thread.
unsafe impl<T: ClientOps> Send for Client<T> {}
// SAFETY: It has no methods.
unsafe impl<T: ClientOps> Sync for Client<T> {}

impl<T: ClientOps> Client<T> {
    /// Registers; [`ClientOps::add`] is called for each device before this returns. May sleep.
    pub(crate) fn new(name: &'static CStr) -> Result<Self> {
        let raw = KBox::pin(
            Opaque::new(bindings::ib_client {
                name: name.as_char_ptr(),
                add: Some(Self::add),
                remove: Some(Self::remove),
                ..pin_init::zeroed()
            }),
            GFP_KERNEL,
        )?;
        CLIENT
            .cmpxchg(ptr::null_mut(), raw.get(), Full)
            .map_err(|_| EBUSY)?;
        // SAFETY: The client is pinned and outlives its registration.
        let done = to_result(unsafe { bindings::ib_register_client(raw.get()) });
        if done.is_err() {
            CLIENT.xchg(ptr::null_mut(), Full);
        }
        done?;
        Ok(Self {
            raw,
            _ops: PhantomData,
        })
    }

    /// The core's `add` callback.
    ///
    /// # Safety
    ///
    /// `ibdev` must be a device that stays valid until `remove` has been called for it.
    unsafe extern "C" fn add(ibdev: *mut bindings::ib_device) -> c_int {
        from_result(|| {
            let raw = NonNull::new(ibdev).ok_or(EINVAL)?;
            // SAFETY: The device is valid during the callback.
            if !unsafe { bindings::smc_rs_is_ib_ca(ibdev) } {
                return Err(EOPNOTSUPP);
            }
            let dev = Arc::pin_init(Dev::new(raw, Self::event), GFP_KERNEL)?;
            T::add(&dev)?;
            // SAFETY: The device is valid; the handler is pinned and unregistered by `remove`,
            // which gives up the reference stored here.
            unsafe {
                bindings::ib_register_event_handler(dev.handler.get());
                bindings::ib_set_client_data(
                    ibdev,
                    CLIENT.load(Acquire),
                    Arc::into_raw(dev).cast_mut().cast(),
                );
            }
            Ok(0)
        })
    }

    /// The core's `remove` callback, called if `add` succeeded.
    ///
    /// # Safety
    ///
    /// `data` must be what `add` stored, and this be the only call with it.
    unsafe extern "C" fn remove(_ibdev: *mut bindings::ib_device, data: *mut c_void) {
        // SAFETY: `data` is the reference that `add` stored; this is its only taker.
        let dev = unsafe { Arc::from_raw(data.cast::<Dev>()) };
        // SAFETY: The handler was registered by `add`. Afterwards it does not run any more.
        unsafe { bindings::ib_unregister_event_handler(dev.handler.get()) };
        dev.close();
        T::remove(&dev);
        dev.idle.wait_for_completion();
    }

    /// The event callback.
    ///
    /// # Safety
    ///
    /// `handler` must be the handler of a [`Dev`] in an [`Arc`], registered by `add`; `event` must
    /// be valid.
    unsafe extern "C" fn event(
        handler: *mut bindings::ib_event_handler,
        event: *mut bindings::ib_event,
    ) {
        // SAFETY: The core passes a valid event.
        let event = match unsafe { (*event).event } {
            bindings::ib_event_type_IB_EVENT_DEVICE_FATAL => Event::Fatal,
            bindings::ib_event_type_IB_EVENT_PORT_ACTIVE
            | bindings::ib_event_type_IB_EVENT_PORT_ERR
            | bindings::ib_event_type_IB_EVENT_LID_CHANGE
            | bindings::ib_event_type_IB_EVENT_GID_CHANGE => Event::Changed,
            _ => return,
        };
        // SAFETY: The handler is the field of a `Dev`, which `Opaque` does not move.
        let dev = unsafe { kernel::container_of!(Opaque::cast_from(handler), Dev, handler) };
        // SAFETY: That `Dev` is in an `Arc` of which `remove` drops a reference only after it has
        // unregistered the handler.
        T::event(unsafe { ArcBorrow::from_raw(dev) }, event);
    }
}

impl<T: ClientOps> Drop for Client<T> {
    fn drop(&mut self) {
        // SAFETY: The client is registered. All devices are removed before this returns.
        unsafe { bindings::ib_unregister_client(self.raw.get()) };
        CLIENT.xchg(ptr::null_mut(), Full);
    }
}

/// Counts the users of a device.
struct Gate {
    /// Number of [`DevRef`]s.
    users: usize,
    /// No more are given out.
    closed: bool,
}

/// A device that was announced. What can be done with it needs a [`DevRef`].
///
/// # Invariants
///
/// `raw` is valid while the gate is open or has users.
#[pin_data]
pub(crate) struct Dev {
    /// The device.
    raw: NonNull<bindings::ib_device>,
    /// Who uses it.
    #[pin]
    gate: SpinLockBh<Gate>,
    /// Completed when the gate is closed and nobody is inside.
    #[pin]
    idle: Completion,
    /// The event handler.
    #[pin]
    handler: Opaque<bindings::ib_event_handler>,
}

// SAFETY: Devices are used from any thread; the other fields are thread safe.
unsafe impl Send for Dev {}
// SAFETY: As above.
unsafe impl Sync for Dev {}

impl Dev {
    /// A new device with an open gate.
    fn new(
        raw: NonNull<bindings::ib_device>,
        event: unsafe extern "C" fn(*mut bindings::ib_event_handler, *mut bindings::ib_event),
    ) -> impl PinInit<Self> {
        // INVARIANT: The core calls `remove`, which closes the gate and waits, before the device
        // goes.
        pin_init!(Self {
            raw,
            gate <- SpinLockBh::new(
                Gate { users: 0, closed: false },
                c"smc_rs Dev.gate",
                static_lock_class!()
            ),
            idle <- Completion::new(),
            handler: Opaque::new(bindings::ib_event_handler {
                device: raw.as_ptr(),
                handler: Some(event),
                ..pin_init::zeroed()
            }),
        })
    }

    /// Keeps the device from going away; `None` if it is about to. Any context but hard
    /// interrupts.
    pub(crate) fn get(self: &Arc<Self>) -> Option<DevRef> {
        let mut gate = self.gate.lock();
        if gate.closed {
            return None;
        }
        gate.users += 1;
        drop(gate);
        Some(DevRef(self.clone()))
    }

    /// Whether it is going away.
    pub(crate) fn is_closed(&self) -> bool {
        self.gate.lock().closed
    }

    /// Gives out no more references.
    fn close(&self) {
        let mut gate = self.gate.lock();
        gate.closed = true;
        if gate.users == 0 {
            self.idle.complete_all();
        }
    }
}

/// A reference that keeps a device registered.
///
/// # Invariants
///
/// It is counted in the gate.
pub(crate) struct DevRef(Arc<Dev>);

impl Drop for DevRef {
    fn drop(&mut self) {
        let mut gate = self.0.gate.lock();
        gate.users -= 1;
        if gate.closed && gate.users == 0 {
            self.0.idle.complete_all();
        }
    }
}

impl Deref for DevRef {
    type Target = Arc<Dev>;

    fn deref(&self) -> &Arc<Dev> {
        &self.0
    }
}

/// A port's properties.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    /// Whether it can carry data.
    pub(crate) active: bool,
    /// Its MTU (`enum ib_mtu`).
    pub(crate) mtu: u8,
    /// Entries of the GID table.
    pub(crate) gids: u32,
}

impl DevRef {
    /// The raw device.
    pub(super) fn as_raw(&self) -> *mut bindings::ib_device {
        self.0.raw.as_ptr()
    }

    /// The device's attributes.
    pub(super) fn attrs(&self) -> &bindings::ib_device_attr {
        // SAFETY: The device is valid by the type invariants; attributes do not change.
        unsafe { &(*self.as_raw()).attrs }
    }

    /// Number of ports; they are numbered from 1.
    pub(crate) fn ports(&self) -> u32 {
        // SAFETY: As in `attrs`.
        unsafe { (*self.as_raw()).phys_port_cnt }
    }

    /// The device's name, zero padded.
    pub(crate) fn name(&self) -> [u8; 64] {
        // SAFETY: The device is valid; a rename in between mixes two names.
        unsafe { (*self.as_raw()).name.map(|c| c.to_ne_bytes()[0]) }
    }

    /// Whether the port speaks RoCE.
    pub(crate) fn is_roce(&self, port: u32) -> bool {
        // SAFETY: The device is valid, the port exists.
        self.has_port(port) && unsafe { bindings::smc_rs_is_roce(self.as_raw(), port) }
    }

    /// Whether there is such a port.
    pub(super) fn has_port(&self, port: u32) -> bool {
        port >= 1 && port <= self.ports()
    }

    /// Asks the driver about a port. May sleep.
    pub(crate) fn query_port(&self, port: u32) -> Result<Port> {
        let mut attr: bindings::ib_port_attr = pin_init::zeroed();
        // SAFETY: The device is valid; the core checks the port and fills `attr`.
        to_result(unsafe { bindings::ib_query_port(self.as_raw(), port, &mut attr) })?;
        Ok(Port {
            active: attr.state == bindings::ib_port_state_IB_PORT_ACTIVE,
            mtu: u8::try_from(attr.active_mtu).unwrap_or(1),
            gids: u32::try_from(attr.gid_tbl_len).unwrap_or(0),
        })
    }

    /// Whether sockets of `net` may use the device. Any context.
    pub(crate) fn usable_from(&self, net: NetPtr<'_>) -> bool {
        // SAFETY: Both are valid.
        unsafe { bindings::rdma_dev_access_netns(self.as_raw(), net.as_raw()) }
    }
}
