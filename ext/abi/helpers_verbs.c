// SPDX-License-Identifier: GPL-2.0
#include <linux/etherdevice.h>
#include <linux/inetdevice.h>
#include <linux/scatterlist.h>
#include <linux/vmalloc.h>
#include <net/ip_fib.h>
#include <net/neighbour.h>
#include <net/route.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>
#include "helpers_verbs.h"

size_t smc_rs_iov_iter_count(const struct iov_iter *i)
{
	return iov_iter_count(i);
}

/* Contiguous pages if they can be had cheaply, else virtually contiguous ones. */
void *smc_rs_ring_alloc(size_t len, bool *contiguous)
{
	struct page *page = NULL;
	int order = get_order(len);

	if (order <= MAX_PAGE_ORDER)
		page = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_COMP |
				   __GFP_NOWARN | __GFP_NORETRY |
				   __GFP_NOMEMALLOC, order);
	*contiguous = page;
	return page ? page_address(page) : vzalloc(len);
}

void smc_rs_ring_free(void *p, size_t len, bool contiguous)
{
	if (contiguous)
		__free_pages(virt_to_page(p), get_order(len));
	else
		vfree(p);
}

u64 smc_rs_net_cookie(struct net *net)
{
	return net->net_cookie;
}

void smc_rs_completion_init(struct completion *c)
{
	init_completion(c);
}

void smc_rs_completion_reinit(struct completion *c)
{
	reinit_completion(c);
}

void smc_rs_complete(struct completion *c)
{
	complete(c);
}

bool smc_rs_completion_wait(struct completion *c, unsigned int ms)
{
	return wait_for_completion_timeout(c, msecs_to_jiffies(ms));
}

struct ib_pd *smc_rs_alloc_pd(struct ib_device *dev)
{
	return ib_alloc_pd(dev, 0);
}

void smc_rs_dealloc_pd(struct ib_pd *pd)
{
	ib_dealloc_pd(pd);
}

struct ib_cq *smc_rs_alloc_cq(struct ib_device *dev, int nr_cqe)
{
	return ib_alloc_cq_any(dev, NULL, nr_cqe, IB_POLL_SOFTIRQ);
}

/* Like any that nobody serves, but smc_rs_arm_cq() lets it call event(cq, private). */
struct ib_cq *smc_rs_alloc_send_cq(struct ib_device *dev, void *private, int nr_cqe,
				   ib_comp_handler event)
{
	struct ib_cq *cq = ib_alloc_cq_any(dev, private, nr_cqe, IB_POLL_DIRECT);

	if (!IS_ERR(cq))
		cq->comp_handler = event;
	return cq;
}

/* True: there are completions already, perhaps without an event. */
bool smc_rs_arm_cq(struct ib_cq *cq)
{
	return ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0;
}

struct ib_qp *smc_rs_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *attr)
{
	return ib_create_qp(pd, attr);
}

void smc_rs_destroy_qp(struct ib_qp *qp)
{
	ib_destroy_qp(qp);
}

void smc_rs_dereg_mr(struct ib_mr *mr)
{
	ib_dereg_mr(mr);
}

int smc_rs_post_send(struct ib_qp *qp, const struct ib_send_wr *wr)
{
	return ib_post_send(qp, wr, NULL);
}

int smc_rs_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr)
{
	return ib_post_recv(qp, wr, NULL);
}

/* The caller keeps its reference on @sgid. */
void smc_rs_set_ah(struct rdma_ah_attr *ah, const struct ib_gid_attr *sgid,
		   const u8 *dgid, const u8 *dmac, u8 hop_limit)
{
	ah->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(ah, sgid->port_num);
	rdma_ah_set_grh(ah, NULL, 0, sgid->index, hop_limit, 0);
	rdma_ah_set_dgid_raw(ah, (void *)dgid);
	ah->grh.sgid_attr = sgid;
	ether_addr_copy(ah->roce.dmac, dmac);
}

u64 smc_rs_dma_map(struct ib_device *dev, void *p, size_t len, bool *error)
{
	u64 addr = ib_dma_map_single(dev, p, len, DMA_BIDIRECTIONAL);

	*error = ib_dma_mapping_error(dev, addr);
	return addr;
}

void smc_rs_dma_unmap(struct ib_device *dev, u64 addr, size_t len)
{
	ib_dma_unmap_single(dev, addr, len, DMA_BIDIRECTIONAL);
}

bool smc_rs_dma_need_sync(struct ib_device *dev, u64 addr)
{
	return !ib_uses_virt_dma(dev) && dma_need_sync(dev->dma_device, addr);
}

void smc_rs_dma_sync(struct ib_device *dev, u64 addr, size_t len, bool to_cpu)
{
	if (to_cpu)
		ib_dma_sync_single_for_cpu(dev, addr, len, DMA_BIDIRECTIONAL);
	else
		ib_dma_sync_single_for_device(dev, addr, len, DMA_BIDIRECTIONAL);
}

/* Describe @len bytes at @p (page aligned) and map them for @dev. */
int smc_rs_sgt_map(struct ib_device *dev, struct sg_table *sgt, void *p,
		   size_t len, bool contiguous)
{
	size_t step = contiguous ? len : PAGE_SIZE;
	struct scatterlist *sg;
	unsigned int i;
	int err;

	err = sg_alloc_table(sgt, len / step, GFP_KERNEL);
	if (err)
		return err;
	for_each_sgtable_sg(sgt, sg, i)
		sg_set_page(sg, contiguous ? virt_to_page(p) :
					     vmalloc_to_page(p + i * step),
			    step, 0);
	err = ib_dma_map_sgtable_attrs(dev, sgt, DMA_BIDIRECTIONAL, 0);
	if (err)
		sg_free_table(sgt);
	return err;
}

void smc_rs_sgt_unmap(struct ib_device *dev, struct sg_table *sgt)
{
	ib_dma_unmap_sgtable_attrs(dev, sgt, DMA_BIDIRECTIONAL, 0);
	sg_free_table(sgt);
}

bool smc_rs_sgt_need_sync(struct ib_device *dev, struct sg_table *sgt)
{
	struct scatterlist *sg;
	unsigned int i;

	if (ib_uses_virt_dma(dev))
		return false;
	for_each_sgtable_dma_sg(sgt, sg, i)
		if (dma_need_sync(dev->dma_device, sg_dma_address(sg)))
			return true;
	return false;
}

/* Sync the bytes [@offset, @offset + @len) of the mapping. */
void smc_rs_sgt_sync(struct ib_device *dev, struct sg_table *sgt, size_t offset,
		     size_t len, bool to_cpu)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		size_t part;

		if (!len)
			break;
		if (offset >= sg_dma_len(sg)) {
			offset -= sg_dma_len(sg);
			continue;
		}
		part = min_t(size_t, len, sg_dma_len(sg) - offset);
		smc_rs_dma_sync(dev, sg_dma_address(sg) + offset, part, to_cpu);
		len -= part;
		offset = 0;
	}
}

int smc_rs_map_mr(struct ib_mr *mr, struct sg_table *sgt)
{
	int n = ib_map_mr_sg(mr, sgt->sgl, sgt->nents, NULL, PAGE_SIZE);

	return n < 0 ? n : n == sgt->nents ? 0 : -EINVAL;
}

bool smc_rs_is_ib_ca(struct ib_device *dev)
{
	return dev->node_type == RDMA_NODE_IB_CA;
}

bool smc_rs_is_roce(struct ib_device *dev, u32 port)
{
	return rdma_protocol_roce(dev, port);
}

/* The RoCEv2 entry for @gid on interface @ifindex of @net, with a reference, or NULL. */
const struct ib_gid_attr *smc_rs_find_gid(struct ib_device *dev, u32 port,
					  struct net *net, int ifindex,
					  const union ib_gid *gid)
{
	const struct ib_gid_attr *attr = NULL;
	struct net_device *ndev;

	rcu_read_lock();
	ndev = dev_get_by_index_rcu(net, ifindex);
	if (ndev)
		attr = rdma_find_gid_by_port(dev, gid,
					     IB_GID_TYPE_ROCE_UDP_ENCAP, port,
					     ndev);
	rcu_read_unlock();
	return IS_ERR(attr) ? NULL : attr;
}

/* Whether @attr is on interface @ifindex of @net, one of whose subnets has @addr in it. */
bool smc_rs_gid_on_netdev(const struct ib_gid_attr *attr, struct net *net,
			  int ifindex, __be32 addr)
{
	const struct in_ifaddr *ifa;
	struct net_device *ndev;
	struct in_device *in;
	bool match = false;

	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	if (!IS_ERR(ndev) && ndev->ifindex == ifindex &&
	    net_eq(dev_net_rcu(ndev), net)) {
		in = __in_dev_get_rcu(ndev);
		if (in)
			in_dev_for_each_ifa_rcu(ifa, in)
				match = match || inet_ifa_match(addr, ifa);
	}
	rcu_read_unlock();
	return match;
}

/*
 * The interface that a connection's packets leave by; the owner of the local address where they
 * never leave the host. 0: no route.
 */
int smc_rs_route_ifindex(struct net *net, __be32 saddr, __be32 daddr, int oif,
			 u32 mark, u32 uid)
{
	struct flowi4 fl4 = {
		.saddr = saddr,
		.daddr = daddr,
		.flowi4_oif = oif,
		.flowi4_mark = mark,
		.flowi4_uid = KUIDT_INIT(uid),
	};
	struct net_device *dev;
	struct rtable *rt;
	int ifindex = 0;

	rt = ip_route_output_key(net, &fl4);
	if (IS_ERR(rt))
		return 0;
	rcu_read_lock();
	dev = dst_dev_rcu(&rt->dst);
	if (dev && dev->flags & IFF_LOOPBACK)
		dev = __ip_dev_find(net, saddr, false) ?: dev;
	if (dev)
		ifindex = dev->ifindex;
	rcu_read_unlock();
	ip_rt_put(rt);
	return ifindex;
}

/* Copy the neighbour's address to @mac. -EAGAIN: not known (resolving has been started). */
static int next_hop_mac(struct rtable *rt, __be32 daddr, u8 *mac)
{
	struct neighbour *n = dst_neigh_lookup(&rt->dst, &daddr);
	int err = -EAGAIN;

	if (!n)
		return -ENOENT;
	if (READ_ONCE(n->nud_state) & NUD_VALID && n->dev->addr_len == ETH_ALEN) {
		neigh_ha_snapshot(mac, n, n->dev);
		err = 0;
	} else {
		neigh_event_send(n, NULL);
	}
	neigh_release(n);
	return err;
}

/*
 * Route from the netdev of @attr to @daddr. 0: @mac and @gateway are set; 1: @daddr is ours;
 * -EAGAIN: the neighbour is not known (yet), @gateway is set; -ENOENT: no route.
 */
int smc_rs_next_hop(const struct ib_gid_attr *attr, __be32 saddr, __be32 daddr,
		    u8 *mac, bool *gateway)
{
	struct flowi4 fl4 = {
		.flowi4_iif = LOOPBACK_IFINDEX, .saddr = saddr, .daddr = daddr,
	};
	struct net_device *ndev;
	struct fib_result res;
	struct rtable *rt;
	int err = -ENOENT;

	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	if (IS_ERR(ndev))
		goto out;
	fl4.flowi4_oif = ndev->ifindex;
	/* With an interface given, the lookup takes what no route leads to for a neighbour. */
	if (fib_lookup(dev_net_rcu(ndev), &fl4, &res, 0))
		goto out;
	rt = ip_route_output_key(dev_net_rcu(ndev), &fl4);
	if (IS_ERR(rt))
		goto out;
	*gateway = rt->rt_uses_gateway;
	if (rt->rt_type == RTN_LOCAL)
		err = 1;
	else if (rt->rt_type == RTN_UNICAST &&
		 (!rt->rt_uses_gateway || rt->rt_gw_family == AF_INET))
		err = next_hop_mac(rt, daddr, mac);
	ip_rt_put(rt);
out:
	rcu_read_unlock();
	return err;
}
