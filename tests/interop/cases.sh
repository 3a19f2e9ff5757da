# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The cases of the interop run, executed by the host (scripts/lab.d/interop.sh). Each
# runs with S, the machine of the server, and C, that of the client: rs (smc_rs) or up
# (upstream's smc.ko).

# Sizes: both directions, more than any ring, in random chunks.
case_data() {
	job data --bytes 1m --chunk 100k
}

# A long transfer: wrap-arounds by the thousand, rings of different sizes.
case_big() {
	SERVER_ARGS=(--sndbuf 64k --rcvbuf 512k)
	job data --bytes 64m --back 64m --chunk 1m --sndbuf 256k --rcvbuf 128k
}

# The server is slow to accept; the client's connect() and first sends must not need it.
case_before_accept() {
	SERVER_ARGS=(--accept-delay-ms 2000 --count 5)
	job data --bytes 100k --parallel 5
}

case_data_tiny() {
	job data --bytes 30k --chunk 3000
}

case_data_small_chunks() {
	job data --bytes 200k --chunk 3000
}

# Rings of different sizes at both ends.
case_unequal() {
	SERVER_ARGS=(--sndbuf 16k --rcvbuf 256k)
	job data --bytes 1m --sndbuf 128k --rcvbuf 16k
	SERVER_ARGS=(--sndbuf 512k --rcvbuf 16k)
	job data --bytes 1m --sndbuf 16k --rcvbuf 128k
}

case_pingpong() {
	job pingpong --size 4k --rounds 50
}

# One after another: rings and the link group are used again.
case_sequence() {
	local i
	for i in 1 2 3 4 5; do
		job data --bytes 60k --seed "$i"
	done
}

case_at_once() {
	SERVER_ARGS=(--count 20)
	job data --bytes 100k --chunk 64k --parallel 20
}

case_hundred() {
	SERVER_ARGS=(--count 100)
	job data --bytes 20k --chunk 20k --parallel 100 --ramp 20
}

case_half_close() {
	job half --bytes 300k --chunk 50k
	job half-back --bytes 300k --chunk 50k
}

case_close_in_flight() {
	# Less than a ring, about a ring, and much more.
	local n
	for n in 10k 100k 1m; do
		job flush --bytes $n --chunk 100k
		job flush-back --bytes $n --chunk 100k
	done
}

case_abort() {
	job abort
	job abort-back
}

case_urgent() {
	job urgent
	job urgent-back
}

# A device is back: SMC-R again, at the latest when both ends have noticed that the old
# link groups are gone. On rxe nothing reaches a device that is being removed, and a
# sender never gives up, so upstream takes up to 40 s.
back_again() {
	local i
	for ((i = 0; i < 30; i++)); do
		EXPECT=any
		job data --bytes 10k
		! grep -q transport=SMC-R "$INTEROP/rs/out/$JOB_CLIENT.log" "$INTEROP/up/out/$JOB_CLIENT.log" 2>/dev/null || break
		sleep 2
	done
	EXPECT=SMC-R
	job data --bytes 100k
	job data --bytes 100k
}

# The device goes away at either end while a connection is idle, and comes back.
case_device_gone() {
	local who
	for who in up rs; do
		listen_for --expect SMC-R '--broken-ok!'
		INTEROP_N=$((INTEROP_N + 1))
		start "$C" "$INTEROP_N" "exec \$SMCT client data --bytes 100000m --addr $(address "$S") --port $PORT --expect SMC-R --broken-ok!"
		local client=$INTEROP_N
		sleep 2
		on rs '$SMCT stat smcr_active --min 1'
		on "$who" 'rdma link del rxe0'
		finish "$C" "$client" 60
		finish "$S" "$SERVER" 60
		note "$who: client: $(tail -n 1 "$INTEROP/$C/out/$client.log"); server: $(tail -n 1 "$INTEROP/$S/out/$SERVER.log")"
		on "$who" device
		sleep 1
		back_again
	done
}

# No device at one end from the start: TCP; and again with it.
case_no_device() {
	local who
	for who in up rs; do
		on "$who" 'rdma link del rxe0'
		EXPECT=TCP
		job data --bytes 300k
		on "$who" device
		sleep 1
		back_again
	done
}

case_short() {
	SERVER_ARGS=(--count 22)
	job short --rounds 20
}

case_kill_client() {
	killed client hold --ms 60000
	killed client data --bytes 100000m
}

case_kill_server() {
	killed server stream --size 64k --bytes 100000m
	killed server data --bytes 100000m
}

# Either side has plain TCP: data passes, the SMC side says so.
case_plain_peer() {
	EXPECT=TCP
	SERVER_ARGS=(--family tcp)
	job data --bytes 300k
	SERVER_ARGS=()
	job data --bytes 300k --family tcp
}
