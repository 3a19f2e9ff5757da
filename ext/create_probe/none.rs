// SPDX-License-Identifier: GPL-2.0

//! No probe: user-mode Linux and some other kernels lack kretprobes.

use super::Policy;
use kernel::prelude::*;

/// An armed probe; there is none.
pub(crate) enum CreateProbe {}

impl CreateProbe {
    /// Refuses with `EOPNOTSUPP`.
    pub(crate) fn arm<P: Policy>() -> Result<Self> {
        let _ = P::wanted;
        Err(EOPNOTSUPP)
    }
}
