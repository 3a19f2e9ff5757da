// SPDX-License-Identifier: GPL-2.0

//! Two LLC machines against each other, and one against messages built by hand.

use super::*;

/// A client's and a server's machine.
struct Pair {
    /// The client's.
    client: Llc,
    /// The server's.
    server: Llc,
}

/// What a machine is told.
fn config(role: Role, version: LlcVersion, test_period: Ms) -> LlcConfig {
    let server = role == Role::Server;
    LlcConfig {
        role,
        version,
        link: LinkInfo {
            mac: [if server { 2 } else { 1 }; 6],
            gid: [if server { 2 } else { 1 }; 16],
            qpn: if server { 200 } else { 100 },
            link_num: if server { 5 } else { 0 },
            link_uid: [if server { 2 } else { 1 }; 4],
            max_links: 1,
            max_conns: 32,
        },
        test_period,
    }
}

impl Pair {
    /// A pair whose link is not confirmed yet.
    fn new(version: LlcVersion, test_period: Ms) -> Self {
        Self {
            client: Llc::new(config(Role::Client, version, test_period), 0),
            server: Llc::new(config(Role::Server, version, test_period), 0),
        }
    }

    /// A pair whose link is confirmed at time 0.
    fn active(test_period: Ms) -> Self {
        let mut pair = Self::new(LlcVersion::V2, test_period);
        pair.client.expect_confirm_link(0);
        pair.server.start_confirm_link(0);
        pair.exchange(0);
        pair.client.poll();
        pair.client.reply_confirm_link(0);
        pair.exchange(0);
        pair.client.poll();
        pair.server.poll();
        pair
    }

    /// Delivers messages until there are none; whether all were accepted.
    fn exchange(&mut self, now: Ms) -> bool {
        let mut good = true;
        for _ in 0..100 {
            let (c, s) = (self.client.poll_transmit(), self.server.poll_transmit());
            if c.is_none() && s.is_none() {
                break;
            }
            if let Some(msg) = c {
                good &= self.server.handle(msg.as_slice(), now).is_ok();
            }
            if let Some(msg) = s {
                good &= self.client.handle(msg.as_slice(), now).is_ok();
            }
        }
        good
    }
}

/// A message built by hand: what is listed, and zeros.
fn bytes(head: [u8; 4], body: &[u8]) -> [u8; 44] {
    let mut msg = [0; 44];
    for (to, from) in msg.iter_mut().zip(head.iter().chain(body)) {
        *to = *from;
    }
    msg
}

/// Whether the machine sends exactly this.
fn sends(llc: &mut Llc, want: &[u8]) -> bool {
    llc.poll_transmit()
        .is_some_and(|msg| msg.as_slice() == want)
}

#[cfg_attr(smc_rs_kunit, kernel::macros::kunit_tests(smc_rs_llc_pair))]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_confirmed() {
        for version in [LlcVersion::V1, LlcVersion::V2] {
            let mut p = Pair::new(version, 0);
            p.client.expect_confirm_link(0);
            p.server.start_confirm_link(0);
            assert_eq!(p.server.poll_timeout(), Some(2_000));
            assert_eq!(p.client.poll_timeout(), Some(4_000));
            assert!(p.exchange(1));
            let server = config(Role::Server, version, 0).link;
            assert_eq!(
                p.client.poll(),
                Some(LlcEvent::ConfirmRequested { peer: server })
            );
            assert!(!p.client.active());
            p.client.reply_confirm_link(2);
            assert_eq!(
                p.client.poll(),
                Some(LlcEvent::LinkConfirmed { peer: server })
            );
            assert!(p.exchange(3));
            let client = LinkInfo {
                link_num: 5,
                ..config(Role::Client, version, 0).link
            };
            assert_eq!(
                p.server.poll(),
                Some(LlcEvent::LinkConfirmed { peer: client })
            );
            assert!(p.client.active() && p.server.active());
            assert_eq!(p.client.config.link.link_num, 5);
            assert_eq!(p.client.poll_timeout(), None);
            assert_eq!(p.server.poll_timeout(), None);
        }
    }

    #[test]
    fn confirm_link_may_come_early() {
        let mut p = Pair::new(LlcVersion::V2, 0);
        p.server.start_confirm_link(0);
        p.exchange(0);
        assert_eq!(p.client.poll(), None);
        p.client.expect_confirm_link(1);
        assert!(matches!(
            p.client.poll(),
            Some(LlcEvent::ConfirmRequested { .. })
        ));
    }

    #[test]
    fn confirm_link_times_out() {
        let failed = Some(LlcEvent::LinkFailed(Reason::TIMEOUT_CL));
        let mut p = Pair::new(LlcVersion::V2, 0);
        p.client.expect_confirm_link(10);
        p.server.start_confirm_link(10);
        p.server.handle_timeout(2_009);
        assert_eq!(p.server.poll(), None);
        p.server.handle_timeout(2_010);
        assert_eq!(p.server.poll(), failed);
        p.client.handle_timeout(4_010);
        assert_eq!(p.client.poll(), failed);
        // Too late.
        p.exchange(4_020);
        assert_eq!(p.client.poll(), None);
        assert!(!p.client.active() && !p.server.active());
    }

    #[test]
    fn eyecatchers_are_refused() {
        let failed = Some(LlcEvent::LinkFailed(Reason::RMBE_EC));
        let mut p = Pair::new(LlcVersion::V2, 0);
        p.client.expect_confirm_link(0);
        p.server.start_confirm_link(0);
        assert!(p.client.handle(&bytes([0x21, 44, 0, 0], &[]), 0).is_ok());
        assert_eq!(p.client.poll(), failed);
        assert!(p.client.poll_transmit().is_none());
        assert!(p.server.handle(&bytes([0x21, 44, 0, 0x80], &[]), 0).is_ok());
        assert_eq!(p.server.poll(), failed);
    }

    #[test]
    fn rkeys_are_confirmed_one_at_a_time_in_both_directions() {
        let mut p = Pair::active(0);
        assert!(p.client.confirm_rkey(1, 11, 111, 0).is_ok());
        assert!(p.client.confirm_rkey(2, 22, 222, 0).is_ok());
        assert!(p.client.delete_rkey(33, 0).is_ok());
        assert!(p.server.confirm_rkey(4, 44, 444, 0).is_ok());
        assert!(p.exchange(0));
        let asked = Some(LlcEvent::PeerRkey {
            rkey: 11,
            vaddr: 111,
        });
        assert_eq!(p.server.poll(), asked);
        assert_eq!(p.server.poll(), None);
        p.server.answer_rkey(RkeyAnswer::Ok);
        assert!(matches!(
            p.client.poll(),
            Some(LlcEvent::PeerRkey { rkey: 44, .. })
        ));
        p.client.answer_rkey(RkeyAnswer::Refused);
        assert!(p.exchange(1));
        assert_eq!(p.client.poll(), Some(LlcEvent::RkeyConfirmed { id: 1 }));
        let refused = |id, why| Some(LlcEvent::RkeyRefused { id, why });
        assert_eq!(p.server.poll(), refused(4, Refusal::Negative));
        assert!(matches!(
            p.server.poll(),
            Some(LlcEvent::PeerRkey { rkey: 22, .. })
        ));
        p.server.answer_rkey(RkeyAnswer::Retry);
        assert!(p.exchange(2));
        assert_eq!(p.client.poll(), refused(2, Refusal::Retry));
        assert!(
            matches!(p.server.poll(), Some(LlcEvent::PeerDeletesRkeys(list))
            if list.as_slice() == [33])
        );
        p.server.answer_delete_rkeys(|rkey| rkey == 33);
        assert!(p.exchange(3));
        let deleted = |rkey, ok| Some(LlcEvent::RkeyDeleted { rkey, ok });
        assert_eq!(p.client.poll(), deleted(33, true));
        assert_eq!(p.client.poll_timeout(), None);
    }

    #[test]
    fn a_late_answer_is_not_taken_for_the_next() {
        let mut p = Pair::active(0);
        assert!(p.client.confirm_rkey(1, 11, 0, 0).is_ok());
        assert!(p.client.confirm_rkey(2, 22, 0, 0).is_ok());
        assert_eq!(p.client.poll_timeout(), Some(5_000));
        p.client.handle_timeout(5_000);
        let timed_out = |id| {
            Some(LlcEvent::RkeyRefused {
                id,
                why: Refusal::TimedOut,
            })
        };
        assert_eq!(p.client.poll(), timed_out(1));
        let late = bytes([0x26, 44, 0, 0x80], &[0, 0, 0, 0, 11]);
        assert!(p.client.handle(&late, 2_001).is_ok());
        assert_eq!(p.client.poll(), None);
        let good = bytes([0x26, 44, 0, 0x80], &[0, 0, 0, 0, 22]);
        assert!(p.client.handle(&good, 2_002).is_ok());
        assert_eq!(p.client.poll(), Some(LlcEvent::RkeyConfirmed { id: 2 }));
        // Unasked.
        assert!(p.client.handle(&good, 2_003).is_ok());
        assert_eq!(p.client.poll(), None);
    }

    #[test]
    fn delete_rkey_is_answered_as_the_version_wants() {
        let mut p = Pair::active(0);
        let request = bytes(
            [0x29, 44, 0, 0],
            &[3, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3],
        );
        assert!(p.server.handle(&request, 0).is_ok());
        p.server.poll();
        p.server.answer_delete_rkeys(|rkey| rkey == 2);
        let answer = bytes(
            [0x29, 44, 0, 0xa0],
            &[3, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3],
        );
        assert!(sends(&mut p.server, &answer));
        let mut v1 = Llc::new(config(Role::Client, LlcVersion::V1, 0), 0);
        let request = bytes([0x09, 44, 0, 0], &[2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
        assert!(v1.handle(&request, 0).is_ok());
        v1.poll();
        v1.answer_delete_rkeys(|rkey| rkey == 1);
        let answer = bytes(
            [0x09, 44, 0, 0xa0],
            &[2, 0x40, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2],
        );
        assert!(sends(&mut v1, &answer));
        // An answer without keys, as some peers send it.
        assert!(p.client.delete_rkey(9, 0).is_ok());
        p.client.poll_transmit();
        let answer = bytes([0x29, 44, 0, 0xa0], &[1, 1]);
        assert!(p.client.handle(&answer, 0).is_ok());
        let deleted = LlcEvent::RkeyDeleted { rkey: 9, ok: false };
        assert_eq!(p.client.poll(), Some(deleted));
    }

    #[test]
    fn an_answer_belongs_to_its_key() {
        let mut p = Pair::active(0);
        assert!(p.client.confirm_rkey(1, 7, 1, 0).is_ok());
        for rkey in [6, 8] {
            let late = bytes([0x26, 44, 0, 0x80], &[0, 0, 0, 0, rkey]);
            assert!(p.client.handle(&late, 1).is_ok());
            assert_eq!(p.client.poll(), None);
        }
        let answer = bytes([0x26, 44, 0, 0x80], &[0, 0, 0, 0, 7]);
        assert!(p.client.handle(&answer, 1).is_ok());
        let confirmed = LlcEvent::RkeyConfirmed { id: 1 };
        assert_eq!(p.client.poll(), Some(confirmed));
    }

    #[test]
    fn version_1_does_not_know_version_2() {
        // Nine keys, and a type, that version 1 can't tell in an answer.
        for head in [[0x29, 44, 0, 0], [0x25, 44, 0, 0], [0x27, 44, 0, 0]] {
            let mut v1 = Llc::new(config(Role::Server, LlcVersion::V1, 0), 0);
            assert!(v1.handle(&bytes(head, &[9]), 0).is_ok());
            assert_eq!(v1.poll(), None);
            assert!(v1.poll_transmit().is_none());
        }
        let mut v2 = Llc::new(config(Role::Server, LlcVersion::V2, 0), 0);
        assert!(v2.handle(&bytes([0x07, 44, 0, 0], &[]), 0).is_ok());
        assert!(v2.poll_transmit().is_some());
    }

    #[test]
    fn too_many_requests_are_refused() {
        let mut p = Pair::active(0);
        let mut n = 0u64;
        while p.client.confirm_rkey(n, 1, 1, 0).is_ok() {
            n = n.saturating_add(1);
        }
        assert_eq!(n, 17);
        assert_eq!(p.client.delete_rkey(1, 0), Err(QueueFull));
        // The link goes: all fail.
        p.client.link_down();
        let mut failed = 0u64;
        while let Some(event) = p.client.poll() {
            let why = Refusal::LinkDown;
            assert_eq!(event, LlcEvent::RkeyRefused { id: failed, why });
            failed = failed.saturating_add(1);
        }
        assert_eq!(failed, 17);
        assert_eq!(p.client.poll_timeout(), None);
    }

    #[test]
    fn test_link_keeps_an_idle_link() {
        let mut p = Pair::active(30_000);
        assert_eq!(p.client.poll_timeout(), Some(30_000));
        p.client.note_rx(100);
        assert_eq!(p.client.poll_timeout(), Some(30_100));
        p.client.handle_timeout(30_100);
        assert_eq!(p.client.poll_timeout(), Some(32_100));
        assert!(p.exchange(30_101));
        assert_eq!(p.client.poll_timeout(), Some(60_101));
        // The server has heard something and does not ask.
        assert_eq!(p.server.poll_timeout(), Some(60_101));
        p.client.handle_timeout(60_101);
        p.client.handle_timeout(62_100);
        assert_eq!(p.client.poll(), None);
        p.client.handle_timeout(62_101);
        assert_eq!(p.client.poll(), Some(LlcEvent::TestLinkFailed));
        assert!(!p.client.active());
    }

    #[test]
    fn test_link_can_be_off_and_echoes() {
        let mut p = Pair::active(0);
        assert_eq!(p.client.poll_timeout(), None);
        let request = bytes([0x27, 44, 0, 0], &[7; 16]);
        assert!(p.client.handle(&request, 1).is_ok());
        let answer = bytes([0x27, 44, 0, 0x80], &[7; 16]);
        assert!(sends(&mut p.client, &answer));
        p.client.test_link(5);
        p.client.test_link(6);
        assert!(sends(&mut p.client, &bytes([0x27, 44, 0, 0], &[])));
        assert!(p.client.poll_transmit().is_none());
        p.client.config.test_period = 10;
        assert!(p.exchange(7));
    }

    #[test]
    fn the_group_is_deleted() {
        let mut p = Pair::active(0);
        p.client.delete_link_all(LinkReason::PROGRAM, true);
        assert!(p.exchange(1));
        let deletes = LlcEvent::PeerDeletesLink {
            all: true,
            orderly: true,
            reason: LinkReason::PROGRAM,
        };
        assert_eq!(p.server.poll(), Some(deletes));
        assert!(!p.client.active() && !p.server.active());
        assert_eq!(p.client.poll(), None);
        // Nothing more goes out.
        assert!(p.server.confirm_rkey(1, 1, 1, 2).is_ok());
        assert!(p.server.poll_transmit().is_none());
        assert!(matches!(
            p.server.poll(),
            Some(LlcEvent::RkeyRefused { id: 1, .. })
        ));
        p.server.delete_link_all(LinkReason::OPERATOR, false);
        assert!(p.server.poll_transmit().is_none());
    }

    #[test]
    fn one_link_is_deleted() {
        let mut p = Pair::active(0);
        let unknown = bytes([0x24, 44, 0, 0x20], &[6, 0, 1, 0, 0]);
        assert!(p.client.handle(&unknown, 1).is_ok());
        let answer = bytes([0x24, 44, 0, 0xa0], &[6, 0, 0x10, 0, 0]);
        assert!(sends(&mut p.client, &answer));
        assert_eq!(p.client.poll(), None);
        let ours = bytes([0x24, 44, 0, 0x20], &[5, 0, 1, 0, 0]);
        assert!(p.client.handle(&ours, 1).is_ok());
        assert!(sends(&mut p.client, &bytes([0x24, 44, 0, 0xa0], &[5])));
        let deletes = LlcEvent::PeerDeletesLink {
            all: false,
            orderly: true,
            reason: LinkReason(0x0001_0000),
        };
        assert_eq!(p.client.poll(), Some(deletes));
    }

    #[test]
    fn other_links_are_refused() {
        let mut p = Pair::active(0);
        let mut long = [9; 100];
        for (to, from) in long.iter_mut().zip([0x22, 100, 0, 0]) {
            *to = from;
        }
        assert!(p.client.handle(&long, 0).is_ok());
        assert!(sends(&mut p.client, &bytes([0x22, 44, 0, 0xc0], &[9; 40])));
        let request = bytes([0x25, 44, 0, 0], &[9; 40]);
        assert!(p.server.handle(&request, 0).is_ok());
        assert!(sends(&mut p.server, &bytes([0x25, 44, 0, 0x80], &[])));
        let mut v1 = Llc::new(config(Role::Server, LlcVersion::V1, 0), 0);
        assert!(v1.handle(&bytes([0x02, 44, 0, 0], &[9; 40]), 0).is_ok());
        assert!(sends(&mut v1, &bytes([0x02, 44, 1, 0xc0], &[9; 40])));
        // Answers to what was not asked.
        for head in [
            [0x22, 44, 0, 0xc0],
            [0x25, 44, 0, 0x80],
            [0x24, 44, 0, 0xe0],
        ] {
            assert!(p.client.handle(&bytes(head, &[]), 0).is_ok());
        }
        assert!(p.client.poll_transmit().is_none());
        assert_eq!(p.client.poll(), None);
    }

    #[test]
    fn unknown_types_are_dropped_and_wrong_ones_told() {
        let mut p = Pair::active(0);
        for kind in [0x03, 0x05, 0x08, 0x2a, 0xfe, 0x31] {
            assert!(p.client.handle(&bytes([kind, 44, 0, 0], &[]), 0).is_ok());
        }
        // A server does not get CONFIRM LINK, a client not twice.
        assert!(p.server.handle(&bytes([0x21, 44, 0, 3], &[]), 0).is_ok());
        assert!(p.client.handle(&bytes([0x21, 44, 0, 3], &[]), 0).is_ok());
        assert!(p.client.poll_transmit().is_none() && p.server.poll_transmit().is_none());
        assert!(p.client.poll().is_none() && p.server.poll().is_none());
        let short = p.client.handle(&[0x27; 43], 0);
        assert_eq!(short, Err(WireError::LlcTruncated));
        let keys = p.client.handle(&bytes([0x29, 44, 0, 0], &[10]), 0);
        assert_eq!(keys, Err(WireError::LlcRkeyCount));
    }

    #[test]
    fn a_flood_ends() {
        let mut p = Pair::active(0);
        let test = bytes([0x27, 44, 0, 0], &[]);
        let mut n = 0u32;
        while p.client.handle(&test, 0).is_ok() && n < 1000 {
            n = n.saturating_add(1);
        }
        assert_eq!(n, 12);
        // A second RKEY request while the first is not answered is dropped.
        let rkey = bytes([0x26, 44, 0, 0], &[]);
        for _ in 0..100 {
            assert!(p.server.handle(&rkey, 0).is_ok());
        }
        assert!(p.server.poll().is_some());
        assert!(p.server.poll().is_none());
    }
}
