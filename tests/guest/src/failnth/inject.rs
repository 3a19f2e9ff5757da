// SPDX-License-Identifier: GPL-2.0
//! The kernel's fault injection: makes exactly the n-th allocation fail.
//!
//! What work items allocate must fail too, so `fail-nth` of a task will not do. The kernel
//! counts all calls that pass its filters and fails each whose number is a multiple of
//! `interval`; who knows the count can choose the interval so that the first multiple is
//! the wanted call, and have it fail once.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::path::PathBuf;

use crate::Context;
use crate::Fail;

const DEBUGFS: &str = "/sys/kernel/debug";

/// Where the count is kept for the next run in this machine.
const KEPT: &str = "/run/failnth";

/// Slab caches whose failures are not the module's business: those of the debug options.
const NOT_THESE: &[&str] = &[
    "kmemleak_object",
    "kmemleak_scan_area",
    "debug_objects_cache",
    "task_struct",
];

/// Writes a setting.
pub fn put(path: impl AsRef<Path>, value: &str) -> Result<(), Fail> {
    let path = path.as_ref();
    fs::write(path, value).context(&path.display().to_string())
}

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// kmalloc and slab caches.
    Slab,
    /// Pages.
    Page,
}

impl Kind {
    fn dir(self) -> PathBuf {
        Path::new(DEBUGFS).join(match self {
            Self::Slab => "failslab",
            Self::Page => "fail_page_alloc",
        })
    }
}

/// Lets allocations that may sleep fail as well, and not those of the debug options;
/// `below`: only those with this module in their call chain, where the kernel can tell.
/// Returns whether it can.
pub fn set_filters(kind: Kind, below: Option<&str>) -> Result<bool, Fail> {
    let dir = kind.dir();
    put(dir.join("ignore-gfp-wait"), "N")?;
    match kind {
        Kind::Slab => {
            choose_caches()?;
            put(dir.join("cache-filter"), "Y")?;
        }
        Kind::Page => put(dir.join("min-order"), "0")?,
    }
    let start = dir.join("require-start");
    let (Some(name), true) = (below, start.exists()) else {
        if start.exists() {
            // An earlier run may have left its choice.
            put(dir.join("stacktrace-depth"), "32")?;
            put(&start, "0")?;
            put(dir.join("require-end"), "0xffffffffffffffff")?;
        }
        return Ok(false);
    };
    let (from, to) = text_of(name)?;
    put(&start, &format!("{from:#x}"))?;
    put(dir.join("require-end"), &format!("{to:#x}"))?;
    put(dir.join("stacktrace-depth"), "32")?;
    Ok(true)
}

/// Marks the caches that may fail. Merged caches can't be marked.
fn choose_caches() -> Result<(), Fail> {
    for entry in fs::read_dir("/sys/kernel/slab").context("/sys/kernel/slab")? {
        let entry = entry?;
        let name = entry.file_name();
        let wanted = !NOT_THESE.iter().any(|n| name.to_str() == Some(n));
        let flag = if wanted { "1" } else { "0" };
        let _ = fs::write(entry.path().join("failslab"), flag);
    }
    Ok(())
}

/// Where a module's code is.
fn text_of(module: &str) -> Result<(u64, u64), Fail> {
    let text = fs::read_to_string("/proc/modules")?;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [name, size, .., address] = words.as_slice() {
            // The last word may be a taint mark.
            let address = words
                .iter()
                .rev()
                .find(|w| w.starts_with("0x"))
                .unwrap_or(address);
            let start = crate::args::number(address);
            if let (true, Some(start), Ok(size)) = (*name == module, start, size.parse::<u64>()) {
                return Ok((start, start + size));
            }
        }
    }
    Err(format!("{module} is not in /proc/modules").into())
}

/// Has every worker of the kernel, and the calling thread, take part; tasks that they
/// make inherit it.
fn mark_tasks() -> Result<(), Fail> {
    put("/proc/thread-self/make-it-fail", "1")?;
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let Ok(name) = fs::read_to_string(path.join("comm")) else {
            continue;
        };
        if name.starts_with("kworker") || name.starts_with("kthreadd") {
            // It may have ended.
            let _ = fs::write(path.join("make-it-fail"), "1");
        }
    }
    Ok(())
}

/// A setting that stays open for writing: opening it allocates. These files have no position.
struct Setting(fs::File);

impl Setting {
    fn open(path: &Path) -> Result<Self, Fail> {
        let file = fs::File::options().write(true).open(path);
        Ok(Self(file.context(&path.display().to_string())?))
    }

    fn set(&self, value: u64) -> Result<(), Fail> {
        let done = (&self.0).write(value.to_string().as_bytes());
        done.map(drop).context("fault injection")
    }
}

/// Makes the n-th allocation fail, whichever task makes it.
pub struct Injector {
    probability: Setting,
    interval: Setting,
    times: Setting,
    dir: PathBuf,
    kept: PathBuf,
    below: bool,
    /// The kernel's count of calls, if it is known.
    count: Option<u64>,
    /// At which count the armed one fails; the real count is never higher.
    target: u64,
}

impl Injector {
    /// Takes over one kind, of which only this program ever makes use.
    pub fn new(kind: Kind, module: &str) -> Result<Self, Fail> {
        let dir = kind.dir();
        let below = set_filters(kind, Some(module))?;
        let filter = if below { "N" } else { "Y" };
        put(dir.join("task-filter"), filter)?;
        mark_tasks()?;
        let kept = PathBuf::from(format!("{KEPT}-{kind:?}"));
        let (count, target) = match fs::read_to_string(&kept) {
            Ok(text) => remembered(&text)?,
            Err(_) => (Some(0), 0),
        };
        let new = Self {
            kept,
            probability: Setting::open(&dir.join("probability"))?,
            interval: Setting::open(&dir.join("interval"))?,
            times: Setting::open(&dir.join("times"))?,
            dir,
            below,
            count,
            target,
        };
        new.times.set(0)?;
        Ok(new)
    }

    /// Whether only allocations below the module count.
    pub fn is_exact(&self) -> bool {
        self.below
    }

    /// Whether it is known how many calls the kernel has counted. If not, the next failure
    /// tells.
    pub fn is_synced(&self) -> bool {
        self.count.is_some()
    }

    /// From now on the `n`-th allocation fails.
    pub fn arm(&mut self, n: u64) -> Result<(), Fail> {
        let count = self.count.ok_or("the kernel's count is not known")?;
        // An interval of 1 would not be counted.
        self.target = (count + n).max(2);
        self.rearm()
    }

    /// Goes on counting where the last one ended without a failure.
    pub fn rearm(&mut self) -> Result<(), Fail> {
        self.count = None;
        self.target = self.target.max(2);
        self.remember("below")?;
        self.interval.set(self.target)?;
        self.times.set(1)?;
        self.probability.set(100)
    }

    /// Ends it; whether there was a failure.
    pub fn disarm(&mut self) -> Result<bool, Fail> {
        self.probability.set(0)?;
        let left = fs::read_to_string(self.dir.join("times")).context("times")?;
        let hit = left.trim() == "0";
        self.times.set(0)?;
        if hit {
            self.count = Some(self.target);
            self.remember("exact")?;
        }
        Ok(hit)
    }

    /// For the next run in this machine: the count is the target, or less.
    fn remember(&self, how: &str) -> Result<(), Fail> {
        fs::write(&self.kept, format!("{how} {}", self.target)).context("the count")
    }
}

/// The count, if it is known, and a count that it does not exceed.
fn remembered(text: &str) -> Result<(Option<u64>, u64), Fail> {
    let (how, number) = text.trim().split_once(' ').ok_or("no count")?;
    let number = number.parse().context("the count")?;
    Ok(((how == "exact").then_some(number), number))
}

impl Drop for Injector {
    fn drop(&mut self) {
        let _ = self.probability.set(0);
        let _ = self.times.set(0);
    }
}

/// `fail-nth` of the calling thread.
pub struct Nth(fs::File);

impl Nth {
    /// For the calling thread.
    pub fn new() -> Result<Self, Fail> {
        let path = "/proc/thread-self/fail-nth";
        let file = fs::File::options().read(true).write(true).open(path);
        Ok(Self(file.context(path)?))
    }

    /// Does `f` with its `n`-th allocation failing; whether it did fail.
    pub fn run<T>(&self, n: u64, f: impl FnOnce() -> T) -> Result<(T, bool), Fail> {
        let text = n.to_string();
        self.0.write_at(text.as_bytes(), 0).context("fail-nth")?;
        let result = f();
        let mut left = [0; 16];
        let got = self.0.read_at(&mut left, 0).context("fail-nth")?;
        self.0.write_at(b"0", 0).context("fail-nth")?;
        let left = String::from_utf8_lossy(&left[..got]).trim().to_string();
        Ok((result, left == "0"))
    }
}
