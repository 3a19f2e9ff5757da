// SPDX-License-Identifier: GPL-2.0

//! What the two sides agree upon in PROPOSAL, ACCEPT and CONFIRM (SMC-Rv2.1).

use crate::proto::{
    reason::Reason,
    wire::{
        clc_accept::Accept,
        clc_proposal::{
            Proposal,
            RELEASE, //
        },
    },
};

/// The fewest connections in a link group that either side may ask for.
const MIN_CONNS: u8 = 16;
/// The most links in a link group that a server may ask for.
const MAX_LINKS: u8 = 2;

/// What one side wants at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Connections in a link group.
    pub(crate) max_conns: u8,
    /// Links in a link group.
    pub(crate) max_links: u8,
}

/// What holds for a new link group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Release of SMC-Rv2: 0 or 1.
    pub(crate) release: u8,
    /// The most connections.
    pub(crate) max_conns: u8,
    /// The most links.
    pub(crate) max_links: u8,
}

impl Terms {
    /// What holds with a peer of release 0, which can't tell.
    const RELEASE_0: Self = Self {
        release: 0,
        max_conns: 255,
        max_links: 2,
    };

    /// The server's decision about what the client proposes.
    pub(crate) fn decide(proposal: &Proposal, own: Limits) -> Result<Self, Reason> {
        if proposal.release == 0 {
            return Ok(Self::RELEASE_0);
        }
        let terms = Self {
            release: proposal.release.min(RELEASE),
            max_conns: proposal.max_conns.min(own.max_conns),
            max_links: proposal.max_links.min(own.max_links),
        };
        if terms.max_conns < MIN_CONNS {
            return Err(Reason::MAXCONNERR);
        }
        if terms.max_links < 1 {
            return Err(Reason::MAXLINKERR);
        }
        Ok(terms)
    }

    /// The client's look at what the server decided; `None` if it is no first contact.
    pub(crate) fn accepted(accept: &Accept) -> Result<Option<Self>, Reason> {
        let Some(fce) = &accept.fce else {
            return Ok(None);
        };
        if fce.release == 0 {
            return Ok(Some(Self::RELEASE_0));
        }
        if fce.release > RELEASE {
            return Err(Reason::RELEASEERR);
        }
        if fce.max_conns < MIN_CONNS {
            return Err(Reason::MAXCONNERR);
        }
        if fce.max_links < 1 || fce.max_links > MAX_LINKS {
            return Err(Reason::MAXLINKERR);
        }
        Ok(Some(Self {
            release: fce.release,
            max_conns: fce.max_conns,
            max_links: fce.max_links,
        }))
    }

    /// The server's check that CONFIRM says what ACCEPT said.
    pub(super) fn check_echo(accept: &Accept, confirm: &Accept) -> Result<(), Reason> {
        let Some(ours) = &accept.fce else {
            return Ok(());
        };
        let Some(theirs) = &confirm.fce else {
            return Err(Reason::RELEASEERR);
        };
        if theirs.release != ours.release {
            return Err(Reason::RELEASEERR);
        }
        if ours.release == 0 {
            return Ok(());
        }
        if theirs.max_conns != ours.max_conns {
            return Err(Reason::MAXCONNERR);
        }
        if theirs.max_links != ours.max_links {
            return Err(Reason::MAXLINKERR);
        }
        Ok(())
    }
}

/// Whether the server can use a proposal at all: SMC-Rv2 with an EID.
pub(super) fn usable(proposal: &Proposal) -> Result<(), Reason> {
    if !proposal.v1.any() && !proposal.v2.any() {
        return Err(Reason::PEERNOSMC);
    }
    if !proposal.v2.any() {
        return Err(Reason::VERSMISMAT);
    }
    if !proposal.v2.has_r() {
        return Err(Reason::NOSMCDDEV);
    }
    if proposal.eids.is_empty() {
        return Err(Reason::NOUEID);
    }
    Ok(())
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_clc_negotiate))]
mod tests {
    use super::{
        super::samples::*,
        *, //
    };

    #[test]
    fn the_server_takes_the_minimum() {
        let own = |max_conns, max_links| Limits {
            max_conns,
            max_links,
        };
        let mut p = proposal();
        p.release = 7;
        let terms = Terms::decide(&p, own(255, 2));
        assert_eq!(
            terms,
            Ok(Terms {
                release: 1,
                max_conns: 32,
                max_links: 1
            })
        );
        assert_eq!(Terms::decide(&p, own(16, 1)).map(|t| t.max_conns), Ok(16));
        assert_eq!(Terms::decide(&p, own(15, 1)), Err(Reason::MAXCONNERR));
        assert_eq!(Terms::decide(&p, own(16, 0)), Err(Reason::MAXLINKERR));
        p.max_links = 0;
        assert_eq!(Terms::decide(&p, own(16, 1)), Err(Reason::MAXLINKERR));
        p.max_conns = 15;
        assert_eq!(Terms::decide(&p, own(16, 1)), Err(Reason::MAXCONNERR));
        p.release = 0;
        assert_eq!(Terms::decide(&p, own(16, 1)), Ok(Terms::RELEASE_0));
    }

    #[test]
    fn the_client_takes_what_the_server_says() {
        let terms = Terms {
            release: 1,
            max_conns: 32,
            max_links: 1,
        };
        assert_eq!(Terms::accepted(&accept(true)), Ok(Some(terms)));
        assert_eq!(Terms::accepted(&accept(false)), Ok(None));
    }
}
