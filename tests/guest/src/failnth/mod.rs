// SPDX-License-Identifier: GPL-2.0
//! One allocation after the other fails: each time the module gives an error, or falls
//! back, and goes on working.

mod inject;
mod insmod;
mod kmsg;
mod life;

use std::collections::BTreeMap;
use std::time::Duration;
use std::time::Instant;

use self::inject::Injector;
use self::inject::Kind;
use self::kmsg::Sites;
use self::life::Armed;
use self::life::End;
use self::life::Stage;
use self::life::World;
use crate::args::Args;
use crate::ensure;
use crate::Context;
use crate::Fail;

const MODULE: &str = "smc_rs";

/// What takes longer is shown.
const SLOW: Duration = Duration::from_secs(3);
/// After a life that took longer CONFIRM LINK may have timed out.
const TIMED_OUT: Duration = Duration::from_secs(2);

/// What came of the failures of one sweep.
#[derive(Default)]
struct Tally {
    hits: u64,
    ends: BTreeMap<String, u64>,
    slowest: Duration,
    slowest_at: u64,
}

impl Tally {
    fn add(&mut self, n: u64, end: String, time: Duration) {
        self.hits += 1;
        *self.ends.entry(end).or_default() += 1;
        if time > self.slowest {
            (self.slowest, self.slowest_at) = (time, n);
        }
    }

    fn print(&self, what: &str, sites: &Sites) {
        let ends: Vec<String> = self.ends.iter().map(|(e, n)| format!("{e}={n}")).collect();
        let (all, ours) = sites.counts();
        println!(
            "failnth {what}: sites hit: {} distinct={all} below_module={ours} {} slowest={} ms (n={})",
            self.hits,
            ends.join(" "),
            self.slowest.as_millis(),
            self.slowest_at
        );
    }
}

/// A life without failures. After a failure the first may be TCP: only one end had heard that
/// the link group is gone.
fn control(world: &mut World) -> Result<(), Fail> {
    for _ in 0..2 {
        let end = world.life(&mut Armed::none()).context("control")?;
        world.gone().context("after the control connection")?;
        match end {
            End::Smc => return Ok(()),
            End::Tcp => {}
            End::Error(..) => return Err(format!("control connection: {end:?}").into()),
        }
    }
    Err("control connections are TCP".into())
}

/// One sweep: fails one allocation of a stage after the other, until it has no more.
struct Sweep<'a> {
    world: &'a mut World,
    stage: Stage,
    kind: Kind,
    injector: Injector,
    sites: Sites,
    tally: Tally,
    /// What went wrong.
    faults: Vec<String>,
    verbose: bool,
    /// The module's file.
    module: String,
    reloads: u64,
}

impl Sweep<'_> {
    /// A life in which the `n`-th allocation of the stage fails, `None`: the next that is
    /// counted. Returns whether there was a failure.
    fn live(&mut self, n: Option<u64>) -> Result<bool, Fail> {
        let start = Instant::now();
        let mut armed = Armed::new(&mut self.injector, self.stage, n);
        let end = self.world.life(&mut armed);
        armed.disarm()?;
        let (hit, time) = (armed.hit, start.elapsed());
        let place = kmsg::text(self.sites.look().as_ref());
        let n = n.unwrap_or(0);
        if self.verbose || time > SLOW {
            let (stage, ms) = (self.stage, time.as_millis());
            println!("{stage:?} n={n} hit={hit} {ms} ms {place}: {end:?}");
        }
        match end {
            Ok(end) if hit => self.tally.add(n, format!("{end:?}"), time),
            Ok(End::Smc) => {}
            Ok(end) => self.fault(format!("n={n}: {end:?} without a failure")),
            Err(e) => self.fault(format!("n={n} hit={hit} {place}: {e}")),
        }
        Ok(hit)
    }

    fn fault(&mut self, what: String) {
        println!("FAULT {:?} {what}", self.stage);
        self.faults.push(what);
    }

    /// Has failures until the kernel's count is known.
    fn sync(&mut self) -> Result<(), Fail> {
        for _ in 0..30 {
            if self.injector.is_synced() {
                return Ok(());
            }
            self.live(None)?;
        }
        Err("no failure in 30 lives".into())
    }

    /// A link that could not be confirmed in time is not tried again for a while, for which the
    /// sweep can't wait: a module that is loaded anew has forgotten it.
    fn refresh(&mut self) -> Result<(), Fail> {
        self.world.gone()?;
        self.reloads += 1;
        insmod::reload(&self.module)?;
        // It lies elsewhere now.
        inject::set_filters(self.kind, Some(MODULE)).map(drop)
    }

    /// All of them, as the command line says.
    fn run(&mut self, args: &Args) -> Result<(), Fail> {
        let (first, last) = (args.number("from", 1)?, args.number("to", u64::MAX)?);
        let (step, every) = (args.number("step", 1)?, args.number("control", 10)?);
        let until = Instant::now() + Duration::from_secs(args.number("seconds", 1_000_000)?);
        let (mut n, mut misses, mut rounds) = (first, 0, 0);
        while n <= last && misses < 2 && Instant::now() < until && self.faults.len() < 20 {
            self.sync()?;
            let start = Instant::now();
            let hit = self.live(Some(n))?;
            misses = if hit { 0 } else { misses + 1 };
            if start.elapsed() > TIMED_OUT {
                if let Err(e) = self.refresh() {
                    self.fault(format!("after n={n}: {e}"));
                }
            }
            rounds += 1;
            if rounds % every == 0 {
                self.control(n);
            }
            n += step;
        }
        self.control(n);
        let (stage, reloads) = (self.stage, self.reloads);
        println!("{stage:?}: up to n={n}, misses={misses} reloads={reloads}");
        Ok(())
    }

    fn control(&mut self, n: u64) {
        if let Err(e) = control(self.world) {
            self.fault(format!("after n={n}: {e}"));
        }
    }
}

/// Fails the allocations of one kind in one stage.
fn sweep(world: &mut World, stage: Stage, kind: Kind, args: &Args) -> Result<(), Fail> {
    let start = Instant::now();
    let mut sweep = Sweep {
        world,
        stage,
        kind,
        injector: Injector::new(kind, MODULE)?,
        sites: Sites::new(MODULE)?,
        tally: Tally::default(),
        faults: Vec::new(),
        verbose: args.flag("verbose"),
        module: insmod::path(args).to_string(),
        reloads: 0,
    };
    sweep.run(args)?;
    let scope = if sweep.injector.is_exact() {
        "below the module"
    } else {
        "all tasks"
    };
    let what = format!(
        "{stage:?}/{kind:?} ({scope}, {} s)",
        start.elapsed().as_secs()
    );
    sweep.tally.print(&what, &sweep.sites);
    ensure!(
        sweep.faults.is_empty(),
        "{stage:?}: {} faults: {}",
        sweep.faults.len(),
        sweep.faults.join("; ")
    );
    ensure!(
        sweep.tally.hits >= args.number("min", 1)?,
        "{stage:?}: suspiciously few sites: {}",
        sweep.tally.hits
    );
    Ok(())
}

/// `smct failnth OP`: an operation, `slab` or `page` allocations by `--kind`.
pub fn run(op: &str, args: &Args) -> Result<(), Fail> {
    if op == "insmod" {
        return insmod::run(args);
    }
    let stage = Stage::parse(op).ok_or("no such operation")?;
    let kind = match args.text("kind").unwrap_or("slab") {
        "slab" => Kind::Slab,
        "page" => Kind::Page,
        _ => return Err("--kind is slab or page".into()),
    };
    let mut world = World::new(args)?;
    control(&mut world)?;
    sweep(&mut world, stage, kind, args)
}
