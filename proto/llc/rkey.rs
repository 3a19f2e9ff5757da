// SPDX-License-Identifier: GPL-2.0

//! Our own RKEY requests: queued, sent one at a time, answered or timed out.

use super::{
    queue::Queue,
    LlcEvent,
    QueueFull,
    Refusal,
    WAIT_RKEY, //
};
use crate::proto::{
    time::{
        Deadline,
        Ms, //
    },
    wire::llc::{
        Body,
        RkeyList, //
    },
};

/// How many requests can wait. The machine is built on the stack, so not very many; who has more
/// keeps them.
const MAX: usize = 16;

/// A request.
#[derive(Clone, Copy, Debug)]
enum Request {
    /// CONFIRM RKEY.
    Confirm { id: u64, rkey: u32, vaddr: u64 },
    /// DELETE RKEY.
    Delete { rkey: u32 },
}

impl Request {
    /// The event that tells that it failed.
    fn failed(self, why: Refusal) -> LlcEvent {
        match self {
            Self::Confirm { id, .. } => LlcEvent::RkeyRefused { id, why },
            Self::Delete { rkey } => LlcEvent::RkeyDeleted { rkey, ok: false },
        }
    }
}

/// The requests of one link group.
#[derive(Debug)]
pub(super) struct RkeyFlow {
    /// Those that wait.
    queue: Queue<Request, MAX>,
    /// The one that was sent.
    current: Option<Request>,
    /// Until when it must be answered.
    timer: Deadline,
}

impl RkeyFlow {
    /// No request yet.
    pub(super) const fn new() -> Self {
        Self {
            queue: Queue::new(),
            current: None,
            timer: Deadline::NONE,
        }
    }

    /// Queues a CONFIRM RKEY.
    pub(super) fn confirm(&mut self, id: u64, rkey: u32, vaddr: u64) -> Result<(), QueueFull> {
        self.push(Request::Confirm { id, rkey, vaddr })
    }

    /// Queues a DELETE RKEY.
    pub(super) fn delete(&mut self, rkey: u32) -> Result<(), QueueFull> {
        self.push(Request::Delete { rkey })
    }

    /// Queues a request.
    fn push(&mut self, request: Request) -> Result<(), QueueFull> {
        if self.queue.push(request) {
            Ok(())
        } else {
            Err(QueueFull)
        }
    }

    /// The next request to send, if none is under way.
    pub(super) fn next(&mut self, now: Ms) -> Option<Body> {
        if self.current.is_some() {
            return None;
        }
        let request = self.queue.pop()?;
        self.current = Some(request);
        self.timer = Deadline::after(now, WAIT_RKEY);
        Some(match request {
            Request::Confirm { rkey, vaddr, .. } => Body::ConfirmRkey {
                negative: false,
                retry: false,
                others: 0,
                rkey,
                vaddr,
            },
            Request::Delete { rkey } => Body::DeleteRkey {
                negative: false,
                invalid: 0,
                rkeys: RkeyList::one(rkey),
            },
        })
    }

    /// Takes an answer; one to an older request, which has timed out, is dropped. Peers may
    /// leave out the key in the answer to DELETE RKEY.
    pub(super) fn response(&mut self, body: &Body) -> Option<LlcEvent> {
        let event = match (self.current?, *body) {
            (
                Request::Confirm { id, rkey, .. },
                Body::ConfirmRkey {
                    negative,
                    retry,
                    rkey: theirs,
                    ..
                },
            ) if theirs == rkey => match (negative, retry) {
                (false, _) => LlcEvent::RkeyConfirmed { id },
                (true, false) => LlcEvent::RkeyRefused {
                    id,
                    why: Refusal::Negative,
                },
                (true, true) => LlcEvent::RkeyRefused {
                    id,
                    why: Refusal::Retry,
                },
            },
            (
                Request::Delete { rkey },
                Body::DeleteRkey {
                    negative, rkeys, ..
                },
            ) if matches!(rkeys.as_slice().first(), None | Some(0))
                || rkeys.as_slice().first() == Some(&rkey) =>
            {
                LlcEvent::RkeyDeleted {
                    rkey,
                    ok: !negative,
                }
            }
            _ => return None,
        };
        self.current = None;
        self.timer = Deadline::NONE;
        Some(event)
    }

    /// Whether the request under way has timed out.
    pub(super) fn timeout(&mut self, now: Ms) -> Option<LlcEvent> {
        if !self.timer.expired(now) {
            return None;
        }
        self.timer = Deadline::NONE;
        self.current
            .take()
            .map(|request| request.failed(Refusal::TimedOut))
    }

    /// When the request under way times out.
    pub(super) fn timer(&self) -> Deadline {
        self.timer
    }

    /// The link is gone: fails one request after the other.
    pub(super) fn fail(&mut self) -> Option<LlcEvent> {
        self.timer = Deadline::NONE;
        let request = self.current.take().or_else(|| self.queue.pop())?;
        Some(request.failed(Refusal::LinkDown))
    }
}
