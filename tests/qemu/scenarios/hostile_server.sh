# A server that puts the SMC option into its SYN-ACK and then says anything (smct peer list).
# limit: 200

hostile server
