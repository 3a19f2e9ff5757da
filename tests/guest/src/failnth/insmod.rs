// SPDX-License-Identifier: GPL-2.0
//! insmod with one allocation after the other failing.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use super::inject::set_filters;
use super::inject::Kind;
use super::inject::Nth;
use super::kmsg;
use super::kmsg::Sites;
use super::Tally;
use super::MODULE;
use crate::args::Args;
use crate::ensure;
use crate::sock::Family;
use crate::sock::Sock;
use crate::Context;
use crate::Fail;

const NAME: &CStr = c"smc_rs";

fn load(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open, the parameters are a C string.
    let ret = unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), c"".as_ptr(), 0) };
    if ret == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn unload() -> Result<(), Fail> {
    let start = Instant::now();
    loop {
        // SAFETY: the name is a C string.
        let ret =
            unsafe { libc::syscall(libc::SYS_delete_module, NAME.as_ptr(), libc::O_NONBLOCK) };
        let e = io::Error::last_os_error();
        if ret == 0 {
            return Ok(());
        }
        ensure!(start.elapsed() < Duration::from_secs(10), "rmmod: {e}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Nothing of the module is there. With `sockets`: nobody makes its sockets (slow, as the kernel
/// looks for a module each time).
fn nothing_left(sockets: bool) -> Result<(), Fail> {
    for path in [
        "/sys/module/smc_rs",
        "/proc/net/smc",
        "/proc/net/smc_stat",
        "/proc/sys/net/smc/tcp2smc",
    ] {
        ensure!(!Path::new(path).exists(), "{path} is left");
    }
    for family in [Family::Smc, Family::Ipproto] {
        ensure!(
            !sockets || Sock::new(family).is_err(),
            "socket({family:?}) works"
        );
    }
    Ok(())
}

/// The module's file.
pub fn path(args: &Args) -> &str {
    args.text("module").unwrap_or("/lab/smc_rs.ko")
}

/// Loads the module anew.
pub fn reload(path: &str) -> Result<(), Fail> {
    let file = File::open(path).context(path)?;
    unload()?;
    load(&file).context("insmod")
}

/// `smct failnth insmod --module FILE`.
pub fn run(args: &Args) -> Result<(), Fail> {
    let path = path(args);
    let file = File::open(path).context(path)?;
    set_filters(Kind::Slab, None)?;
    let mut sites = Sites::new(MODULE)?;
    let nth = Nth::new()?;
    let mut tally = Tally::default();
    let (mut n, last) = (args.number("from", 1)?, args.number("to", u64::MAX)?);
    let step = args.number("step", 1)?;
    let skip = args.number("skip", 10)?;
    nothing_left(true)?;
    while n <= last {
        let start = Instant::now();
        let (result, hit) = nth.run(n, || load(&file))?;
        let took = start.elapsed();
        let found = sites.look();
        let place = kmsg::text(found.as_ref());
        let end = match &result {
            Ok(()) => {
                unload().context(&format!("n={n} at {place}"))?;
                "loaded".to_string()
            }
            Err(e) => {
                let code = e.raw_os_error().unwrap_or(0);
                ensure!(
                    matches!(code, libc::ENOMEM | libc::ENOBUFS),
                    "n={n}: {e} at {place}"
                );
                format!("errno{code}")
            }
        };
        nothing_left(tally.hits % 16 == 15).context(&format!("n={n} at {place}"))?;
        let time = start.elapsed();
        if args.flag("verbose") {
            println!("insmod n={n} hit={hit} {end} load {took:?} all {time:?} {place}");
        }
        if !hit {
            ensure!(result.is_ok(), "n={n}: insmod failed without a failure");
            break;
        }
        tally.add(n, end, time);
        // The kernel's own loader is not what is tested: some of its sites will do. A site that the
        // kernel's rate-limited log does not tell of may be ours.
        let foreign = found.is_some_and(|p| !p.ours);
        n += if foreign { skip } else { step };
    }
    tally.print("insmod", &sites);
    ensure!(
        tally.hits >= args.number("min", 1)?,
        "insmod: suspiciously few sites: {}",
        tally.hits
    );
    Ok(())
}
