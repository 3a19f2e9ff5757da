// SPDX-License-Identifier: GPL-2.0
//! The errno table of `socket()`.

use crate::ensure;
use crate::sock;
use crate::sock::AF_SMC;
use crate::sock::IPPROTO_SMC;
use crate::Fail;

/// Domain, type, protocol, expected errno (0: success); upstream's answers.
const TABLE: &[(i32, i32, i32, i32)] = &[
    (AF_SMC, libc::SOCK_STREAM, 0, 0),
    (AF_SMC, libc::SOCK_STREAM, 1, 0),
    (AF_SMC, libc::SOCK_STREAM, 2, libc::EPROTONOSUPPORT),
    (AF_SMC, libc::SOCK_STREAM, 6, libc::EPROTONOSUPPORT),
    (AF_SMC, libc::SOCK_DGRAM, 0, libc::ESOCKTNOSUPPORT),
    (AF_SMC, libc::SOCK_SEQPACKET, 0, libc::ESOCKTNOSUPPORT),
    (AF_SMC, libc::SOCK_RAW, 0, libc::ESOCKTNOSUPPORT),
    (libc::AF_INET, libc::SOCK_STREAM, IPPROTO_SMC, 0),
    (libc::AF_INET6, libc::SOCK_STREAM, IPPROTO_SMC, 0),
    (
        libc::AF_INET,
        libc::SOCK_DGRAM,
        IPPROTO_SMC,
        libc::EPROTONOSUPPORT,
    ),
    (
        libc::AF_INET6,
        libc::SOCK_DGRAM,
        IPPROTO_SMC,
        libc::EPROTONOSUPPORT,
    ),
    (libc::AF_INET, libc::SOCK_STREAM, 0, 0),
    (libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_TCP, 0),
];

/// `smct sockets`.
pub fn run() -> Result<(), Fail> {
    let mut failed = 0;
    for &(domain, kind, protocol, expected) in TABLE {
        let found = match sock::socket(domain, kind, protocol) {
            Ok(_) => 0,
            Err(e) => e.raw_os_error().unwrap_or(-1),
        };
        let verdict = if found == expected { "OK" } else { "FAILED" };
        failed += i32::from(found != expected);
        println!(
            "socket({domain}, {kind}, {protocol}): errno {found}, expected {expected} {verdict}"
        );
    }
    ensure!(failed == 0, "{failed} rows differ");
    Ok(())
}
