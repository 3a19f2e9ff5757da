// SPDX-License-Identifier: GPL-2.0

//! Diagnosis codes: why a connection is not an SMC connection.

/// A diagnosis code as DECLINE carries it and as `smcss` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason(pub(crate) u32);

/// Defines the named codes and their texts in one table.
macro_rules! reasons {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        impl Reason {
            $(#[doc = $text] pub(crate) const $name: Self = Self($code);)*

            /// What the code means, for people.
            pub(crate) fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                    _ => "unknown reason",
                }
            }
        }
    };
}

reasons! {
    NONE = 0, "no reason";
    MEM = 0x0101_0000, "insufficient memory resources";
    TIMEOUT_CL = 0x0201_0000, "timeout w4 QP confirm link";
    TIMEOUT_AL = 0x0202_0000, "timeout w4 QP add link";
    CNFERR = 0x0300_0000, "configuration error";
    PEERNOSMC = 0x0301_0000, "peer did not indicate SMC";
    IPSEC = 0x0302_0000, "IPsec usage";
    NOSMCDEV = 0x0303_0000, "no SMC device found (R or D)";
    NOSMCDDEV = 0x0303_0001, "no SMC-D device found";
    NOSMCRDEV = 0x0303_0002, "no SMC-R device found";
    NOISM2SUPP = 0x0303_0003, "hardware has no ISMv2 support";
    NOV2EXT = 0x0303_0004, "peer sent no clc v2 extension";
    NOV2DEXT = 0x0303_0005, "peer sent no clc SMC-Dv2 extension";
    NOSEID = 0x0303_0006, "peer sent no SEID";
    NOSMCD2DEV = 0x0303_0007, "no SMC-Dv2 device found";
    NOUEID = 0x0303_0008, "peer sent no UEID";
    RELEASEERR = 0x0303_0009, "release version negotiate failed";
    MAXCONNERR = 0x0303_000a, "max connections negotiate failed";
    MAXLINKERR = 0x0303_000b, "max links negotiate failed";
    MODEUNSUPP = 0x0304_0000, "smc modes do not match (R or D)";
    RMBE_EC = 0x0305_0000, "peer has eyecatcher in RMBE";
    OPTUNSUPP = 0x0306_0000, "fastopen sockopt not supported";
    DIFFPREFIX = 0x0307_0000, "IP prefix / subnet mismatch";
    GETVLANERR = 0x0308_0000, "error to get vlan id of ip device";
    ISMVLANERR = 0x0309_0000, "error to register vlan id on ism dev";
    NOACTLINK = 0x030a_0000, "no active smc-r link in lgr";
    NOSRVLINK = 0x030b_0000, "SMC-R link from srv not found";
    VERSMISMAT = 0x030c_0000, "SMC version mismatch";
    MAX_DMB = 0x030d_0000, "SMC-D DMB limit exceeded";
    NOROUTE = 0x030e_0000, "SMC-Rv2 no route to peer";
    NOINDIRECT = 0x030f_0000, "SMC-Rv2 indirect connectivity mismatch";
    SYNCERR = 0x0400_0000, "synchronization error";
    PEERDECL = 0x0500_0000, "peer declined during handshake";
    INTERR = 0x0999_0000, "internal error";
    ERR_RTOK = 0x0999_0001, "rtoken handling failed";
    ERR_RDYLNK = 0x0999_0002, "ib ready link failed";
    ERR_REGBUF = 0x0999_0003, "register rmb failed";
}

#[cfg(any(test, smc_rs_kunit))]
#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_reason))]
mod tests {
    use super::*;

    #[test]
    fn codes_have_texts() {
        assert_eq!(Reason::PEERDECL.text(), "peer declined during handshake");
        assert_eq!(Reason(0x0303_000b).text(), Reason::MAXLINKERR.text());
        assert_eq!(Reason(0x1234).text(), "unknown reason");
    }
}
