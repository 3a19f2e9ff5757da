// SPDX-License-Identifier: GPL-2.0

//! A probe on TCP's own socket creation, for transparent replacement.

use super::net::NetPtr;

#[cfg(CONFIG_KRETPROBES)]
mod kretprobe;
#[cfg(not(CONFIG_KRETPROBES))]
mod none;

#[cfg(CONFIG_KRETPROBES)]
pub(crate) use kretprobe::CreateProbe;
#[cfg(not(CONFIG_KRETPROBES))]
pub(crate) use none::CreateProbe;

/// Decides which new TCP sockets become ours; called with preemption off.
pub(crate) trait Policy: 'static {
    /// Whether a user's new TCP socket in `net` is wanted.
    fn wanted(net: NetPtr<'_>) -> bool;
}
