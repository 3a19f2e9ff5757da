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
#include <linux/kprobes.h>
#include "helpers_sock.h"
#include "helpers_verbs.h"
