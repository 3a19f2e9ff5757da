// SPDX-License-Identifier: GPL-2.0

//! Usable devices and their ports, and what happens to them.

use super::{
    link::LinkQp,
    path::Cache, //
};
use crate::ext::{
    global::Global,
    random,
    spinlock_bh::SpinLockBh,
    verbs::{
        self,
        Client,
        ClientOps,
        Dev,
        DevRef,
        Event, //
    },
    workqueue, //
};
use kernel::{
    impl_has_work,
    new_mutex,
    new_work,
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            Acquire,
            AtomicFlag,
            Release, //
        },
        Arc,
        ArcBorrow,
        Mutex, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// All devices, while the module is registered.
static REGISTRY: Global<Registry> = Global::new();

/// The registration with the RDMA core; dropping it shuts all links down and waits until their
/// devices are released. The module's work queue must be there before and after.
pub(crate) struct Ib {
    /// The registration itself; emptied by `drop`.
    client: Option<Client<Ops>>,
}

impl Ib {
    /// Registers with the RDMA core. May sleep.
    pub(crate) fn new() -> Result<Self> {
        REGISTRY.set(Arc::pin_init(Registry::new(), GFP_KERNEL)?)?;
        match Client::new(c"smc_rs") {
            Ok(client) => Ok(Self {
                client: Some(client),
            }),
            Err(e) => {
                REGISTRY.take();
                Err(e)
            }
        }
    }
}

impl Drop for Ib {
    fn drop(&mut self) {
        self.client = None;
        REGISTRY.take();
    }
}

/// This system's identity in CLC messages: two random bytes, then the MAC address of the first
/// active port ever seen, zeroes before there is one. Any context but hard interrupts.
pub(crate) fn system_id() -> [u8; 8] {
    registry().map_or([0; 8], |r| *r.system_id.lock())
}

/// The devices.
pub(super) fn registry() -> Option<Arc<Registry>> {
    REGISTRY.get()
}

/// What the layer knows as a whole.
#[pin_data]
pub(super) struct Registry {
    /// The devices that are there.
    #[pin]
    devices: Mutex<KVec<Arc<Device>>>,
    /// Paths found lately.
    #[pin]
    pub(super) cache: SpinLockBh<Cache>,
    /// See [`system_id`].
    #[pin]
    system_id: SpinLockBh<[u8; 8]>,
}

impl Registry {
    /// An empty registry.
    fn new() -> impl PinInit<Self> {
        let [a, b, ..] = random::word().to_ne_bytes();
        pin_init!(Self {
            devices <- new_mutex!(KVec::new(), "smc_rs Registry.devices"),
            cache <- SpinLockBh::new(
                Cache::new(),
                c"smc_rs Registry.cache",
                static_lock_class!()
            ),
            system_id <- SpinLockBh::new(
                [a, b, 0, 0, 0, 0, 0, 0],
                c"smc_rs Registry.system_id",
                static_lock_class!()
            ),
        })
    }

    /// Calls `look` for the devices until it returns something. May sleep.
    pub(super) fn find<T>(&self, look: impl FnMut(&Arc<Device>) -> Option<T>) -> Option<T> {
        self.devices.lock().iter().find_map(look)
    }

    /// The device for `dev`.
    fn device(&self, dev: &Dev) -> Option<Arc<Device>> {
        self.find(|d| core::ptr::eq::<Dev>(&*d.dev, dev).then(|| d.clone()))
    }

    /// Takes the system's identity from a port if it has none.
    fn offer_system_id(&self, mac: [u8; 6]) {
        let mut id = self.system_id.lock();
        if id[2..] == [0; 6] {
            id[2..].copy_from_slice(&mac);
        }
    }
}

/// A device with at least one RoCE port.
#[pin_data]
pub(super) struct Device {
    /// The device itself.
    pub(super) dev: Arc<Dev>,
    /// Its name, zero padded.
    pub(super) name: [u8; 64],
    /// Its ports as last seen; `None` are no RoCE ports.
    #[pin]
    ports: SpinLockBh<KVec<Option<verbs::Port>>>,
    /// Queue pairs on it.
    #[pin]
    links: Mutex<KVec<Arc<LinkQp>>>,
    /// It is broken: all links have to go.
    fatal: AtomicFlag,
    /// Looks at ports and GIDs after an event.
    #[pin]
    work: Work<Device>,
}

impl_has_work! {
    impl HasWork<Self> for Device { self.work }
}

impl Device {
    /// Makes one; an error if it is of no use.
    fn new(dev: &Arc<Dev>) -> Result<Arc<Self>> {
        let hold = dev.get().ok_or(ENODEV)?;
        let ports = Self::query(&hold)?;
        if ports.iter().all(Option::is_none) {
            return Err(EOPNOTSUPP);
        }
        let name = hold.name();
        let init = pin_init!(Self {
            dev: dev.clone(),
            name,
            ports <- SpinLockBh::new(ports, c"smc_rs Device.ports", static_lock_class!()),
            links <- new_mutex!(KVec::new(), "smc_rs Device.links"),
            fatal: AtomicFlag::new(false),
            work <- new_work!("smc_rs Device.work"),
        });
        Arc::pin_init(init, GFP_KERNEL)
    }

    /// Asks about all ports.
    fn query(dev: &DevRef) -> Result<KVec<Option<verbs::Port>>> {
        let mut ports = KVec::new();
        for port in 1..=dev.ports() {
            let info = dev.is_roce(port).then(|| dev.query_port(port));
            ports.push(info.and_then(Result::ok), GFP_KERNEL)?;
        }
        Ok(ports)
    }

    /// What was last seen of a port. Any context but hard interrupts.
    pub(super) fn port(&self, port: u32) -> Option<verbs::Port> {
        let index = usize::try_from(port.checked_sub(1)?).ok()?;
        self.ports.lock().get(index).copied().flatten()
    }

    /// Number of ports.
    pub(super) fn port_count(&self) -> u32 {
        u32::try_from(self.ports.lock().len()).unwrap_or(0)
    }

    /// Adds a queue pair; it is shut down at once if the device is going away. May sleep.
    pub(super) fn add_link(&self, qp: &Arc<LinkQp>) -> Result {
        self.links.lock().push(qp.clone(), GFP_KERNEL)?;
        if self.dev.is_closed() || self.fatal.load(Acquire) {
            qp.fail();
            return Err(ENODEV);
        }
        Ok(())
    }

    /// Forgets a queue pair. May sleep.
    pub(super) fn remove_link(&self, qpn: u32) {
        let mut gone = None;
        let mut links = self.links.lock();
        if let Some(i) = links.iter().position(|l| l.qpn() == qpn) {
            gone = links.remove(i).ok();
        }
        drop(links);
        drop(gone);
    }

    /// Breaks the links for which `dead` is true. May sleep.
    fn fail_links(&self, mut dead: impl FnMut(&LinkQp) -> bool) {
        for link in self.links.lock().iter() {
            if dead(link) {
                link.fail();
            }
        }
    }

    /// Looks at ports and GIDs again.
    fn refresh(&self) {
        let Some(hold) = self.dev.get() else {
            return;
        };
        if let Ok(mut ports) = Self::query(&hold) {
            core::mem::swap(&mut *self.ports.lock(), &mut ports);
        }
        if let Some(registry) = registry() {
            registry.cache.lock().clear();
            self.offer_id(&registry, &hold);
        }
        let fatal = self.fatal.load(Acquire);
        self.fail_links(|link| {
            let path = link.user().path();
            fatal
                || self.port(path.port).is_none_or(|p| !p.active)
                || hold
                    .gid(path.port, path.index)
                    .is_none_or(|g| g.gid() != path.gid)
        });
    }

    /// Offers the MAC address of an active port as the system's identity.
    fn offer_id(&self, registry: &Registry, hold: &DevRef) {
        for port in 1..=self.port_count() {
            if self.port(port).is_some_and(|p| p.active) {
                if let Some((_, mac)) = hold.gid(port, 0).and_then(|g| g.l2().ok()) {
                    registry.offer_system_id(mac);
                }
            }
        }
    }
}

impl WorkItem for Device {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.refresh();
    }
}

/// The layer as client of the RDMA core.
struct Ops;

impl ClientOps for Ops {
    fn add(dev: &Arc<Dev>) -> Result {
        let registry = registry().ok_or(ENODEV)?;
        let device = Device::new(dev)?;
        if let Some(hold) = dev.get() {
            device.offer_id(&registry, &hold);
        }
        registry.devices.lock().push(device, GFP_KERNEL)?;
        registry.cache.lock().clear();
        Ok(())
    }

    fn event(dev: ArcBorrow<'_, Dev>, event: Event) {
        let Some(registry) = registry() else {
            return;
        };
        registry.cache.lock().clear();
        let Some(device) = registry.device(&dev) else {
            return;
        };
        if event == Event::Fatal {
            device.fatal.store(true, Release);
        }
        // If it is queued already it has yet to look.
        let _ = workqueue::queue().enqueue(device);
    }

    fn remove(dev: &Arc<Dev>) {
        let Some(registry) = registry() else {
            return;
        };
        let Some(device) = registry.device(dev) else {
            return;
        };
        let mut devices = registry.devices.lock();
        devices.retain(|d| !Arc::ptr_eq(d, &device));
        drop(devices);
        registry.cache.lock().clear();
        device.fail_links(|_| true);
    }
}
