// SPDX-License-Identifier: GPL-2.0
#include <linux/vmalloc.h>
#include <rdma/ib_verbs.h>
#include "helpers_verbs.h"

size_t smc_rs_iov_iter_count(const struct iov_iter *i)
{
	return iov_iter_count(i);
}

void smc_rs_iov_iter_advance(struct iov_iter *i, size_t bytes)
{
	iov_iter_advance(i, bytes);
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
