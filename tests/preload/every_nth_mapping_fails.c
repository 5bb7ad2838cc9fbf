/* SPDX-License-Identifier: MIT */
/*
 * H36, log 19: the kernel refuses every n-th mmap, mremap, mprotect, munmap and madvise of a
 * process, for several n, while four threads allocate, grow, free and trim; for some their first
 * allocation is what fails. Right: NULL with ENOMEM now and then, every byte intact, memory again
 * afterwards. Failure: a crash, a hang, or a block that lost its pages.
 */
#include "claim.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { THREADS = 4, BLOCKS = 300 };

static pthread_barrier_t gate;
static _Atomic unsigned long nulls;

static void *tried(void *p)
{
	if (!p) {
		claim(errno == ENOMEM, "NULL with errno %d", errno);
		nulls++;
	}
	return p;
}

struct block {
	unsigned char *at;
	size_t size;
	unsigned char tag;
};

static void check(const struct block *b)
{
	for (size_t i = 0; b->at && i < b->size; i += b->size < 5000 ? 97 : 4001)
		claim(b->at[i] == b->tag, "byte %zu of %zu: %d, not %d", i, b->size, b->at[i],
		      b->tag);
}

static void fill(struct block *b, void *p, size_t size, unsigned salt)
{
	*b = (struct block){p, size, (unsigned char)salt};
	if (p)
		memset(p, b->tag, size);
}

static void *work(void *which)
{
	unsigned seed = (unsigned)(uintptr_t)which * 77 + 5;
	struct block block[BLOCKS] = {0};

	pthread_barrier_wait(&gate);
	for (unsigned step = 0; step < 6000; step++) {
		seed = seed * 1103515245 + 12345;
		struct block *b = &block[(seed >> 8) % BLOCKS];
		size_t size = (seed >> 16) % 50 == 0  ? (seed >> 4) % (3 << 20) + 1
			      : (seed >> 16) % 5 == 0 ? (seed >> 4) % 100000 + 1
						      : (seed >> 4) % 2000 + 1;
		check(b);
		if (b->at && step % 3 == 0) {
			void *p = tried(realloc(b->at, size));
			if (!p)
				continue;
			struct block kept = {p, size < b->size ? size : b->size, b->tag};
			check(&kept);
			fill(b, p, size, seed >> 20);
			continue;
		}
		free(b->at);
		fill(b, NULL, 0, 0);
		if (step % 4 == 0) {
			unsigned char *p = tried(calloc(1, size));
			for (size_t i = 0; p && i < size; i += 61)
				claim(p[i] == 0, "calloc: byte %zu of %zu is %d", i, size, p[i]);
			fill(b, p, size, seed >> 20);
		} else {
			fill(b, tried(step % 7 ? malloc(size) : memalign(4096, size)), size,
			     seed >> 20);
		}
		if (step % 500 == 499)
			malloc_trim(0);
	}
	for (unsigned i = 0; i < BLOCKS; i++) {
		check(&block[i]);
		free(block[i].at);
	}
	return NULL;
}

/* From here on the listed calls of every thread wait for the parent's word. */
static int listen_to_kernel(void)
{
	static const int calls[] = {SYS_mmap, SYS_mremap, SYS_mprotect, SYS_munmap, SYS_madvise};
	struct sock_filter code[16] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
	unsigned short n = 1;

	for (unsigned i = 0; i < 5; i++)
		code[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], (unsigned char)(5 - i), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	struct sock_fprog program = {n, code};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC |
				    SECCOMP_FILTER_FLAG_TSYNC_ESRCH,
			    &program);
}

static void send_fd(int socket, int fd)
{
	char data = 'x', control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec part = {&data, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	claim(sendmsg(socket, &message, 0) == 1, "sendmsg");
}

static int receive_fd(int socket)
{
	char data, control[CMSG_SPACE(sizeof(int))];
	struct iovec part = {&data, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	int fd = -1;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static int child(int socket)
{
	pthread_t thread[THREADS];

	pthread_barrier_init(&gate, NULL, THREADS + 1);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
	int listener = listen_to_kernel();
	if (listener < 0)
		_exit(CLAIM_SKIP);
	send_fd(socket, listener);
	close(listener);
	pthread_barrier_wait(&gate);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	/* the parent stops refusing when it reads this */
	char word = 'y';
	claim(write(socket, &word, 1) == 1 && read(socket, &word, 1) == 1, "no answer");
	for (size_t size = 16; size < 64 << 20; size *= 2) {
		unsigned char *p = malloc(size);
		claim(p, "no memory of %zu afterwards", size);
		if (p)
			p[0] = p[size - 1] = 1;
		free(p);
	}
	_exit(claim_end());
}

/* Answers until the child ends: every n-th call fails. */
static void refuse_every(unsigned n, int listener, int socket)
{
	unsigned long count = 0;
	bool refuse = true;

	for (;;) {
		struct pollfd ready[2] = {{listener, POLLIN, 0}, {socket, POLLIN, 0}};
		if (poll(ready, 2, 300000) <= 0 || (ready[0].revents & POLLHUP))
			return;
		if (ready[1].revents & POLLIN) {
			char word;
			if (read(socket, &word, 1) != 1)
				return;
			refuse = false;
			claim(write(socket, &word, 1) == 1, "write");
		}
		if (!(ready[0].revents & POLLIN))
			continue;
		struct seccomp_notif ask = {0};
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &ask))
			continue;
		struct seccomp_notif_resp answer = {.id = ask.id};
		if (refuse && ++count % n == 0)
			answer.error = ask.data.nr == SYS_madvise ? -EINVAL : -ENOMEM;
		else
			answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
}

int main(void)
{
	static const unsigned every[] = {1, 2, 3, 5, 8, 50};

	for (size_t i = 0; i < sizeof(every) / sizeof(*every); i++) {
		int ends[2], status;
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
			return 1;
		pid_t pid = fork();
		if (pid == 0)
			child(ends[1]);
		close(ends[1]);
		int listener = receive_fd(ends[0]);
		if (listener >= 0)
			refuse_every(every[i], listener, ends[0]);
		close(listener);
		close(ends[0]);
		for (int ms = 0; waitpid(pid, &status, WNOHANG) == 0; ms++) {
			if (ms == 300000) {
				claim(false, "every %u: the child hangs", every[i]);
				kill(pid, SIGKILL);
			}
			usleep(1000);
		}
		if (WIFEXITED(status) && WEXITSTATUS(status) == CLAIM_SKIP)
			return claim_skip("seccomp has no user notification here");
		claim(WIFEXITED(status) && WEXITSTATUS(status) == 0, "every %u: status %#x",
		      every[i], (unsigned)status);
	}
	return claim_end();
}
