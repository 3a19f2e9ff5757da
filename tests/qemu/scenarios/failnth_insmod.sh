# insmod with each of its allocations failing in turn: an error and nothing left, or a module that
# works.
# limit: 200
# uml: no fault injection there
# module: none

echo nothing >/sys/module/kunit/parameters/filter_glob

# One device, and one namespace beside the initial one: each has allocations of its own.
ip netns add h1
ip link add v1 type veth peer name v2
ip link set v1 up
rdma link add rxe9 type rxe netdev v1
$SMCT failnth insmod --module /lab/smc_rs.ko --min 40 --verbose!
rdma link del rxe9
ip link del v1
ip netns del h1

note "works after all that"
net_up
insmod /lab/smc_rs.ko
pair data --expect SMC-R --bytes 10k
no_fallback h1 h2
sockets_gone h1 h2
rmmod smc_rs
