/* SPDX-License-Identifier: GPL-2.0 */
/* `static inline` functions and macros of the socket side that bindgen cannot reach. */
struct smc_rs_addr {
	u16 family;
	u16 port;	/* host byte order */
	u8 addr[16];	/* IPv4 in the first four bytes */
};

void smc_rs_spin_lock_bh(spinlock_t *l);
void smc_rs_spin_unlock_bh(spinlock_t *l);
int smc_rs_spin_trylock_bh(spinlock_t *l);

struct workqueue_struct *smc_rs_alloc_workqueue(const char *name);
void smc_rs_drain_workqueue(struct workqueue_struct *wq);
void smc_rs_destroy_workqueue(struct workqueue_struct *wq);

void smc_rs_module_get(struct module *m);

/* struct sock */
void smc_rs_sock_hold(struct sock *sk);
void smc_rs_sock_put(struct sock *sk);
void smc_rs_lock_sock(struct sock *sk);
struct net *smc_rs_sock_net(const struct sock *sk);
u16 smc_rs_sk_family(const struct sock *sk);
int smc_rs_sk_state(const struct sock *sk);
void smc_rs_sk_addr(const struct sock *sk, bool peer, struct smc_rs_addr *addr);
u32 smc_rs_sk_ifindex(const struct sock *sk);
u32 smc_rs_sk_uid(const struct sock *sk);
u64 smc_rs_sk_ino(const struct sock *sk);
bool smc_rs_sk_linger(const struct sock *sk, unsigned long *jiffies);
long smc_rs_rcvtimeo(const struct sock *sk, bool noblock);
long smc_rs_sndtimeo(const struct sock *sk, bool noblock);
int smc_rs_rcvlowat(const struct sock *sk, bool waitall, int len);
int smc_rs_intr_errno(long timeo);
bool smc_rs_signal_pending(void);
bool smc_rs_exiting(void);
int smc_rs_sock_error(struct sock *sk);
void smc_rs_set_err(struct sock *sk, int err);
void smc_rs_wake(struct sock *sk, u32 key, int how, int band);
void smc_rs_wait_begin(struct sock *sk, struct wait_queue_entry *w, bool exclusive);
void smc_rs_wait_end(struct sock *sk, struct wait_queue_entry *w);
void smc_rs_poll_wait(struct file *file, struct socket *sock, struct poll_table_struct *p);
void smc_rs_set_nospace(struct sock *sk);
void smc_rs_clear_nospace(struct sock *sk);

/* The sk's callbacks and its struct socket */
struct smc_rs_callbacks {
	void (*state_change)(struct sock *sk);
	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*error_report)(struct sock *sk);
};
void smc_rs_set_callbacks(struct sock *sk, const struct smc_rs_callbacks *cb,
			  struct smc_rs_callbacks *old);
void smc_rs_set_callbacks_nolock(struct sock *sk, const struct smc_rs_callbacks *cb);
void smc_rs_attach(struct sock *sk, struct socket *sock);
void smc_rs_set_ops(struct socket *sock, const struct proto_ops *ops);
const struct proto_ops *smc_rs_ops(const struct socket *sock);

/* TCP */
const struct tcp_ulp_ops *smc_rs_ulp_ops(const struct sock *sk);
void *smc_rs_ulp_data(const struct sock *sk);
void smc_rs_ulp_set(struct sock *sk, const struct tcp_ulp_ops *ops, void *data);
bool smc_rs_tcp_syn_smc(const struct sock *sk);
bool smc_rs_tcp_has_option(const struct sock *sk);
void smc_rs_tcp_set_syn_smc(struct sock *sk, bool on);
void smc_rs_tcp_set_congested(struct sock *sk, bool (*fn)(const struct sock *sk));
bool smc_rs_req_smc_ok(const struct request_sock *req);
bool smc_rs_tcp_acked(const struct sock *sk);
bool smc_rs_tcp_corked(const struct sock *sk);
int smc_rs_tcp_peek(struct sock *sk, void *buf, int len);
int smc_rs_tcp_consume(struct sock *sk, size_t len);
void smc_rs_tcp_purge(struct sock *sk);
int smc_rs_tcp_send(struct sock *sk, const void *buf, size_t len);
bool smc_rs_tcp_may_offer(struct sock *sk);
void smc_rs_tcp_linger(struct sock *sk, bool on);
struct sock *smc_rs_tcp_accept(struct sock *sk, int *err);
int smc_rs_tcp_connect(struct socket *sock, struct sockaddr_unsized *addr, int len, int flags);
u32 smc_rs_max_backlog(const struct sock *sk);
bool smc_rs_may_migrate(const struct sock *sk);
void smc_rs_have_smc_inc(void);
void smc_rs_have_smc_dec(void);

/* proc, pernet, kprobes */
struct proc_dir_entry *smc_rs_proc_net(struct net *net, const char *name,
				       int (*show)(struct seq_file *, void *));
void smc_rs_proc_net_remove(struct net *net, const char *name);
struct net *smc_rs_seq_net(struct seq_file *m);
void *smc_rs_net_generic(const struct net *net, unsigned int id);
void smc_rs_synchronize_rcu_tasks(void);
#ifdef CONFIG_KRETPROBES
unsigned long smc_rs_regs_arg(struct pt_regs *regs, unsigned int n);
unsigned long smc_rs_regs_ret(struct pt_regs *regs);
#endif

int smc_rs_put_user_int(int val, unsigned long addr);
unsigned long smc_rs_compat_ptr(unsigned long arg);
ssize_t smc_rs_copy_splice(struct socket *sock, loff_t *ppos, struct pipe_inode_info *pipe,
			   size_t len, unsigned int flags);
int smc_rs_create_inner(struct net *net, int family, struct socket *sock, int kern,
			struct module **taken);
void smc_rs_set_rcvlowat_raw(struct sock *sk, int val);
int smc_rs_rcvlowat_raw(const struct sock *sk);
u64 smc_rs_now_ms(void);
bool smc_rs_ipv6_enabled(void);
extern char smc_rs_eids[8 * 33 + 1];
int smc_rs_sk_err(const struct sock *sk);
u32 smc_rs_sk_mark(const struct sock *sk);
bool smc_rs_sk_user_buf(const struct sock *sk, bool rcv, u32 *bytes);
bool smc_rs_sk_oobinline(const struct sock *sk);
void smc_rs_sk_send_sigurg(struct sock *sk);
bool smc_rs_tcp_only_synack(const struct sock *sk);
void smc_rs_sk_become_tcp(struct sock *sk, struct proto *tcp);
void smc_rs_sk_replace_creator(struct sock *sk, struct proto *from, struct proto *to);
bool smc_rs_sk_is_tcp(const struct sock *sk);
struct socket *smc_rs_sk_socket(const struct sock *sk);
