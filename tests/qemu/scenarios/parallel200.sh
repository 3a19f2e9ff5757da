# 200 connections at once, all SMC-R, all with data both ways.
# limit: 400

net_up
server_up 5200 h1 --count 201 --expect SMC-R --quiet!
# The first connection to a peer makes the link group.
h2 $SMCT client data --port 5200 --expect SMC-R --bytes 1000
note "200 connections"
h2 $SMCT client data --port 5200 --expect SMC-R --bytes 100k --chunk 50k --parallel 200 --quiet!
server_end 5200
no_fallback h1 h2
sockets_gone h1 h2

note "many first contacts at once"
server_up 5201 h1 --count 40 --expect SMC-R --quiet!
h2 $SMCT client data --port 5201 --expect SMC-R --bytes 10k --parallel 40
server_end 5201
sockets_gone h1 h2
