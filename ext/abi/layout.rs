// SPDX-License-Identifier: GPL-2.0

//! Holds the layouts that bindgen made against the C compiler's, at build time.

use super::bindings;
use core::mem::offset_of;

macro_rules! sizes {
    ($($t:ident: $c:ident),* $(,)?) => {$(
        const _: () = assert!(size_of::<bindings::$t>() == bindings::$c as usize);
    )*};
}

macro_rules! offsets {
    ($($t:ident.$f:ident: $c:ident),* $(,)?) => {$(
        const _: () = assert!(offset_of!(bindings::$t, $f) == bindings::$c as usize);
    )*};
}

sizes! {
    socket: smc_rs_size_socket,
    proto: smc_rs_size_proto,
    proto_ops: smc_rs_size_proto_ops,
    msghdr: smc_rs_size_msghdr,
    inet_protosw: smc_rs_size_inet_protosw,
    ctl_table: smc_rs_size_ctl_table,
    pernet_operations: smc_rs_size_pernet_operations,
    tcp_ulp_ops: smc_rs_size_tcp_ulp_ops,
    proto_accept_arg: smc_rs_size_proto_accept_arg,
    wait_queue_entry: smc_rs_size_wait_queue_entry,
    ib_qp_init_attr: smc_rs_size_ib_qp_init_attr,
    ib_qp_attr: smc_rs_size_ib_qp_attr,
    ib_send_wr: smc_rs_size_ib_send_wr,
    ib_rdma_wr: smc_rs_size_ib_rdma_wr,
    ib_reg_wr: smc_rs_size_ib_reg_wr,
    ib_recv_wr: smc_rs_size_ib_recv_wr,
    ib_wc: smc_rs_size_ib_wc,
    ib_client: smc_rs_size_ib_client,
    ib_event: smc_rs_size_ib_event,
    ib_event_handler: smc_rs_size_ib_event_handler,
    ib_port_attr: smc_rs_size_ib_port_attr,
    ib_gid_attr: smc_rs_size_ib_gid_attr,
    ib_device: smc_rs_size_ib_device,
    ib_qp: smc_rs_size_ib_qp,
    ib_mr: smc_rs_size_ib_mr,
    ib_pd: smc_rs_size_ib_pd,
}

offsets! {
    proto.owner: smc_rs_off_proto_owner,
}

#[cfg(CONFIG_KRETPROBES)]
sizes! {
    kretprobe: smc_rs_size_kretprobe,
}

#[cfg(CONFIG_KRETPROBES)]
offsets! {
    kretprobe.handler: smc_rs_off_kretprobe_handler,
    kretprobe_instance.data: smc_rs_off_kretprobe_instance_data,
}
