// SPDX-License-Identifier: GPL-2.0

//! Counters of a namespace: connections by kind, fall-backs by reason.

use super::NetState;
use crate::proto::reason::Reason;

/// The reasons that have a counter of their own.
pub(super) const REASONS: [Reason; 35] = [
    Reason::MEM,
    Reason::TIMEOUT_CL,
    Reason::TIMEOUT_AL,
    Reason::CNFERR,
    Reason::PEERNOSMC,
    Reason::IPSEC,
    Reason::NOSMCDEV,
    Reason::NOSMCDDEV,
    Reason::NOSMCRDEV,
    Reason::NOISM2SUPP,
    Reason::NOV2EXT,
    Reason::NOV2DEXT,
    Reason::NOSEID,
    Reason::NOSMCD2DEV,
    Reason::NOUEID,
    Reason::RELEASEERR,
    Reason::MAXCONNERR,
    Reason::MAXLINKERR,
    Reason::MODEUNSUPP,
    Reason::RMBE_EC,
    Reason::OPTUNSUPP,
    Reason::DIFFPREFIX,
    Reason::GETVLANERR,
    Reason::ISMVLANERR,
    Reason::NOACTLINK,
    Reason::NOSRVLINK,
    Reason::MAX_DMB,
    Reason::NOROUTE,
    Reason::NOINDIRECT,
    Reason::SYNCERR,
    Reason::PEERDECL,
    Reason::INTERR,
    Reason::ERR_RTOK,
    Reason::ERR_RDYLNK,
    Reason::ERR_REGBUF,
];

impl NetState {
    /// An SMC connection was made; any context.
    pub(crate) fn count_smc(&self, server: bool) {
        if server {
            self.smc_server.inc();
        } else {
            self.smc_client.inc();
        }
    }

    /// A socket fell back; any context.
    pub(crate) fn count_fallback(&self, reason: Reason, server: bool) {
        if server {
            self.fallback_server.inc();
        } else {
            self.fallback_client.inc();
        }
        let at = REASONS.iter().position(|r| *r == reason);
        if let Some(counter) = self.fallback.get(at.unwrap_or(REASONS.len())) {
            counter.inc();
        }
    }

    /// SMC connections made: as client, as server.
    pub(crate) fn smc_counts(&self) -> (i64, i64) {
        (self.smc_client.get(), self.smc_server.get())
    }

    /// Fall-backs: as client, as server.
    pub(crate) fn fallback_counts(&self) -> (i64, i64) {
        (self.fallback_client.get(), self.fallback_server.get())
    }

    /// Fall-backs by reason; `None`: any other.
    pub(crate) fn fallback_by_reason(&self) -> impl Iterator<Item = (Option<Reason>, i64)> + '_ {
        self.fallback
            .iter()
            .enumerate()
            .map(|(i, c)| (REASONS.get(i).copied(), c.get()))
    }
}
