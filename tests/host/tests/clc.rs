// SPDX-License-Identifier: GPL-2.0

//! Simulated handshakes: each outcome, crossing messages, slow and failing sides, one byte at a
//! time, the end of the stream everywhere.
#![allow(dead_code, unused_imports)]

#[path = "../../../proto/mod.rs"]
mod proto;

mod handshake;

use handshake::{
    fell_back,
    run,
    timed_out,
    End,
    Lower,
    Net,
    Plan, //
};
use proptest::prelude::*;
use proto::{
    clc::{
        samples,
        Client,
        ClientEvent,
        Outcome,
        ResetCause,
        Server,
        ServerEvent, //
    },
    reason::Reason,
};

/// A quick connection.
const LAN: Net = Net {
    latency: 1,
    segment: 1460,
};

/// SMC.
const SMC: End = End::Decided(Outcome::Smc);

/// A fallback.
fn fallback(reason: Reason, peer: Reason) -> End {
    End::Decided(Outcome::Fallback { reason, peer })
}

#[test]
fn smc_on_first_and_later_contact() {
    for first in [true, false] {
        for segment in [1, 7, 1460] {
            let server = Plan {
                first,
                ..Plan::SERVER
            };
            let net = Net { segment, ..LAN };
            assert_eq!(run(net, [Plan::CLIENT, server]), [SMC, SMC]);
        }
    }
}

#[test]
fn either_side_declines_where_it_may() {
    for segment in [1, 1460] {
        let net = Net { segment, ..LAN };
        let fail = Lower::Fail(5);
        let client = |plan: Plan, reason| {
            let want = [
                fallback(reason, Reason::NONE),
                fallback(Reason::PEERDECL, reason),
            ];
            assert_eq!(run(net, [plan, Plan::SERVER]), want);
        };
        client(
            Plan {
                begin: fail,
                ..Plan::CLIENT
            },
            Reason::NOSMCDEV,
        );
        client(
            Plan {
                middle: fail,
                ..Plan::CLIENT
            },
            Reason::TIMEOUT_CL,
        );
        let server = Plan {
            begin: fail,
            ..Plan::SERVER
        };
        let want = [
            fallback(Reason::PEERDECL, Reason::TIMEOUT_CL),
            fallback(Reason::TIMEOUT_CL, Reason::NONE),
        ];
        assert_eq!(run(net, [Plan::CLIENT, server]), want);
    }
}

#[test]
fn confirm_link_fails_on_both_sides() {
    // The server after 2 s, the client after 4 s.
    let client = Plan {
        end: Lower::Fail(4_000),
        ..Plan::CLIENT
    };
    let server = Plan {
        middle: Lower::Fail(2_000),
        ..Plan::SERVER
    };
    let reason = Reason::TIMEOUT_CL;
    let want = [
        fallback(Reason::PEERDECL, reason),
        fallback(reason, Reason::NONE),
    ];
    assert_eq!(run(LAN, [client, server]), want);
}

#[test]
#[cfg_attr(miri, ignore = "hours")]
fn late_declines_cross_at_every_distance() {
    // The client's DECLINE goes out about 5 s after CONFIRM; the server's around that.
    let mut both = 0;
    for latency in [1, 50, 250, 700] {
        for at in (3_000..6_000).step_by(10) {
            let client = Plan {
                end: Lower::Fail(1),
                ..Plan::CLIENT
            };
            let server = Plan {
                middle: Lower::Fail(at),
                ..Plan::SERVER
            };
            for speaks in [true, false] {
                let plans = [Plan { speaks, ..client }, Plan { speaks, ..server }];
                let ends = run(Net { latency, ..LAN }, plans);
                assert!(
                    fell_back(ends[0]) && fell_back(ends[1]),
                    "{latency} {at}: {ends:?}"
                );
                let declined = |end| {
                    matches!(
                        end,
                        End::Decided(Outcome::Fallback {
                            reason: Reason::PEERDECL,
                            ..
                        })
                    )
                };
                both += u32::from(declined(ends[0]) && declined(ends[1]));
            }
        }
    }
    assert!(both > 50, "only {both} crossed");
}

#[test]
fn a_crossed_open_is_tcp() {
    for segment in [1, 1460] {
        let net = Net { segment, ..LAN };
        for other in [
            Plan::CLIENT,
            Plan {
                begin: Lower::Ok(500),
                ..Plan::CLIENT
            },
            Plan {
                begin: Lower::Fail(0),
                ..Plan::CLIENT
            },
            Plan {
                begin: Lower::Fail(1),
                ..Plan::CLIENT
            },
            Plan {
                begin: Lower::Fail(500),
                ..Plan::CLIENT
            },
        ] {
            for speaks in [true, false] {
                let plans = [Plan::CLIENT, other].map(|plan| Plan { speaks, ..plan });
                let ends = run(net, plans);
                assert!(
                    fell_back(ends[0]) && fell_back(ends[1]),
                    "{other:?}: {ends:?}"
                );
            }
        }
        let none = Plan {
            begin: Lower::Fail(0),
            ..Plan::CLIENT
        };
        let ends = run(net, [none, none]);
        assert!(fell_back(ends[0]) && fell_back(ends[1]));
    }
}

#[test]
fn a_socket_connected_to_itself_is_tcp() {
    // All that it sends comes back to itself.
    for offer in [Ok(samples::proposal()), Err(Reason::NOSMCDEV)] {
        let mut c = Client::new(0);
        c.start(offer.as_ref().map_err(|reason| *reason), 0);
        let msg = c.poll_transmit().expect("message");
        assert_eq!(c.on_input(msg.as_slice(), false, 1), msg.as_slice().len());
        c.on_acked(1);
        assert!(c.poll_transmit().is_none());
        assert!(matches!(
            c.poll(),
            Some(ClientEvent::Decided(Outcome::Fallback { .. }))
        ));
    }
}

#[test]
fn a_late_accept_resets() {
    for (delay, want) in [(5_900, SMC), (6_100, End::ResetByPeer)] {
        let server = Plan {
            begin: Lower::Ok(delay),
            ..Plan::SERVER
        };
        let ends = run(LAN, [Plan::CLIENT, server]);
        assert_eq!(ends[1], want);
        assert_eq!(timed_out(ends[0]), want != SMC);
    }
}

#[test]
fn a_silent_client_is_reset() {
    let client = Plan {
        begin: Lower::Hang,
        ..Plan::CLIENT
    };
    let ends = run(LAN, [client, Plan::SERVER]);
    assert!(timed_out(ends[1]));
    let client = Plan {
        middle: Lower::Hang,
        ..Plan::CLIENT
    };
    let ends = run(LAN, [client, Plan::SERVER]);
    assert!(timed_out(ends[1]));
}

#[test]
fn the_stream_may_end_at_each_step() {
    for latency in [1, 10] {
        for at in 0..60 {
            let slow = |plan: Plan| Plan {
                begin: Lower::Ok(5),
                middle: Lower::Ok(5),
                end: Lower::Ok(5),
                ..plan
            };
            let closes = Some(at);
            let net = Net { latency, ..LAN };
            let client = Plan {
                closes,
                ..slow(Plan::CLIENT)
            };
            let ends = run(net, [client, slow(Plan::SERVER)]);
            assert_ne!(ends[1], End::Open);
            let server = Plan {
                closes,
                ..slow(Plan::SERVER)
            };
            let ends = run(net, [slow(Plan::CLIENT), server]);
            assert_ne!(ends[0], End::Open);
        }
    }
}

/// Every prefix of a good conversation, then the end of the stream or other bytes.
#[test]
fn every_prefix_of_what_a_client_says() {
    let mut said = samples::proposal_bytes().as_slice().to_vec();
    let proposal = said.len();
    said.extend(samples::confirm_bytes(&samples::accept(true)).as_slice());
    for n in 0..=said.len() {
        for tail in [&b""[..], b"\0", b"hello"] {
            let mut s = Server::new(0);
            let mut rx = said[..n].to_vec();
            rx.extend(tail);
            let mut consumed = 0;
            let mut outcome = None;
            for _ in 0..5 {
                loop {
                    let eof = tail.is_empty();
                    let n = s.on_input(&rx[consumed..], eof, 1);
                    consumed += n;
                    if n == 0 {
                        break;
                    }
                }
                s.poll_transmit();
                match s.poll() {
                    Some(ServerEvent::Proposal(_)) => s.contact_accept(&samples::accept(true), 1),
                    Some(ServerEvent::Confirm(_)) => {}
                    Some(ServerEvent::Decided(o)) => outcome = Some(o),
                    None => {}
                }
            }
            // Fallback only if there was no whole valid header; consumed whole messages only.
            assert!([0, proposal, said.len()].contains(&consumed));
            match outcome {
                Some(Outcome::Fallback { .. }) => {
                    assert!(consumed == 0 && n < 8, "{n} {tail:?}");
                }
                Some(Outcome::Reset(_)) => assert!(n >= 4 || !tail.is_empty()),
                // A message is not whole yet.
                None => assert!(!tail.is_empty()),
                Some(Outcome::Smc) => panic!("not done"),
            }
        }
    }
}

/// What the lower layers may do.
fn lower(longest: u64) -> impl Strategy<Value = Lower> {
    prop_oneof![
        6 => (0..longest).prop_map(Lower::Ok),
        4 => (0..longest).prop_map(Lower::Fail),
        1 => Just(Lower::Hang),
    ]
}

/// What a side may do.
fn plan() -> impl Strategy<Value = Plan> {
    (
        any::<(bool, bool, bool)>(),
        (lower(7_000), lower(7_000), lower(7_000)),
        prop_oneof![Just(0), 0u64..500],
        prop_oneof![4 => Just(None), 1 => (0u64..14_000).prop_map(Some)],
    )
        .prop_map(
            |((server, first, speaks), (begin, middle, end), lag, closes)| Plan {
                server,
                begin,
                first,
                middle,
                end,
                lag,
                closes,
                speaks,
            },
        )
}

/// So many cases, unless the environment says how many.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(4_000);
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..Default::default()
    }
}

proptest! {
    #![proptest_config(config())]

    /// Whatever happens, no byte of CLC reaches an application, and nobody is SMC alone.
    #[test]
    fn nothing_leaks(
        client in plan(),
        other in plan(),
        latency in prop_oneof![0u64..3, 0u64..400],
        segment in prop_oneof![Just(1usize), 1usize..200, Just(1460)],
    ) {
        let client = Plan { server: false, ..client };
        run(Net { latency, segment }, [client, other]);
    }

    /// The same around failing late on first contact.
    #[test]
    fn nothing_leaks_late(
        fails in (0u64..7_000, 0u64..7_000),
        lags in (0u64..500, 0u64..500),
        speaks in any::<(bool, bool)>(),
        latency in 0u64..700,
        segment in prop_oneof![Just(1usize), Just(1460)],
    ) {
        let client = Plan {
            end: Lower::Fail(fails.0), lag: lags.0, speaks: speaks.0, ..Plan::CLIENT
        };
        let server = Plan {
            middle: Lower::Fail(fails.1), lag: lags.1, speaks: speaks.1, ..Plan::SERVER
        };
        let ends = run(Net { latency, segment }, [client, server]);
        prop_assert!(fell_back(ends[0]) && fell_back(ends[1]), "{:?}", ends);
    }

    /// Any bytes at any state: no panic, and nothing is consumed beyond what is there.
    #[test]
    fn any_bytes_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        head in prop::option::of(any::<(u8, u8, u8, u8)>()),
        state in 0u8..8,
        eof in any::<bool>(),
        time in 0u64..20_000,
    ) {
        let mut bytes = bytes;
        if let (Some((kind, hi, lo, flags)), true) = (head, bytes.len() >= 8) {
            let head = [0xe2, 0xd4, 0xc3, 0xd9, kind % 6, hi % 2, lo, flags];
            bytes[..8].copy_from_slice(&head);
        }
        let mut c = Client::new(0);
        let mut s = Server::new(0);
        let accept = samples::accept(true);
        if state > 0 { c.start(Ok(&samples::proposal()), 0); c.poll_transmit(); c.on_acked(0);
            s.on_input(samples::proposal_bytes().as_slice(), false, 0); s.poll(); }
        if state > 1 { c.on_input(samples::accept_bytes(&accept).as_slice(), false, 0); c.poll();
            s.contact_accept(&accept, 0); s.poll_transmit(); }
        if state > 2 { c.contact_confirm(&accept, 0); c.poll_transmit();
            s.on_input(samples::confirm_bytes(&accept).as_slice(), false, 0); s.poll(); }
        if state > 3 { c.contact_failed(Reason::MEM, 0); s.contact_failed(Reason::MEM, 0); }
        if state > 4 { c.handle_timeout(5_000); s.handle_timeout(1_000); }
        if state > 5 { c.poll_transmit(); s.poll_transmit(); }
        if state > 6 { c.on_acked(5_000); s.on_acked(1_000); }
        for _ in 0..3 {
            prop_assert!(c.on_input(&bytes, eof, time) <= bytes.len());
            prop_assert!(s.on_input(&bytes, eof, time) <= bytes.len());
            c.handle_timeout(time);
            s.handle_timeout(time);
            c.poll_transmit();
            s.poll_transmit();
            c.poll();
            s.poll();
        }
    }
}
