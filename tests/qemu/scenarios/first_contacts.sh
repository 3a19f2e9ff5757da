# Many first contacts at once, both ways.
# limit: 300

net_up
note "40 connections, no link group yet"
pair data --expect SMC-R --bytes 10k --parallel 40 --quiet!
no_fallback h1 h2
sockets_gone h1 h2
