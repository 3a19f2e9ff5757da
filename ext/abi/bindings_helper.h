/* SPDX-License-Identifier: GPL-2.0 */
/* What bindgen reads: kernel headers and the prototypes of our own one-line helpers. */
#include <linux/hrtimer_types.h>
#include <net/sock.h>
#include <net/inet_sock.h>
#include <net/tcp.h>
#include <net/ipv6.h>
#include <net/addrconf.h>
#include <net/inet_common.h>
#include <net/protocol.h>
#include <net/transp_v6.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <rdma/ib_verbs.h>
#include <rdma/ib_cache.h>
#include <linux/irq_poll.h>
#include <linux/kprobes.h>
#include "helpers_sock.h"
#include "helpers_verbs.h"

/* Sizes and offsets as C sees them: what bindgen made is held against these, see layout.rs. */
#define SMC_RS_SIZE(t) static const unsigned long smc_rs_size_##t = sizeof(struct t)
#define SMC_RS_OFFSET(t, f) static const unsigned long smc_rs_off_##t##_##f = offsetof(struct t, f)
SMC_RS_SIZE(socket);
SMC_RS_SIZE(proto);
SMC_RS_SIZE(proto_ops);
SMC_RS_SIZE(msghdr);
SMC_RS_SIZE(inet_protosw);
SMC_RS_SIZE(ctl_table);
SMC_RS_SIZE(pernet_operations);
SMC_RS_SIZE(tcp_ulp_ops);
SMC_RS_SIZE(proto_accept_arg);
SMC_RS_SIZE(wait_queue_entry);
SMC_RS_SIZE(ib_qp_init_attr);
SMC_RS_SIZE(ib_qp_attr);
SMC_RS_SIZE(ib_send_wr);
SMC_RS_SIZE(ib_rdma_wr);
SMC_RS_SIZE(ib_reg_wr);
SMC_RS_SIZE(ib_recv_wr);
SMC_RS_SIZE(ib_wc);
SMC_RS_SIZE(ib_client);
SMC_RS_SIZE(ib_event);
SMC_RS_SIZE(ib_event_handler);
SMC_RS_SIZE(ib_port_attr);
SMC_RS_SIZE(ib_gid_attr);
SMC_RS_SIZE(ib_device);
SMC_RS_SIZE(ib_qp);
SMC_RS_SIZE(ib_mr);
SMC_RS_SIZE(ib_pd);
SMC_RS_OFFSET(proto, owner);
#ifdef CONFIG_KRETPROBES
SMC_RS_SIZE(kretprobe);
SMC_RS_OFFSET(kretprobe, handler);
SMC_RS_OFFSET(kretprobe_instance, data);
#endif
