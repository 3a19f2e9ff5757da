// SPDX-License-Identifier: GPL-2.0

//! Per-namespace settings and counters, and transparent replacement of TCP.

mod eids;
mod replace;
mod stats;

pub(crate) use self::eids::eids;

use crate::{
    ext::{
        net::NetPtr,
        netns::{
            self,
            Counter,
            NetSlot,
            PerNet,
            Registration,
            Setting, //
        },
        static_mutex::StaticMutex,
        sysctl::{
            Entry,
            Kind,
            NetTable, //
        }, //
    },
    lgr,
    netlink, //
};
use kernel::{
    prelude::*,
    static_lock_class,
    sync::atomic::Relaxed, //
};
use pin_init::Zeroable;

/// Default bytes of a send and a receive buffer.
const DEFAULT_MEM: i32 = 65_536;
/// Default limit of autocorking, bytes.
const DEFAULT_AUTOCORK: i32 = 65_536;
/// Default period of TEST LINK, seconds.
const DEFAULT_TEST_LINK: i32 = 30;

static MEM_MIN: i32 = 16_384;
static MEM_MAX: i32 = i32::MAX / 2;
static ZERO: i32 = 0;
static INT_MAX: i32 = i32::MAX;

/// What the module keeps per namespace.
#[derive(Zeroable)]
#[repr(C)]
pub(crate) struct NetState {
    tcp2smc: Setting,
    wmem: Setting,
    rmem: Setting,
    autocork: Setting,
    test_link: Setting,
    smc_client: Counter,
    smc_server: Counter,
    fallback_client: Counter,
    fallback_server: Counter,
    fallback: [Counter; stats::REASONS.len() + 1],
}

/// The sysctl tables of all namespaces; their values lie in [`NetState`].
static TABLES: StaticMutex<KVec<(u64, NetTable)>> =
    StaticMutex::new(KVec::new(), c"smc_rs_sysctl_tables", static_lock_class!());

/// The state of `net`.
pub(crate) fn state(net: NetPtr<'_>) -> &NetState {
    netns::state(net)
}

/// A setting that is never negative.
fn unsigned(s: &Setting) -> u32 {
    u32::try_from(s.load(Relaxed)).unwrap_or(0)
}

impl NetState {
    /// Bytes of a send buffer.
    pub(crate) fn wmem(&self) -> u32 {
        unsigned(&self.wmem)
    }

    /// Bytes of a receive buffer.
    pub(crate) fn rmem(&self) -> u32 {
        unsigned(&self.rmem)
    }

    /// Bytes up to which small sends are held back; 0: never.
    pub(crate) fn autocork(&self) -> u32 {
        unsigned(&self.autocork)
    }

    /// Period of TEST LINK in milliseconds; 0: never.
    pub(crate) fn test_link_ms(&self) -> u64 {
        u64::from(unsigned(&self.test_link)).saturating_mul(1000)
    }

    fn entries(&self) -> [Entry<'_>; 5] {
        let range = |name, value, min, max| Entry {
            name,
            value,
            kind: Kind::Range(min, max),
        };
        [
            Entry {
                name: c"tcp2smc",
                value: &self.tcp2smc,
                kind: Kind::Switch(replace::switch),
            },
            range(c"wmem", &self.wmem, &MEM_MIN, &MEM_MAX),
            range(c"rmem", &self.rmem, &MEM_MIN, &MEM_MAX),
            range(c"autocorking_size", &self.autocork, &ZERO, &INT_MAX),
            range(c"smcr_testlink_time", &self.test_link, &ZERO, &INT_MAX),
        ]
    }
}

/// Where the kernel's id of [`NetState`] is kept.
static SLOT: NetSlot<NetState> = NetSlot::new();
/// A state without a namespace: nothing is on, nothing can be made.
static NONE: NetState = pin_init::zeroed();

impl PerNet for NetState {
    fn slot() -> &'static NetSlot<Self> {
        &SLOT
    }

    fn unregistered() -> &'static Self {
        &NONE
    }

    fn init(&self, net: NetPtr<'_>) -> Result {
        self.wmem.store(DEFAULT_MEM, Relaxed);
        self.rmem.store(DEFAULT_MEM, Relaxed);
        self.autocork.store(DEFAULT_AUTOCORK, Relaxed);
        self.test_link.store(DEFAULT_TEST_LINK, Relaxed);
        let table = NetTable::register(net, c"net/smc", &self.entries())?;
        TABLES.lock().push((net.cookie(), table), GFP_KERNEL)?;
        netlink::net_init(net).inspect_err(|_| drop(take_table(net.cookie())))
    }

    fn pre_exit(&self, net: NetPtr<'_>) {
        lgr::net_exit(net.id());
    }

    fn exit(&self, net: NetPtr<'_>) {
        netlink::net_exit(net);
        // The files first: nobody can turn the switch on again.
        drop(take_table(net.cookie()));
        if self.tcp2smc.xchg(0, kernel::sync::atomic::Full) != 0 {
            // Turning off cannot fail.
            let _ = replace::switch(false);
        }
    }
}

/// Takes the table of a namespace out of the list.
fn take_table(net: u64) -> Option<NetTable> {
    let mut tables = TABLES.lock();
    let at = tables.iter().position(|(id, _)| *id == net)?;
    tables.remove(at).ok().map(|(_, table)| table)
}

/// Registers the state for all namespaces. Dropped: everything goes away. May sleep.
pub(crate) struct Namespaces(
    #[expect(dead_code, reason = "kept for its drop")] Registration<NetState>,
);

impl Namespaces {
    /// Reads the module parameters and registers.
    pub(crate) fn register() -> Result<Self> {
        eids::init()?;
        Ok(Self(Registration::register()?))
    }
}

/// Frees what the list of tables holds; module exit, after all namespaces' states are gone.
pub(crate) fn exit() {
    *TABLES.lock() = KVec::new();
    eids::exit();
}
