// SPDX-License-Identifier: GPL-2.0
//! Which transport a socket really uses, asked from the kernel.
//!
//! smc_rs lists its sockets in /proc/net/smc and smc6. For upstream's module (to validate
//! the tests themselves) the answer comes from its socket diagnosis.

use std::fs;

use crate::netlink;
use crate::sock::Sock;
use crate::Fail;

/// What the kernel says about one socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transport {
    /// `SMC-R`, `TCP`, `-` ... ; `none` when the kernel's table does not have the socket
    /// (any more): then it is TCP.
    pub name: String,
    /// Reason of the fallback, zero if none.
    pub reason: u32,
}

/// What a test expects.
#[derive(Clone, Debug)]
pub struct Expect {
    /// `SMC-R`, `TCP` or `any`.
    pub name: String,
    /// Reason of the fallback, if it matters.
    pub reason: Option<u32>,
}

impl Expect {
    /// From `--expect` and `--reason`, which may have a prefix (`--server-expect`); by
    /// default any transport will do.
    pub fn from_args(args: &crate::args::Args, prefix: &str) -> Result<Self, Fail> {
        let name = args
            .text(&format!("{prefix}expect"))
            .or(args.text("expect"))
            .unwrap_or("any")
            .to_string();
        let option = format!("{prefix}reason");
        let reason = match args.text(&option) {
            Some(_) => Some(args.number(&option, 0)? as u32),
            None => None,
        };
        Ok(Self { name, reason })
    }

    /// Compares a socket with the expectation.
    pub fn check(&self, sock: &Sock) -> Result<Transport, Fail> {
        let found = of(sock)?;
        let name = if found.name == "none" {
            "TCP"
        } else {
            &found.name
        };
        if self.name != "any" && self.name != name {
            return Err(format!(
                "transport is {} (reason {:#010x}), expected {}",
                found.name, found.reason, self.name
            )
            .into());
        }
        if let (Some(reason), true) = (self.reason, found.name != "none") {
            crate::ensure!(
                reason == found.reason,
                "fallback reason is {:#010x}, expected {reason:#010x}",
                found.reason
            );
        }
        Ok(found)
    }
}

/// Looks a socket up by its inode, in the calling thread's network namespace.
pub fn of(sock: &Sock) -> Result<Transport, Fail> {
    let inode = sock.inode()?;
    let mut tables = 0;
    // Not /proc/net: that is the main thread's namespace.
    for path in ["/proc/thread-self/net/smc", "/proc/thread-self/net/smc6"] {
        let Ok(text) = fs::read_to_string(path) else {
            continue;
        };
        tables += 1;
        if let Some(found) = find(&text, inode) {
            return Ok(found);
        }
    }
    if tables == 0 {
        if let Some(found) = netlink::smc_diag(inode)? {
            return Ok(found);
        }
    }
    Ok(Transport {
        name: "none".into(),
        reason: 0,
    })
}

/// Whether upstream's module has the sockets: it has no table in /proc.
pub fn is_upstream() -> bool {
    fs::metadata("/proc/thread-self/net/smc").is_err()
}

/// Finds the line of an inode in a table with a header line.
fn find(text: &str, inode: u64) -> Option<Transport> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next()?.split_whitespace().collect();
    let column = |name: &str| header.iter().position(|h| *h == name);
    let (at_inode, at_name, at_reason) =
        (column("inode")?, column("transport")?, column("fallback")?);
    let inode = inode.to_string();
    for line in lines {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields.get(at_inode) == Some(&inode.as_str()) {
            let reason = fields.get(at_reason).copied().unwrap_or("");
            return Some(Transport {
                name: fields.get(at_name)?.to_string(),
                reason: crate::args::number(reason).unwrap_or(0) as u32,
            });
        }
    }
    None
}

/// A counter of /proc/net/smc_stat in this thread's namespace; zero when it is not there.
pub fn counter(name: &str) -> Result<u64, Fail> {
    let path = "/proc/thread-self/net/smc_stat";
    let text = fs::read_to_string(path).map_err(|e| Fail(format!("{path}: {e}")))?;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if words.next() == Some(name) {
            return Ok(words.next().and_then(crate::args::number).unwrap_or(0));
        }
    }
    Ok(0)
}

/// `smct stat NAME [--equals N] [--min N]`: prints a counter, or compares it.
pub fn stat(name: &str, args: &crate::args::Args) -> Result<(), Fail> {
    let found = counter(name)?;
    println!("{found}");
    let expected = args.number("equals", found)?;
    crate::ensure!(found == expected, "{name} is {found}, expected {expected}");
    let least = args.number("min", 0)?;
    crate::ensure!(
        found >= least,
        "{name} is {found}, expected at least {least}"
    );
    Ok(())
}

/// `smct gone`: waits until the namespace has no socket of the module any more.
pub fn gone() -> Result<(), Fail> {
    let mut left = String::new();
    for _ in 0..100 {
        left.clear();
        for path in ["/proc/thread-self/net/smc", "/proc/thread-self/net/smc6"] {
            let text = fs::read_to_string(path).map_err(|e| Fail(format!("{path}: {e}")))?;
            for line in text.lines().skip(1) {
                left.push_str(line);
                left.push('\n');
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    Err(format!("sockets left after 10 s:\n{left}").into())
}
