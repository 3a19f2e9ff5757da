/* SPDX-License-Identifier: GPL-2.0 */
/* C helpers for inline functions and macros (locks, host name). */
struct mutex;
void smc_rs_mutex_lock(struct mutex *lock);
int smc_rs_mutex_lock_interruptible(struct mutex *lock);
void smc_rs_hostname(char *buf, size_t len);
