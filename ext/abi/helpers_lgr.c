// SPDX-License-Identifier: GPL-2.0
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/utsname.h>
#include "helpers_lgr.h"

void smc_rs_mutex_lock(struct mutex *lock)
{
	mutex_lock(lock);
}

int smc_rs_mutex_lock_interruptible(struct mutex *lock)
{
	return mutex_lock_interruptible(lock);
}

void smc_rs_hostname(char *buf, size_t len)
{
	strscpy_pad(buf, init_utsname()->nodename, len);
}
