# 200 connections at once, all SMC-R, all with data both ways. They are made a few at a time: on
# the debug kernel 200 handshakes at once would not fit into CLC's 6 s.
# limit: 400

net_up
note "the first connection makes the link group"
pair data --expect SMC-R --bytes 1000
note "200 connections"
pair data --expect SMC-R --bytes 20k --chunk 10k --parallel 200 --ramp 8 --quiet!
no_fallback h1 h2
sockets_gone h1 h2
