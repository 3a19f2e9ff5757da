// SPDX-License-Identifier: GPL-2.0
//! Where an allocation failed, as the kernel log tells.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::os::unix::fs::OpenOptionsExt;

use crate::Context;
use crate::Fail;

/// Innermost frames that belong to the allocator and to the injection.
const ALLOCATOR: &[&str] = &[
    "dump_stack",
    "should_fail",
    "__should_fail",
    "kmem_cache_",
    "__kmalloc",
    "kmalloc",
    "__kmem",
    "krealloc",
    "__krealloc",
    "kvmalloc",
    "__kvmalloc",
    "__vmalloc",
    "vmalloc",
    "__alloc_pages",
    "alloc_pages",
    "prepare_alloc",
    "__alloc_frozen",
    "get_free_pages",
    "__get_free_pages",
    "kvrealloc",
    "vrealloc",
];

/// Where an allocation failed.
pub struct Place {
    /// The innermost frames.
    pub name: String,
    /// Whether the module is among the callers.
    pub ours: bool,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The text of a place that may not be known.
pub fn text(place: Option<&Place>) -> String {
    place.map_or("an untold place".into(), Place::to_string)
}

/// Reads the kernel log, and remembers the places of failures.
pub struct Sites {
    log: File,
    module: String,
    /// All places.
    seen: BTreeSet<String>,
    /// Those below the module.
    ours: BTreeSet<String>,
}

impl Sites {
    /// From now on.
    pub fn new(module: &str) -> Result<Self, Fail> {
        let mut log = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/kmsg")
            .context("/dev/kmsg")?;
        log.seek(SeekFrom::End(0))?;
        Ok(Self {
            log,
            module: format!("[{module}]"),
            seen: BTreeSet::new(),
            ours: BTreeSet::new(),
        })
    }

    /// Distinct places so far: all, and those below the module.
    pub fn counts(&self) -> (usize, usize) {
        (self.seen.len(), self.ours.len())
    }

    /// The failure since the last look, if the kernel told of one: the innermost frames.
    pub fn look(&mut self) -> Option<Place> {
        let (mut frames, mut on) = (Vec::new(), false);
        let mut record = vec![0; 8192];
        loop {
            match self.log.read(&mut record) {
                Ok(n) => {
                    let text = String::from_utf8_lossy(&record[..n]).into_owned();
                    let text = text.split_once(';').map_or("", |(_, t)| t);
                    let text = text.lines().next().unwrap_or("").trim();
                    if text.starts_with("FAULT_INJECTION") {
                        on = true;
                    } else if on && text.contains("+0x") && !text.starts_with('?') {
                        frames.push(text.to_string());
                    } else if text.starts_with("</TASK>") {
                        on = false;
                    }
                }
                // Records were overwritten before they were read.
                Err(e) if e.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => break,
            }
        }
        let caller = |f: &&String| !ALLOCATOR.iter().any(|a| f.starts_with(a));
        let frames: Vec<String> = frames.iter().filter(caller).cloned().collect();
        if frames.is_empty() {
            return None;
        }
        let short: Vec<&str> = frames.iter().map(|f| short(f)).collect();
        let mine = frames.iter().position(|f| f.contains(&self.module));
        let depth = mine.map_or(4, |at| at + 3).min(short.len());
        let name = short[..depth].join(" < ");
        self.seen.insert(name.clone());
        let ours = mine.is_some();
        if ours {
            self.ours.insert(name.clone());
        }
        Some(Place { name, ours })
    }
}

/// A frame without the size of its function and the module's name. Rust's symbols are
/// long: the last parts will do.
fn short(frame: &str) -> &str {
    frame.split_once('/').map_or(frame, |(name, _)| name)
}
