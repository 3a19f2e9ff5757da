# A client that puts the SMC option into its SYN and then says anything (smct peer list).
# limit: 200

hostile client
