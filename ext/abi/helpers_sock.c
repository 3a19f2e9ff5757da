// SPDX-License-Identifier: GPL-2.0
#include <linux/filter.h>
#include <linux/jump_label.h>
#include <linux/kprobes.h>
#include <linux/moduleparam.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/splice.h>
#include <linux/uaccess.h>
#include <linux/compat.h>
#include <linux/workqueue.h>
#include <net/inet_common.h>
#include <net/inet_connection_sock.h>
#include <net/ipv6.h>
#include <net/netns/generic.h>
#include <net/psp.h>
#include <net/sock.h>
#include <net/sock_reuseport.h>
#include <net/tcp.h>
#include <net/xfrm.h>
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

/*
 * Not drain_workqueue(): that refuses, and so loses, what softirqs and timers queue meanwhile. Each
 * round waits for what is queued; items queue others a few times in a row at most.
 */
void smc_rs_drain_workqueue(struct workqueue_struct *wq)
{
	int i;

	for (i = 0; i < 8; i++)
		flush_workqueue(wq);
}

void smc_rs_destroy_workqueue(struct workqueue_struct *wq)
{
	destroy_workqueue(wq);
}

void smc_rs_module_get(struct module *m)
{
	__module_get(m);
}

void smc_rs_sock_hold(struct sock *sk)
{
	sock_hold(sk);
}

void smc_rs_sock_put(struct sock *sk)
{
	sock_put(sk);
}

void smc_rs_lock_sock(struct sock *sk)
{
	lock_sock(sk);
}

struct net *smc_rs_sock_net(const struct sock *sk)
{
	return sock_net(sk);
}

u16 smc_rs_sk_family(const struct sock *sk)
{
	return READ_ONCE(sk->sk_family);
}

int smc_rs_sk_state(const struct sock *sk)
{
	return inet_sk_state_load(sk);
}

void smc_rs_sk_addr(const struct sock *sk, bool peer, struct smc_rs_addr *addr)
{
	const struct inet_sock *inet = inet_sk(sk);

	memset(addr, 0, sizeof(*addr));
	addr->family = sk->sk_family;
	addr->port = peer ? ntohs(inet->inet_dport) : inet->inet_num;
	if (sk->sk_family == AF_INET6)
		memcpy(addr->addr, peer ? &sk->sk_v6_daddr : &sk->sk_v6_rcv_saddr, 16);
	else
		memcpy(addr->addr, peer ? &sk->sk_daddr : &sk->sk_rcv_saddr, 4);
}

u32 smc_rs_sk_ifindex(const struct sock *sk)
{
	return READ_ONCE(sk->sk_bound_dev_if);
}

u32 smc_rs_sk_uid(const struct sock *sk)
{
	return from_kuid_munged(sock_net(sk)->user_ns, sk_uid(sk));
}

u64 smc_rs_sk_ino(const struct sock *sk)
{
	return sock_i_ino(sk);
}

bool smc_rs_sk_linger(const struct sock *sk, unsigned long *jiffies)
{
	*jiffies = READ_ONCE(sk->sk_lingertime);
	return sock_flag(sk, SOCK_LINGER);
}

long smc_rs_rcvtimeo(const struct sock *sk, bool noblock)
{
	return sock_rcvtimeo(sk, noblock);
}

long smc_rs_sndtimeo(const struct sock *sk, bool noblock)
{
	return sock_sndtimeo(sk, noblock);
}

int smc_rs_rcvlowat(const struct sock *sk, bool waitall, int len)
{
	return sock_rcvlowat(sk, waitall, len);
}

int smc_rs_intr_errno(long timeo)
{
	return sock_intr_errno(timeo);
}

bool smc_rs_signal_pending(void)
{
	return signal_pending(current);
}

bool smc_rs_exiting(void)
{
	return current->flags & PF_EXITING;
}

int smc_rs_sock_error(struct sock *sk)
{
	return sock_error(sk);
}

void smc_rs_set_err(struct sock *sk, int err)
{
	WRITE_ONCE(sk->sk_err, err);
}

/* Wakes sleepers and SIGIO owners, by sk_wq under RCU: sk_socket may change under us. */
void smc_rs_wake(struct sock *sk, u32 key, int how, int band)
{
	struct socket_wq *wq;

	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_sync_poll(&wq->wait, (__force __poll_t)key);
	sk_wake_async_rcu(sk, how, band);
	rcu_read_unlock();
}

void smc_rs_wait_begin(struct sock *sk, struct wait_queue_entry *w, bool exclusive)
{
	init_waitqueue_func_entry(w, woken_wake_function);
	w->private = current;
	w->flags = 0;
	if (exclusive)
		add_wait_queue_exclusive(sk_sleep(sk), w);
	else
		add_wait_queue(sk_sleep(sk), w);
	/* Pairs with that of skwq_has_sleeper(): the condition is looked at after this. */
	smp_mb();
}

void smc_rs_wait_end(struct sock *sk, struct wait_queue_entry *w)
{
	remove_wait_queue(sk_sleep(sk), w);
}

void smc_rs_poll_wait(struct file *file, struct socket *sock, struct poll_table_struct *p)
{
	sock_poll_wait(file, sock, p);
}

void smc_rs_set_nospace(struct sock *sk)
{
	struct socket_wq *wq;

	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (wq)
		set_bit(SOCKWQ_ASYNC_NOSPACE, &wq->flags);
	rcu_read_unlock();
}

void smc_rs_clear_nospace(struct sock *sk)
{
	struct socket_wq *wq;

	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (wq)
		clear_bit(SOCKWQ_ASYNC_NOSPACE, &wq->flags);
	rcu_read_unlock();
}

void smc_rs_set_callbacks_nolock(struct sock *sk, const struct smc_rs_callbacks *cb)
{
	WRITE_ONCE(sk->sk_state_change, cb->state_change);
	WRITE_ONCE(sk->sk_data_ready, cb->data_ready);
	WRITE_ONCE(sk->sk_write_space, cb->write_space);
	WRITE_ONCE(sk->sk_error_report, cb->error_report);
}

void smc_rs_set_callbacks(struct sock *sk, const struct smc_rs_callbacks *cb,
			  struct smc_rs_callbacks *old)
{
	write_lock_bh(&sk->sk_callback_lock);
	if (old) {
		old->state_change = sk->sk_state_change;
		old->data_ready = sk->sk_data_ready;
		old->write_space = sk->sk_write_space;
		old->error_report = sk->sk_error_report;
	}
	smc_rs_set_callbacks_nolock(sk, cb);
	write_unlock_bh(&sk->sk_callback_lock);
}

/* By hand, not by sock_graft(): keeps sk_uid and the labels of the first real graft. */
void smc_rs_attach(struct sock *sk, struct socket *sock)
{
	write_lock_bh(&sk->sk_callback_lock);
	rcu_assign_pointer(sk->sk_wq, sock ? &sock->wq : NULL);
	WRITE_ONCE(sk->sk_socket, sock);
	if (sock)
		sock->sk = sk;
	write_unlock_bh(&sk->sk_callback_lock);
}

void smc_rs_set_ops(struct socket *sock, const struct proto_ops *ops)
{
	WRITE_ONCE(sock->ops, ops);
}

const struct proto_ops *smc_rs_ops(const struct socket *sock)
{
	return READ_ONCE(sock->ops);
}

const struct tcp_ulp_ops *smc_rs_ulp_ops(const struct sock *sk)
{
	/* Pairs with the release in smc_rs_ulp_set(): who sees our ops sees the data. */
	return smp_load_acquire(&inet_csk(sk)->icsk_ulp_ops);
}

void *smc_rs_ulp_data(const struct sock *sk)
{
	return rcu_access_pointer(inet_csk(sk)->icsk_ulp_data);
}

void smc_rs_ulp_set(struct sock *sk, const struct tcp_ulp_ops *ops, void *data)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	/* A reader that sees our ops must see the data: clear in the opposite order. */
	if (ops) {
		rcu_assign_pointer(icsk->icsk_ulp_data, data);
		smp_store_release(&icsk->icsk_ulp_ops, ops);
	} else {
		WRITE_ONCE(icsk->icsk_ulp_ops, NULL);
		rcu_assign_pointer(icsk->icsk_ulp_data, NULL);
	}
}

bool smc_rs_tcp_syn_smc(const struct sock *sk)
{
	return READ_ONCE(tcp_sk(sk)->syn_smc);
}

/*
 * Whether both ends of a client's connection offered SMC. TCP clears syn_smc when the option lacks
 * in a SYN-ACK, but not when it lacks in a SYN that crossed ours.
 */
bool smc_rs_tcp_has_option(const struct sock *sk)
{
	return READ_ONCE(tcp_sk(sk)->syn_smc) && tcp_sk(sk)->rx_opt.smc_ok;
}

void smc_rs_tcp_set_syn_smc(struct sock *sk, bool on)
{
	WRITE_ONCE(tcp_sk(sk)->syn_smc, on);
}

void smc_rs_tcp_set_congested(struct sock *sk, bool (*fn)(const struct sock *sk))
{
	WRITE_ONCE(tcp_sk(sk)->smc_hs_congested, fn);
}

bool smc_rs_req_smc_ok(const struct request_sock *req)
{
	return inet_rsk(req)->smc_ok;
}

bool smc_rs_tcp_acked(const struct sock *sk)
{
	return READ_ONCE(tcp_sk(sk)->snd_una) == READ_ONCE(tcp_sk(sk)->write_seq);
}

bool smc_rs_tcp_corked(const struct sock *sk)
{
	return tcp_sk(sk)->nonagle & TCP_NAGLE_CORK;
}

/*
 * Copies up to len unread bytes from the receive queue without consuming them, under lock_sock.
 * Not by MSG_PEEK: SO_PEEK_OFF of the user would shift it.
 */
int smc_rs_tcp_peek(struct sock *sk, void *buf, int len)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 seq = tp->copied_seq;
	struct sk_buff *skb;
	int copied = 0;

	skb_queue_walk(&sk->sk_receive_queue, skb) {
		u32 off = seq - TCP_SKB_CB(skb)->seq;
		int n;

		if (off >= skb->len)
			continue;
		n = min_t(int, skb->len - off, len - copied);
		if (skb_copy_bits(skb, off, buf + copied, n))
			break;
		copied += n;
		seq += n;
		if (copied == len)
			break;
	}
	return copied;
}

static int smc_rs_consume_actor(read_descriptor_t *desc, struct sk_buff *skb,
				unsigned int offset, size_t len)
{
	size_t n = min(desc->count, len);

	desc->count -= n;
	return n;
}

int smc_rs_tcp_consume(struct sock *sk, size_t len)
{
	read_descriptor_t desc = { .count = len };
	struct tcp_sock *tp = tcp_sk(sk);

	/* tcp_read_sock() stops at an urgent byte; in what isn't an application's it means nothing. */
	if (tp->urg_data && tp->urg_seq - tp->copied_seq < len)
		WRITE_ONCE(tp->urg_data, 0);
	return tcp_read_sock(sk, &desc, smc_rs_consume_actor);
}

/* Throws the receive queue away, as tcp_disconnect() does; under lock_sock. */
void smc_rs_tcp_purge(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	__skb_queue_purge(&sk->sk_receive_queue);
	WRITE_ONCE(tp->copied_seq, tp->rcv_nxt);
	WRITE_ONCE(tp->urg_data, 0);
}

/* Sends past cork and Nagle, never sleeping; under lock_sock, with sk_socket set. */
int smc_rs_tcp_send(struct sock *sk, const void *buf, size_t len)
{
	struct kvec v = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	u8 nonagle = tcp_sk(sk)->nonagle;
	int rc;

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &v, 1, len);
	tcp_sk(sk)->nonagle = TCP_NAGLE_OFF;
	rc = tcp_sendmsg_locked(sk, &msg, len);
	tcp_sk(sk)->nonagle = nonagle;
	return rc;
}

/*
 * Whether nothing that the user configured on the TCP flow would be bypassed by moving the
 * payload to RDMA, and the SYN can carry the option; under lock_sock.
 */
bool smc_rs_tcp_may_offer(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tp->repair || tp->fastopen_connect || tp->fastopen_req)
		return false;
	if (sk->sk_max_pacing_rate != ~0UL)
		return false;
	if (rcu_access_pointer(inet_sk(sk)->inet_opt))
		return false;
#ifdef CONFIG_TCP_MD5SIG
	if (rcu_access_pointer(tp->md5sig_info))
		return false;
#endif
#ifdef CONFIG_TCP_AO
	if (rcu_access_pointer(tp->ao_info))
		return false;
#endif
#ifdef CONFIG_XFRM
	if (rcu_access_pointer(sk->sk_policy[0]) || rcu_access_pointer(sk->sk_policy[1]))
		return false;
#endif
	return !sk->sk_user_data;
}

/* What the final tcp_close() does: reset (on) or an orderly FIN that never lingers. */
void smc_rs_tcp_linger(struct sock *sk, bool on)
{
	WRITE_ONCE(sk->sk_lingertime, 0);
	sock_valbool_flag(sk, SOCK_LINGER, on);
}

struct sock *smc_rs_tcp_accept(struct sock *sk, int *err)
{
	struct proto_accept_arg arg = { .flags = O_NONBLOCK, .err = -EINVAL };
	struct sock *child = READ_ONCE(sk->sk_prot)->accept(sk, &arg);

	*err = arg.err;
	return child;
}

int smc_rs_tcp_connect(struct socket *sock, struct sockaddr_unsized *addr, int len, int flags)
{
	return __inet_stream_connect(sock, addr, len, flags, 0);
}

u32 smc_rs_max_backlog(const struct sock *sk)
{
	return READ_ONCE(sk->sk_max_ack_backlog);
}

/*
 * Whether requests and children may be moved to another listener of the reuseport group, which may
 * be plain TCP's; see reuseport_migrate_sock().
 */
bool smc_rs_may_migrate(const struct sock *sk)
{
	const struct sock_reuseport *reuse;
	const struct bpf_prog *prog;
	bool may = false;

	rcu_read_lock();
	reuse = rcu_dereference(sk->sk_reuseport_cb);
	if (reuse) {
		prog = rcu_dereference(reuse->prog);
		may = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_migrate_req) ||
		      (prog && prog->expected_attach_type ==
				       BPF_SK_REUSEPORT_SELECT_OR_MIGRATE);
	}
	rcu_read_unlock();
	return may;
}

void smc_rs_have_smc_inc(void)
{
	static_branch_inc(&tcp_have_smc);
}

void smc_rs_have_smc_dec(void)
{
	static_branch_dec(&tcp_have_smc);
}

struct proc_dir_entry *smc_rs_proc_net(struct net *net, const char *name,
				       int (*show)(struct seq_file *, void *))
{
	return proc_create_net_single(name, 0444, net->proc_net, show, NULL);
}

void smc_rs_proc_net_remove(struct net *net, const char *name)
{
	remove_proc_entry(name, net->proc_net);
}

struct net *smc_rs_seq_net(struct seq_file *m)
{
	return seq_file_single_net(m);
}

void *smc_rs_net_generic(const struct net *net, unsigned int id)
{
	return net_generic(net, id);
}

/* A macro where tasks are never preempted. */
void smc_rs_synchronize_rcu_tasks(void)
{
	synchronize_rcu_tasks();
}

#ifdef CONFIG_KRETPROBES
unsigned long smc_rs_regs_arg(struct pt_regs *regs, unsigned int n)
{
	return regs_get_kernel_argument(regs, n);
}

unsigned long smc_rs_regs_ret(struct pt_regs *regs)
{
	return regs_return_value(regs);
}
#endif

int smc_rs_put_user_int(int val, unsigned long addr)
{
	return put_user(val, (int __user *)addr);
}

unsigned long smc_rs_compat_ptr(unsigned long arg)
{
#ifdef CONFIG_COMPAT
	return (unsigned long)compat_ptr(arg);
#else
	return arg;
#endif
}

ssize_t smc_rs_copy_splice(struct socket *sock, loff_t *ppos, struct pipe_inode_info *pipe,
			   size_t len, unsigned int flags)
{
	if (!sock->file)
		return -EOPNOTSUPP;
	return copy_splice_read(sock->file, ppos, pipe, len, flags);
}

/*
 * Makes a TCP sock and grafts it to the user's socket, whose family is ours. The inner socket
 * never had a file: without its sock it releases cleanly.
 */
int smc_rs_create_inner(struct net *net, int family, struct socket *sock, int kern,
			struct module **taken)
{
	struct socket *inner;
	struct sock *sk;
	int rc;

	rc = __sock_create(net, family, SOCK_STREAM, IPPROTO_TCP, &inner, kern);
	if (rc)
		return rc;
	sk = inner->sk;
	*taken = inner->ops->owner;
	inner->sk = NULL;
	sock_graft(sk, sock);
	if (test_bit(SOCK_SUPPORT_ZC, &inner->flags))
		set_bit(SOCK_SUPPORT_ZC, &sock->flags);
	sock_release(inner);
	return 0;
}

void smc_rs_set_rcvlowat_raw(struct sock *sk, int val)
{
	WRITE_ONCE(sk->sk_rcvlowat, val);
}

int smc_rs_rcvlowat_raw(const struct sock *sk)
{
	return READ_ONCE(sk->sk_rcvlowat);
}

u64 smc_rs_now_ms(void)
{
	return ktime_to_ms(ktime_get());
}

bool smc_rs_ipv6_enabled(void)
{
	return ipv6_mod_enabled();
}

char smc_rs_eids[8 * 33 + 1] = "SMC-RS-DEFAULT";
module_param_string(eids, smc_rs_eids, sizeof(smc_rs_eids), 0444);
MODULE_PARM_DESC(eids, "Enterprise ids, separated by commas, the most preferred first");

int smc_rs_sk_err(const struct sock *sk)
{
	return READ_ONCE(sk->sk_err);
}

u32 smc_rs_sk_mark(const struct sock *sk)
{
	return READ_ONCE(sk->sk_mark);
}

/* The buffer size that the user set, as he gave it (the core doubles it). */
bool smc_rs_sk_user_buf(const struct sock *sk, bool rcv, u32 *bytes)
{
	*bytes = (rcv ? READ_ONCE(sk->sk_rcvbuf) : READ_ONCE(sk->sk_sndbuf)) / 2;
	return sk->sk_userlocks & (rcv ? SOCK_RCVBUF_LOCK : SOCK_SNDBUF_LOCK);
}

bool smc_rs_sk_oobinline(const struct sock *sk)
{
	return sock_flag(sk, SOCK_URGINLINE);
}

void smc_rs_sk_send_sigurg(struct sock *sk)
{
	read_lock_bh(&sk->sk_callback_lock);
	sk_send_sigurg(sk);
	read_unlock_bh(&sk->sk_callback_lock);
}

bool smc_rs_tcp_only_synack(const struct sock *sk)
{
	return READ_ONCE(tcp_sk(sk)->segs_in) <= 1;
}

void smc_rs_sk_become_tcp(struct sock *sk, struct proto *tcp)
{
	sk->sk_protocol = IPPROTO_TCP;
	sk->sk_prot = tcp;
}

void smc_rs_sk_replace_creator(struct sock *sk, struct proto *from, struct proto *to)
{
	if (sk->sk_prot_creator == from)
		sk->sk_prot_creator = to;
}

bool smc_rs_sk_is_tcp(const struct sock *sk)
{
	return sk->sk_protocol == IPPROTO_TCP;
}

struct socket *smc_rs_sk_socket(const struct sock *sk)
{
	return READ_ONCE(sk->sk_socket);
}
