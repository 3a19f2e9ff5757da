/* SPDX-License-Identifier: GPL-2.0 */
/* `static inline` functions and macros of the verbs side that bindgen cannot reach. */
