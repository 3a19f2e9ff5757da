// SPDX-License-Identifier: GPL-2.0
#include <net/sock.h>
#include "helpers_sock.h"

void smc_rs_spin_lock_bh(spinlock_t *l)
{
	spin_lock_bh(l);
}

void smc_rs_spin_unlock_bh(spinlock_t *l)
{
	spin_unlock_bh(l);
}

int smc_rs_spin_trylock_bh(spinlock_t *l)
{
	return spin_trylock_bh(l);
}

struct workqueue_struct *smc_rs_alloc_workqueue(const char *name)
{
	return alloc_workqueue("%s", WQ_UNBOUND | WQ_MEM_RECLAIM, 0, name);
}

void smc_rs_drain_workqueue(struct workqueue_struct *wq)
{
	drain_workqueue(wq);
}

void smc_rs_destroy_workqueue(struct workqueue_struct *wq)
{
	destroy_workqueue(wq);
}
