// SPDX-License-Identifier: GPL-2.0

//! What the module shows: `/proc/net/smc`, `/proc/net/smc6`, `/proc/net/smc_lgr`,
//! `/proc/net/smc_stat`.

mod groups;
mod proc;

pub(crate) use self::proc::{
    net_exit,
    net_init, //
};
