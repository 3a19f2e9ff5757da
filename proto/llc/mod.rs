// SPDX-License-Identifier: GPL-2.0

//! The LLC machine of a link group with one link, without I/O (RFC 7609, 4.5 and A.2).
//!
//! Drive it under the link group's control lock: give it every received LLC message by
//! [`Llc::handle`], send what [`Llc::poll_transmit`] gives until it gives nothing, act on what
//! [`Llc::poll`] gives until it gives nothing, and call [`Llc::handle_timeout`] at the time that
//! [`Llc::poll_timeout`] tells. Nothing here allocates or waits.
//!
//! A second link is refused as the protocol wants it: ADD LINK is rejected ("no alternate path"),
//! REQUEST ADD LINK is answered and nothing follows. Types that aren't known are dropped.

#[cfg(any(test, smc_rs_kunit))]
mod pair;
mod queue;
mod rkey;

use self::{
    queue::Queue,
    rkey::RkeyFlow, //
};
use super::{
    reason::Reason,
    time::{
        Deadline,
        Ms, //
    },
    wire::{
        llc::{
            Body,
            LinkInfo,
            LinkReason,
            LlcBuf,
            LlcVersion,
            Message,
            RkeyList, //
        },
        WireError,
    },
};

/// How the peer broke the protocol.
pub(crate) type PeerFault = WireError;

/// How long the server waits for the answer to CONFIRM LINK, and both for most other answers.
pub(crate) const WAIT: Ms = 2_000;
/// How long the client waits for CONFIRM LINK.
pub(crate) const WAIT_CONFIRM_LINK: Ms = 4_000;
/// How long a client or server waits for the answer to CONFIRM RKEY or DELETE RKEY. Linux waits
/// 2 s; a peer whose many connections all ask at once may need longer, and the other side's CLC
/// clock, which runs meanwhile, allows 6 s.
pub(crate) const WAIT_RKEY: Ms = 5_000;

/// How many messages can wait for being sent.
const TX_MAX: usize = 16;
/// So many places in the queue are for our own requests: RKEY, TEST LINK, CONFIRM or DELETE LINK.
const TX_OWN: usize = 4;
/// How many events can wait for being taken.
const EVENTS_MAX: usize = 16;
/// So many places in the queue are for what time brings.
const EVENTS_OWN: usize = 4;

/// Which end of the link group this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The end that connected.
    Client,
    /// The end that accepted.
    Server,
}

/// What the machine has to know about the link group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LlcConfig {
    /// Which end this is.
    pub(crate) role: Role,
    /// Version of the link group.
    pub(crate) version: LlcVersion,
    /// Our end of the link. The client's `link_num` is what the server gives it.
    pub(crate) link: LinkInfo,
    /// How long after the last sign of the peer to send TEST LINK; 0 is never.
    pub(crate) test_period: Ms,
}

/// Why a CONFIRM RKEY failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The peer refuses it.
    Negative,
    /// The peer can't now, but may later.
    Retry,
    /// The peer did not answer.
    TimedOut,
    /// The link is gone.
    LinkDown,
}

/// Our answer to the peer's CONFIRM RKEY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RkeyAnswer {
    /// It is noted.
    Ok,
    /// There is no room for it.
    #[cfg_attr(
        not(any(test, fuzzing, smc_rs_kunit)),
        expect(
            dead_code,
            reason = "a group with one link needs no table of the peer's keys"
        )
    )]
    Refused,
    /// There is no room for it, but may be later.
    Retry,
}

/// What the machine tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LlcEvent {
    /// Client: CONFIRM LINK came. Make the queue pair send, register the buffers, then call
    /// `reply_confirm_link`.
    ConfirmRequested {
        /// The server's end.
        peer: LinkInfo,
    },
    /// The link works in both directions.
    LinkConfirmed {
        /// The peer's end.
        peer: LinkInfo,
    },
    /// The link was not confirmed.
    LinkFailed(Reason),
    /// The peer has noted the ring buffer of this request.
    RkeyConfirmed {
        /// What `confirm_rkey` was given.
        id: u64,
    },
    /// The peer has not noted the ring buffer of this request.
    RkeyRefused {
        /// What `confirm_rkey` was given.
        id: u64,
        /// Why.
        why: Refusal,
    },
    /// A DELETE RKEY is done.
    RkeyDeleted {
        /// What `delete_rkey` was given.
        rkey: u32,
        /// The peer knew it and answered.
        ok: bool,
    },
    /// The peer has another ring buffer; note it and call `answer_rkey`.
    PeerRkey {
        /// Its key.
        rkey: u32,
        /// Its address.
        vaddr: u64,
    },
    /// The peer does not use these ring buffers any more; forget them and call
    /// `answer_delete_rkeys`.
    PeerDeletesRkeys(RkeyList),
    /// The peer ends the link group (or its only link, which is the same). The answer is on its
    /// way to be sent.
    PeerDeletesLink {
        /// All links were named.
        all: bool,
        /// Connections may end in an orderly way.
        orderly: bool,
        /// Why.
        reason: LinkReason,
    },
    /// The peer did not answer TEST LINK: the link is dead.
    TestLinkFailed,
}

/// Where the link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    /// Not yet.
    Idle,
    /// Server: CONFIRM LINK sent. Client: waiting for it.
    Confirming,
    /// Client: CONFIRM LINK came and is to be answered.
    Answering(LinkInfo),
    /// It works.
    Active,
    /// It is gone, or about to be.
    Down,
}

/// A request of the peer that has to be answered from above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    /// CONFIRM RKEY.
    Confirm { others: u8, rkey: u32, vaddr: u64 },
    /// DELETE RKEY.
    Delete(RkeyList),
}

/// The LLC machine of one link group.
#[derive(Debug)]
pub(crate) struct Llc {
    /// What it was told.
    config: LlcConfig,
    /// Where the link stands.
    link: LinkState,
    /// Until when the link must be confirmed.
    link_timer: Deadline,
    /// Client: CONFIRM LINK that came before it was expected.
    early: Option<(LinkInfo, bool)>,
    /// Our RKEY requests.
    rkeys: RkeyFlow,
    /// The peer's RKEY request.
    pending: Option<Pending>,
    /// The last sign of the peer.
    last_rx: Ms,
    /// Until when TEST LINK must be answered.
    test_timer: Deadline,
    /// Messages to send.
    tx: Queue<LlcBuf, TX_MAX>,
    /// Events to tell.
    events: Queue<LlcEvent, EVENTS_MAX>,
}

impl Llc {
    /// A machine for a new link group.
    pub(crate) fn new(config: LlcConfig, now: Ms) -> Self {
        Self {
            config,
            link: LinkState::Idle,
            link_timer: Deadline::NONE,
            early: None,
            rkeys: RkeyFlow::new(),
            pending: None,
            last_rx: now,
            test_timer: Deadline::NONE,
            tx: Queue::new(),
            events: Queue::new(),
        }
    }

    /// Whether the link was confirmed and is not gone.
    pub(crate) fn active(&self) -> bool {
        self.link == LinkState::Active
    }

    /// Server: the queue pair can send; sends CONFIRM LINK.
    pub(crate) fn start_confirm_link(&mut self, now: Ms) {
        if self.link != LinkState::Idle || self.config.role != Role::Server {
            return;
        }
        self.link = LinkState::Confirming;
        self.link_timer = Deadline::after(now, WAIT);
        self.send(false, self.confirm_link_body());
    }

    /// Client: CONFIRM is going to be sent, so CONFIRM LINK will come.
    pub(crate) fn expect_confirm_link(&mut self, now: Ms) {
        if self.link != LinkState::Idle || self.config.role != Role::Client {
            return;
        }
        self.link = LinkState::Confirming;
        self.link_timer = Deadline::after(now, WAIT_CONFIRM_LINK);
        if let Some((peer, no_eyecatcher)) = self.early.take() {
            self.confirm_requested(peer, no_eyecatcher);
        }
    }

    /// Client: everything is ready; answers CONFIRM LINK.
    pub(crate) fn reply_confirm_link(&mut self, now: Ms) {
        if let LinkState::Answering(peer) = self.link {
            self.config.link.link_num = peer.link_num;
            self.send(true, self.confirm_link_body());
            self.activate(peer, now);
        }
    }

    /// CONFIRM LINK of our end.
    fn confirm_link_body(&self) -> Body {
        Body::ConfirmLink {
            no_eyecatcher: true,
            link: self.config.link,
        }
    }

    /// The link works.
    fn activate(&mut self, peer: LinkInfo, now: Ms) {
        self.link = LinkState::Active;
        self.link_timer = Deadline::NONE;
        self.last_rx = self.last_rx.max(now);
        self.event(LlcEvent::LinkConfirmed { peer });
        self.pump(now);
    }

    /// The link will not work.
    fn link_failed(&mut self, reason: Reason) {
        self.link_down();
        self.event(LlcEvent::LinkFailed(reason));
    }

    /// The link is gone, as the caller knows or the machine found out: nothing more is sent by
    /// itself, and waiting requests fail.
    pub(crate) fn link_down(&mut self) {
        self.link = LinkState::Down;
        self.link_timer = Deadline::NONE;
        self.test_timer = Deadline::NONE;
    }

    /// Tells the peer about a new ring buffer; `id` comes back in the event that tells how it
    /// went. Requests are sent one after the other. Fails if too many wait.
    pub(crate) fn confirm_rkey(
        &mut self,
        id: u64,
        rkey: u32,
        vaddr: u64,
        now: Ms,
    ) -> Result<(), QueueFull> {
        self.rkeys.confirm(id, rkey, vaddr)?;
        self.pump(now);
        Ok(())
    }

    /// Tells the peer that a ring buffer is not used any more. Fails if too many requests wait.
    pub(crate) fn delete_rkey(&mut self, rkey: u32, now: Ms) -> Result<(), QueueFull> {
        self.rkeys.delete(rkey)?;
        self.pump(now);
        Ok(())
    }

    /// Answers [`LlcEvent::PeerRkey`].
    pub(crate) fn answer_rkey(&mut self, answer: RkeyAnswer) {
        if let Some(Pending::Confirm {
            others,
            rkey,
            vaddr,
        }) = self.pending
        {
            self.pending = None;
            self.send(
                true,
                Body::ConfirmRkey {
                    negative: answer != RkeyAnswer::Ok,
                    retry: answer == RkeyAnswer::Retry,
                    others,
                    rkey,
                    vaddr,
                },
            );
        }
    }

    /// Answers [`LlcEvent::PeerDeletesRkeys`]; `known` tells of each key whether it was there.
    pub(crate) fn answer_delete_rkeys(&mut self, mut known: impl FnMut(u32) -> bool) {
        let Some(Pending::Delete(rkeys)) = self.pending else {
            return;
        };
        self.pending = None;
        let mut mask = 0u8;
        let mut count = 0u8;
        let mut bit = 0x80u8;
        for rkey in rkeys.as_slice() {
            if !known(*rkey) {
                mask |= bit;
                count = count.saturating_add(1);
            }
            bit >>= 1;
        }
        let invalid = match self.config.version {
            LlcVersion::V1 => mask,
            LlcVersion::V2 => count,
        };
        self.send(
            true,
            Body::DeleteRkey {
                negative: count != 0,
                invalid,
                rkeys,
            },
        );
    }

    /// Tells the peer that the link group ends. No answer is waited for.
    pub(crate) fn delete_link_all(&mut self, reason: LinkReason, orderly: bool) {
        if matches!(self.link, LinkState::Idle | LinkState::Down) {
            self.link_down();
            return;
        }
        self.link_down();
        self.send(
            false,
            Body::DeleteLink {
                all: true,
                orderly,
                link_num: 0,
                reason,
            },
        );
    }

    /// Sends TEST LINK now, unless one is under way.
    pub(crate) fn test_link(&mut self, now: Ms) {
        if self.active() && self.test_timer == Deadline::NONE {
            self.test_timer = Deadline::after(now, WAIT);
            self.send(false, Body::TestLink { data: [0; 16] });
        }
    }

    /// The peer has given another sign (a CDC message) at that time. Best called just before
    /// `handle_timeout`, with the time of the last one.
    pub(crate) fn note_rx(&mut self, at: Ms) {
        self.last_rx = self.last_rx.max(at);
    }

    /// Handles a message; `msg` is all that was received. An error means that the peer breaks
    /// the protocol; the message had no effect.
    pub(crate) fn handle(&mut self, msg: &[u8], now: Ms) -> Result<(), PeerFault> {
        let msg = Message::parse(msg)?;
        self.note_rx(now);
        // To version 1 these are types that it doesn't know; nor could it tell all answers.
        if msg.version == LlcVersion::V2 && self.config.version == LlcVersion::V1 {
            return Ok(());
        }
        if self.tx.room() <= TX_OWN || self.events.room() <= EVENTS_OWN {
            return Err(WireError::LlcFlood);
        }
        if msg.response {
            self.handle_response(msg.body, now);
        } else {
            self.handle_request(msg.body);
        }
        Ok(())
    }

    /// Handles an answer; one that was not asked for is dropped.
    fn handle_response(&mut self, body: Body, now: Ms) {
        match body {
            Body::ConfirmLink {
                no_eyecatcher,
                link,
            } if self.link == LinkState::Confirming && self.config.role == Role::Server => {
                if no_eyecatcher {
                    self.activate(link, now);
                } else {
                    self.link_failed(Reason::RMBE_EC);
                }
            }
            Body::TestLink { .. } => self.test_timer = Deadline::NONE,
            _ => {
                if let Some(event) = self.rkeys.response(&body) {
                    self.event(event);
                    self.pump(now);
                }
            }
        }
    }

    /// Handles a request; one that doesn't fit is dropped.
    fn handle_request(&mut self, body: Body) {
        match body {
            Body::ConfirmLink {
                no_eyecatcher,
                link,
            } if self.config.role == Role::Client => match self.link {
                LinkState::Idle => self.early = Some((link, no_eyecatcher)),
                LinkState::Confirming => self.confirm_requested(link, no_eyecatcher),
                _ => {}
            },
            Body::AddLink { body, .. } => self.send(true, Body::AddLink { reject: true, body }),
            Body::RequestAddLink => self.send(true, Body::RequestAddLink),
            Body::DeleteLink {
                all,
                orderly,
                link_num,
                reason,
            } => self.peer_deletes_link(all, orderly, link_num, reason),
            Body::TestLink { data } => self.send(true, Body::TestLink { data }),
            Body::ConfirmRkey {
                others,
                rkey,
                vaddr,
                ..
            } => {
                let pending = Pending::Confirm {
                    others,
                    rkey,
                    vaddr,
                };
                self.ask(pending, LlcEvent::PeerRkey { rkey, vaddr });
            }
            Body::DeleteRkey { rkeys, .. } => {
                self.ask(Pending::Delete(rkeys), LlcEvent::PeerDeletesRkeys(rkeys));
            }
            Body::ConfirmLink { .. } | Body::Unknown => {}
        }
    }

    /// Notes a request that is answered from above. The peer must not have two at a time; a
    /// second one is dropped.
    fn ask(&mut self, pending: Pending, event: LlcEvent) {
        if self.pending.is_none() {
            self.pending = Some(pending);
            self.event(event);
        }
    }

    /// Client: CONFIRM LINK has come.
    fn confirm_requested(&mut self, peer: LinkInfo, no_eyecatcher: bool) {
        self.link_timer = Deadline::NONE;
        if no_eyecatcher {
            self.link = LinkState::Answering(peer);
            self.event(LlcEvent::ConfirmRequested { peer });
        } else {
            self.link_failed(Reason::RMBE_EC);
        }
    }

    /// The peer's DELETE LINK.
    fn peer_deletes_link(&mut self, all: bool, orderly: bool, link_num: u8, reason: LinkReason) {
        let ours = all || link_num == self.config.link.link_num;
        self.send(
            true,
            Body::DeleteLink {
                all,
                orderly,
                link_num,
                reason: if ours {
                    LinkReason::OK
                } else {
                    LinkReason::UNKNOWN_LINK
                },
            },
        );
        if ours {
            self.link_down();
            self.event(LlcEvent::PeerDeletesLink {
                all,
                orderly,
                reason,
            });
        }
    }

    /// To be called when the time of `poll_timeout` has come; may be called at any time.
    pub(crate) fn handle_timeout(&mut self, now: Ms) {
        if self.link_timer.expired(now) {
            self.link_failed(Reason::TIMEOUT_CL);
        }
        if self.test_timer.expired(now) {
            self.link_down();
            self.event(LlcEvent::TestLinkFailed);
        }
        if self.next_test().expired(now) {
            self.test_link(now);
        }
        if let Some(event) = self.rkeys.timeout(now) {
            self.event(event);
        }
        self.pump(now);
    }

    /// When `handle_timeout` has to be called.
    pub(crate) fn poll_timeout(&self) -> Option<Ms> {
        self.link_timer
            .earlier(self.test_timer)
            .earlier(self.next_test())
            .earlier(self.rkeys.timer())
            .get()
    }

    /// When the next TEST LINK is due.
    fn next_test(&self) -> Deadline {
        let period = self.config.test_period;
        if period == 0 || !self.active() || self.test_timer != Deadline::NONE {
            return Deadline::NONE;
        }
        Deadline::after(self.last_rx, period)
    }

    /// The next message to send.
    pub(crate) fn poll_transmit(&mut self) -> Option<LlcBuf> {
        self.tx.pop()
    }

    /// The next event.
    pub(crate) fn poll(&mut self) -> Option<LlcEvent> {
        let event = self.events.pop();
        if event.is_none() && self.link == LinkState::Down {
            return self.rkeys.fail();
        }
        event
    }

    /// Sends the next RKEY request if it can be.
    fn pump(&mut self, now: Ms) {
        if self.active() {
            if let Some(body) = self.rkeys.next(now) {
                self.send(false, body);
            }
        }
    }

    /// Queues a message. There is room: `handle` keeps some for our own requests, of which at
    /// most one of each kind is under way.
    fn send(&mut self, response: bool, body: Body) {
        let msg = Message {
            version: self.config.version,
            response,
            body,
        };
        self.tx.push(msg.emit());
    }

    /// Queues an event. There is room like for messages.
    fn event(&mut self, event: LlcEvent) {
        self.events.push(event);
    }
}

/// Too many requests wait; to be tried again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueFull;
