// SPDX-License-Identifier: GPL-2.0

//! The LLC side of a group: drives the machine in [`crate::proto::llc`].
//!
//! Messages arrive in softirq; the machine is arithmetic, so it runs there, under a spinlock. What
//! it wants sent or done is done without the lock, by one thread at a time (the *pump*), so that
//! messages leave in order.

use super::{
    group::{
        End,
        Group, //
    },
    waiter::Waiter, //
};
use crate::{
    ext::{
        spinlock_bh::{
            new_spinlock_bh,
            SpinLockBh, //
        },
        timer, //
    },
    ib::Link,
    proto::{
        llc::{
            Llc,
            LlcConfig,
            LlcEvent,
            RkeyAnswer, //
        },
        reason::Reason,
        wire::llc::{
            LinkInfo,
            LinkReason,
            LlcBuf,
            LlcVersion, //
        }, //
    },
    rmb::Ring, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    }, //
};

/// The number of the only link.
const LINK_NUM: u8 = 1;
/// Most exchanges about keys that may be wanted at a time.
const JOBS: usize = 288;
/// When to try again to send if no slot was free.
const RETRY_MS: u64 = 10;

/// An exchange about a key, one at a time.
struct Job {
    /// The key.
    rkey: u32,
    /// The address.
    vaddr: u64,
    /// What to do.
    task: Task,
    /// Whether the request is out.
    running: bool,
}

/// What an exchange is for.
enum Task {
    /// CONFIRM RKEY.
    Confirm(Arc<Waiter>),
    /// DELETE RKEY; the ring is kept until the answer.
    Delete(#[expect(dead_code, reason = "kept for its drop")] Arc<Ring>),
}

/// What the pump does next.
enum Act {
    /// Send a message.
    Send(LlcBuf),
    /// Something happened.
    Event(LlcEvent),
    /// Nothing.
    Nothing,
}

/// The changing part.
struct Inner {
    /// The machine; made with the link.
    machine: Option<Llc>,
    /// A thread is pumping.
    pumping: bool,
    /// It shall look again.
    again: bool,
    /// A message for which there was no slot, and when to try again.
    stash: Option<(LlcBuf, u64)>,
    /// Whom CONFIRM LINK kicks.
    link_waiter: Option<Arc<Waiter>>,
    /// Exchanges about keys; allocated once.
    jobs: KVec<Job>,
}

/// The LLC side of a group.
#[pin_data]
pub(super) struct Control {
    /// The changing part.
    #[pin]
    inner: SpinLockBh<Inner>,
}

impl Inner {
    /// Starts the next exchange if none runs.
    fn next_job(&mut self, now: u64) {
        let (Some(job), Some(machine)) = (self.jobs.first_mut(), self.machine.as_mut()) else {
            return;
        };
        if job.running {
            return;
        }
        job.running = match &job.task {
            // One request at a time is given, so that its number doesn't matter.
            Task::Confirm(_) => machine.confirm_rkey(0, job.rkey, job.vaddr, now).is_ok(),
            Task::Delete(_) => machine.delete_rkey(job.rkey, now).is_ok(),
        };
    }

    /// What to do next.
    fn next(&mut self, now: u64) -> Act {
        let Some(machine) = self.machine.as_mut() else {
            return Act::Nothing;
        };
        if let Some(event) = machine.poll() {
            return Act::Event(event);
        }
        if let Some((buf, at)) = self.stash.take() {
            if at > now {
                self.stash = Some((buf, at));
                return Act::Nothing;
            }
            return Act::Send(buf);
        }
        if let Some(buf) = machine.poll_transmit() {
            return Act::Send(buf);
        }
        self.next_job(now);
        match self.machine.as_mut().and_then(Llc::poll_transmit) {
            Some(buf) => Act::Send(buf),
            None => Act::Nothing,
        }
    }

    /// Takes the running exchange out.
    fn end_job(&mut self) -> Option<Job> {
        match self.jobs.first() {
            Some(job) if job.running => self.jobs.remove(0).ok(),
            _ => None,
        }
    }
}

impl Control {
    /// Without a machine.
    pub(super) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            inner <- new_spinlock_bh!(Inner {
                machine: None,
                pumping: false,
                again: false,
                stash: None,
                link_waiter: None,
                jobs: KVec::with_capacity(JOBS, GFP_KERNEL)?,
            }, "smc_rs_llc"),
        })
    }

    /// When the machine's timer is due.
    pub(super) fn timeout(&self) -> Option<u64> {
        let inner = self.inner.lock();
        let machine = inner.machine.as_ref().and_then(Llc::poll_timeout);
        let retry = inner.stash.as_ref().map(|(_, at)| *at);
        [machine, retry].into_iter().flatten().min()
    }

    /// Nothing will come any more: whoever waits hears so. Rings of exchanges are let go.
    pub(super) fn fail_waiters(&self, reason: Reason) {
        let waiter = self.inner.lock().link_waiter.take();
        if let Some(waiter) = waiter {
            waiter.decide(Err(reason));
        }
        loop {
            let job = self.inner.lock().jobs.pop();
            match job {
                Some(Job {
                    task: Task::Confirm(waiter),
                    ..
                }) => waiter.decide(Err(reason)),
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Queues an exchange.
    fn add(&self, job: Job) -> Result<(), Reason> {
        let mut inner = self.inner.lock();
        if inner.machine.is_none() {
            return Err(Reason::NOACTLINK);
        }
        // The refused job is dropped without the lock.
        let refused = inner.jobs.push_within_capacity(job).err();
        drop(inner);
        match refused {
            None => Ok(()),
            Some(_) => Err(Reason::ERR_REGBUF),
        }
    }
}

impl Group {
    /// Makes the machine for `link`, which is sent TEST LINK after `test_period` milliseconds of
    /// silence (0: never).
    pub(super) fn start_llc(&self, link: &Link, test_period: u64) {
        let number = if self.is_server() { LINK_NUM } else { 0 };
        let config = LlcConfig {
            role: self.key.role,
            version: LlcVersion::V2,
            link: LinkInfo {
                mac: link.mac(),
                gid: link.gid(),
                qpn: link.qpn(),
                link_num: number,
                link_uid: self.id.wrapping_add(u32::from(LINK_NUM)).to_be_bytes(),
                max_links: 1,
                max_conns: self.max_conns,
            },
            test_period,
        };
        let machine = Llc::new(config, timer::now_ms());
        self.control.inner.lock().machine = Some(machine);
    }

    /// Runs something on the machine, then the pump.
    fn with_machine<T>(self: &Arc<Self>, f: impl FnOnce(&mut Llc) -> T) -> Option<T> {
        let result = self.control.inner.lock().machine.as_mut().map(f);
        self.pump();
        result
    }

    /// Client: CONFIRM LINK will be requested; `waiter` hears of it.
    pub(crate) fn expect_link(self: &Arc<Self>, waiter: Arc<Waiter>) {
        self.control.inner.lock().link_waiter = Some(waiter);
        self.with_machine(|llc| llc.expect_confirm_link(timer::now_ms()));
        self.waiter_added();
    }

    /// Client: the link works, CONFIRM LINK is answered.
    pub(crate) fn answer_link(self: &Arc<Self>) {
        self.with_machine(|llc| llc.reply_confirm_link(timer::now_ms()));
    }

    /// Server: requests CONFIRM LINK; `waiter` hears of the answer.
    pub(crate) fn request_link(self: &Arc<Self>, waiter: Arc<Waiter>) {
        self.control.inner.lock().link_waiter = Some(waiter);
        self.with_machine(|llc| llc.start_confirm_link(timer::now_ms()));
        self.waiter_added();
    }

    /// Tells the peer of a new RMB; `waiter` hears of the answer.
    pub(crate) fn confirm_rkey(
        self: &Arc<Self>,
        ring: &Ring,
        waiter: Arc<Waiter>,
    ) -> Result<(), Reason> {
        self.control.add(Job {
            rkey: ring.mr().rkey(),
            vaddr: ring.mr().addr(),
            task: Task::Confirm(waiter),
            running: false,
        })?;
        self.pump();
        self.waiter_added();
        Ok(())
    }

    /// Has the peer forget an RMB; it is kept until the answer.
    pub(super) fn delete_rkey(self: &Arc<Self>, ring: Arc<Ring>) {
        let (rkey, vaddr) = (ring.mr().rkey(), ring.mr().addr());
        let added = self.control.add(Job {
            rkey,
            vaddr,
            task: Task::Delete(ring),
            running: false,
        });
        if added.is_ok() {
            self.pump();
            self.waiter_added();
        }
    }

    /// An LLC message came. Softirq.
    pub(super) fn llc_message(self: &Arc<Self>, msg: &[u8]) {
        let now = timer::now_ms();
        if let Some(Err(_)) = self.with_machine(|llc| llc.handle(msg, now)) {
            self.end(End::Violation);
        }
    }

    /// The timer fired.
    pub(super) fn on_llc_timeout(self: &Arc<Self>, now: u64) {
        let heard = self.heard.xchg(false, Relaxed);
        self.with_machine(|llc| {
            if heard {
                llc.note_rx(now);
            }
            llc.handle_timeout(now);
        });
    }

    /// Tells the peer that the group ends; whether a message went out.
    pub(super) fn say_goodbye(self: &Arc<Self>, end: End) -> bool {
        let reason = match end {
            End::Violation => LinkReason::PROTOCOL,
            End::Going => LinkReason::OPERATOR,
            _ => LinkReason::PROGRAM,
        };
        match end {
            End::LinkDown => return false,
            // The answer to the peer's message is still to leave.
            End::Peer => self.pump(),
            _ => {
                let orderly = end != End::Violation;
                self.with_machine(|llc| llc.delete_link_all(reason, orderly));
            }
        }
        true
    }

    /// Something waits on the machine now: the end of the group must not have missed it.
    fn waiter_added(self: &Arc<Self>) {
        if self.is_over() {
            self.control.fail_waiters(self.reason());
        }
    }

    /// Does what the machine wants done. Any context, never sleeps.
    fn pump(self: &Arc<Self>) {
        {
            let mut inner = self.control.inner.lock();
            if inner.pumping {
                inner.again = true;
                return;
            }
            inner.pumping = true;
        }
        loop {
            let act = self.control.inner.lock().next(timer::now_ms());
            match act {
                Act::Send(buf) => self.send_llc(buf),
                Act::Event(event) => self.on_llc_event(event),
                Act::Nothing => {
                    let mut inner = self.control.inner.lock();
                    if !core::mem::take(&mut inner.again) {
                        inner.pumping = false;
                        break;
                    }
                }
            }
        }
        self.arm();
    }

    /// Sends a message, or keeps it if there is no slot for it now.
    fn send_llc(&self, buf: LlcBuf) {
        let Some(link) = self.link() else {
            return;
        };
        if link.send_llc(buf.as_slice()) == Err(EAGAIN) {
            let at = timer::now_ms() + RETRY_MS;
            self.control.inner.lock().stash = Some((buf, at));
        }
    }

    /// The machine says that something happened.
    fn on_llc_event(self: &Arc<Self>, event: LlcEvent) {
        match event {
            LlcEvent::ConfirmRequested { .. } | LlcEvent::LinkConfirmed { .. } => {
                self.decide_link(Ok(()));
            }
            LlcEvent::LinkFailed(reason) => {
                self.decide_link(Err(reason));
                self.end(End::Contact);
            }
            LlcEvent::RkeyConfirmed { .. } | LlcEvent::RkeyDeleted { .. } => {
                self.decide_job(Ok(()));
            }
            LlcEvent::RkeyRefused { .. } => self.decide_job(Err(Reason::ERR_REGBUF)),
            // With one link CLC tells all that is needed of the peer's RMBs.
            LlcEvent::PeerRkey { .. } => self.answer(|llc| llc.answer_rkey(RkeyAnswer::Ok)),
            LlcEvent::PeerDeletesRkeys(_) => self.answer(|llc| llc.answer_delete_rkeys(|_| true)),
            LlcEvent::PeerDeletesLink { .. } => self.end(End::Peer),
            LlcEvent::TestLinkFailed => self.end(End::LinkDown),
        }
    }

    /// Runs something on the machine, from the pump.
    fn answer(&self, f: impl FnOnce(&mut Llc)) {
        if let Some(machine) = self.control.inner.lock().machine.as_mut() {
            f(machine);
        }
    }

    /// CONFIRM LINK went this way.
    fn decide_link(&self, outcome: Result<(), Reason>) {
        let waiter = self.control.inner.lock().link_waiter.take();
        if let Some(waiter) = waiter {
            waiter.decide(outcome);
        }
    }

    /// The exchange about a key went this way.
    fn decide_job(&self, outcome: Result<(), Reason>) {
        let job = self.control.inner.lock().end_job();
        if let Some(Job {
            task: Task::Confirm(waiter),
            ..
        }) = job
        {
            waiter.decide(outcome);
        }
    }
}
