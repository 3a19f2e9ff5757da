/* SPDX-License-Identifier: GPL-2.0 */
/* `static inline` functions and macros of the verbs side that bindgen cannot reach. */
#include <linux/completion.h>
#include <linux/uio.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

size_t smc_rs_iov_iter_count(const struct iov_iter *i);

void *smc_rs_ring_alloc(size_t len, bool *contiguous);
void smc_rs_ring_free(void *p, size_t len, bool contiguous);

u64 smc_rs_net_cookie(struct net *net);
void smc_rs_completion_init(struct completion *c);
void smc_rs_completion_reinit(struct completion *c);
void smc_rs_complete(struct completion *c);
bool smc_rs_completion_wait(struct completion *c, unsigned int ms);

struct ib_pd *smc_rs_alloc_pd(struct ib_device *dev);
void smc_rs_dealloc_pd(struct ib_pd *pd);
struct ib_cq *smc_rs_alloc_cq(struct ib_device *dev, int nr_cqe);
struct ib_cq *smc_rs_alloc_send_cq(struct ib_device *dev, void *private, int nr_cqe,
				   ib_comp_handler event);
bool smc_rs_arm_cq(struct ib_cq *cq);
struct ib_qp *smc_rs_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *attr);
void smc_rs_destroy_qp(struct ib_qp *qp);
void smc_rs_dereg_mr(struct ib_mr *mr);
int smc_rs_post_send(struct ib_qp *qp, const struct ib_send_wr *wr);
int smc_rs_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr);
void smc_rs_set_ah(struct rdma_ah_attr *ah, const struct ib_gid_attr *sgid,
		   const u8 *dgid, const u8 *dmac, u8 hop_limit);

u64 smc_rs_dma_map(struct ib_device *dev, void *p, size_t len, bool *error);
void smc_rs_dma_unmap(struct ib_device *dev, u64 addr, size_t len);
bool smc_rs_dma_need_sync(struct ib_device *dev, u64 addr);
void smc_rs_dma_sync(struct ib_device *dev, u64 addr, size_t len, bool to_cpu);
int smc_rs_sgt_map(struct ib_device *dev, struct sg_table *sgt, void *p,
		   size_t len, bool contiguous);
void smc_rs_sgt_unmap(struct ib_device *dev, struct sg_table *sgt);
bool smc_rs_sgt_need_sync(struct ib_device *dev, struct sg_table *sgt);
void smc_rs_sgt_sync(struct ib_device *dev, struct sg_table *sgt, size_t offset,
		     size_t len, bool to_cpu);
int smc_rs_map_mr(struct ib_mr *mr, struct sg_table *sgt);

bool smc_rs_is_ib_ca(struct ib_device *dev);
bool smc_rs_is_roce(struct ib_device *dev, u32 port);
const struct ib_gid_attr *smc_rs_find_gid(struct ib_device *dev, u32 port,
					  struct net *net, int ifindex,
					  const union ib_gid *gid);
bool smc_rs_gid_on_netdev(const struct ib_gid_attr *attr, struct net *net,
			  int ifindex, __be32 addr);
int smc_rs_route_ifindex(struct net *net, __be32 saddr, __be32 daddr, int oif,
			 u32 mark, u32 uid);
int smc_rs_next_hop(const struct ib_gid_attr *attr, __be32 saddr, __be32 daddr,
		    u8 *mac, bool *gateway);
