# Many first contacts at once, both ways.
# limit: 300

net_up
note "16 connections, no link group yet"
pair data --expect SMC-R --bytes 10k --parallel 16 --quiet!
no_fallback h1 h2
sockets_gone h1 h2
