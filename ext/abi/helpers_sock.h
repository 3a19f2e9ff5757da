/* SPDX-License-Identifier: GPL-2.0 */
/* `static inline` functions and macros of the socket side that bindgen cannot reach. */
void smc_rs_spin_lock_bh(spinlock_t *l);
void smc_rs_spin_unlock_bh(spinlock_t *l);
int smc_rs_spin_trylock_bh(spinlock_t *l);

struct workqueue_struct *smc_rs_alloc_workqueue(const char *name);
void smc_rs_drain_workqueue(struct workqueue_struct *wq);
void smc_rs_destroy_workqueue(struct workqueue_struct *wq);
