/* SPDX-License-Identifier: GPL-2.0 */
/* `static inline` functions and macros of the verbs side that bindgen cannot reach. */
#include <linux/uio.h>
#include <rdma/ib_verbs.h>

size_t smc_rs_iov_iter_count(const struct iov_iter *i);
void smc_rs_iov_iter_advance(struct iov_iter *i, size_t bytes);

void *smc_rs_ring_alloc(size_t len, bool *contiguous);
void smc_rs_ring_free(void *p, size_t len, bool contiguous);
