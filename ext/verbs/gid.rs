// SPDX-License-Identifier: GPL-2.0

//! Entries of a port's GID table.

use super::client::DevRef;
use crate::ext::{
    abi::bindings,
    net::NetPtr,
    route::be32, //
};
use core::{
    marker::PhantomData,
    net::Ipv4Addr,
    ptr::NonNull, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};

/// The RoCEv2 GID of an IPv4 address.
pub(crate) fn mapped(addr: Ipv4Addr) -> [u8; 16] {
    addr.to_ipv6_mapped().octets()
}

/// A counted reference to an entry of the GID table: its index is not used for another GID.
///
/// # Invariants
///
/// Owns a reference to the entry, whose device stays for `'a`.
pub(crate) struct GidAttr<'a>(NonNull<bindings::ib_gid_attr>, PhantomData<&'a DevRef>);

/// How a GID is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// Through a gateway or neighbour with this MAC address.
    Known {
        /// The address.
        mac: [u8; 6],
        /// Whether it is a gateway's.
        gateway: bool,
    },
    /// Through a gateway or neighbour that is being looked for.
    Unknown {
        /// Whether it is a gateway.
        gateway: bool,
    },
    /// It is on this host.
    Local,
}

impl Drop for GidAttr<'_> {
    fn drop(&mut self) {
        // SAFETY: We own a reference by the type invariants.
        unsafe { bindings::rdma_put_gid_attr(self.0.as_ptr()) }
    }
}

impl DevRef {
    /// The entry `index` of the port's table, if it is in use. Any context.
    pub(crate) fn gid(&self, port: u32, index: u32) -> Option<GidAttr<'_>> {
        let index = c_int::try_from(index).ok()?;
        // SAFETY: The device is valid; the core checks port and index.
        let attr = unsafe { bindings::rdma_get_gid_attr(self.as_raw(), port, index) };
        let attr = kernel::error::from_err_ptr(attr.cast_mut()).ok()?;
        // INVARIANT: The core returned a reference.
        Some(GidAttr(NonNull::new(attr)?, PhantomData))
    }

    /// The RoCEv2 entry for an address on interface `ifindex` of `net`. Any context.
    pub(crate) fn find_gid(
        &self,
        port: u32,
        net: NetPtr<'_>,
        ifindex: u32,
        addr: Ipv4Addr,
    ) -> Option<GidAttr<'_>> {
        if !self.has_port(port) {
            return None;
        }
        let ifindex = c_int::try_from(ifindex).ok()?;
        let gid = bindings::ib_gid { raw: mapped(addr) };
        // SAFETY: Device, port and namespace are valid.
        let attr =
            unsafe { bindings::smc_rs_find_gid(self.as_raw(), port, net.as_raw(), ifindex, &gid) };
        // INVARIANT: The helper returned a reference, or null.
        Some(GidAttr(NonNull::new(attr.cast_mut())?, PhantomData))
    }
}

impl GidAttr<'_> {
    /// The raw entry.
    pub(super) fn as_raw(&self) -> *const bindings::ib_gid_attr {
        self.0.as_ptr()
    }

    /// The GID.
    pub(crate) fn gid(&self) -> [u8; 16] {
        // SAFETY: The entry is valid; `raw` covers the whole union.
        unsafe { (*self.as_raw()).gid.raw }
    }

    /// The GID's IPv4 address.
    pub(crate) fn ipv4(&self) -> Option<Ipv4Addr> {
        core::net::Ipv6Addr::from(self.gid()).to_ipv4_mapped()
    }

    /// The entry's index.
    pub(crate) fn index(&self) -> u32 {
        // SAFETY: The entry is valid.
        unsafe { (*self.as_raw()).index }.into()
    }

    /// Whether packets with this GID are RoCEv2.
    pub(crate) fn is_v2(&self) -> bool {
        // SAFETY: The entry is valid.
        unsafe { (*self.as_raw()).gid_type == bindings::ib_gid_type_IB_GID_TYPE_ROCE_UDP_ENCAP }
    }

    /// Whether it belongs to interface `ifindex` of `net` and a subnet of that has `addr` in it.
    pub(crate) fn serves(&self, net: NetPtr<'_>, ifindex: u32, addr: Ipv4Addr) -> bool {
        let Ok(ifindex) = c_int::try_from(ifindex) else {
            return false;
        };
        // SAFETY: Entry and namespace are valid.
        unsafe { bindings::smc_rs_gid_on_netdev(self.as_raw(), net.as_raw(), ifindex, be32(addr)) }
    }

    /// VLAN and MAC address of the GID's interface.
    pub(crate) fn l2(&self) -> Result<(Option<u16>, [u8; 6])> {
        let (mut vlan, mut mac) = (u16::MAX, [0u8; 6]);
        // SAFETY: The entry is valid, `mac` has the size of an Ethernet address.
        to_result(unsafe {
            bindings::rdma_read_gid_l2_fields(self.as_raw(), &mut vlan, mac.as_mut_ptr())
        })?;
        Ok(((vlan < 4096).then_some(vlan), mac))
    }

    /// The next hop from this GID to another. Any context but hard interrupts.
    pub(crate) fn next_hop(&self, peer: Ipv4Addr) -> Result<Hop> {
        let (mut mac, mut gateway) = ([0u8; 6], false);
        let local = self.ipv4().ok_or(EINVAL)?;
        // SAFETY: The entry is valid, `mac` has the size of an Ethernet address.
        let ret = unsafe {
            bindings::smc_rs_next_hop(
                self.as_raw(),
                be32(local),
                be32(peer),
                mac.as_mut_ptr(),
                &mut gateway,
            )
        };
        match to_result(ret) {
            Ok(()) if ret > 0 => Ok(Hop::Local),
            Ok(()) => Ok(Hop::Known { mac, gateway }),
            Err(e) if e == EAGAIN => Ok(Hop::Unknown { gateway }),
            Err(e) => Err(e),
        }
    }
}
