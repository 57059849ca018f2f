/*
 * A library that is preloaded into a server (LD_PRELOAD, ld.so(8)) and gives it one suspected cause of slowness:
 * reads that return fewer bytes, further system calls or yields of the core for each read, or a smaller receive buffer.
 *
 * It stands before the functions of the C library that accept connections and read from them, and makes their system calls itself. It
 * touches only connections that were accepted, so names that are looked up and files are read as always. It needs no library, so the
 * same file is loaded by glibc and musl.
 *
 * NARROWS_INJECT says what to do: `cap=BYTES`, `calls=THOUSANDTHS`, `yields=THOUSANDTHS`, `buffer=BYTES`, with commas between them.
 * `calls` and `yields` are in thousandths for each read. The rest is kept for the next read. `buffer` is the size that getsockopt(2)
 * then returns for SO_RCVBUF. Without options it only makes the system calls; the other arms are compared with that arm.
 *
 * A connection that is waited for with EPOLLET is not capped. The kernel tells of its bytes once, and a program such as nginx, or any on
 * tokio, takes a read that returns less than it asked for as the end of them. It would wait for the rest for ever.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>

extern int *__errno_location(void);
extern char **environ;

static size_t cap;
static unsigned long calls, yields, buffer;

/* Which descriptors are connections that were accepted, and which of these are waited for with EPOLLET. Larger ones are left alone. */
enum { MOST_FILES = 1 << 20 };
enum kind { OTHER, ACCEPTED, ACCEPTED_EDGE };
static unsigned char kinds[MOST_FILES];

static long system_call(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#else
#error "this processor is not supported"
#endif
}

/* What follows `name=` in a list of options; nothing if it has none. */
static const char *value_of(const char *text, const char *name) {
    while (*text) {
        const char *here = text, *wanted = name;
        while (*wanted && *here == *wanted) here++, wanted++;
        if (!*wanted && *here == '=') return here + 1;
        while (*text && *text != ',') text++;
        if (*text == ',') text++;
    }
    return "";
}

static unsigned long number(const char *text) {
    unsigned long sum = 0;
    while (*text >= '0' && *text <= '9' && sum < 1UL << 40) sum = sum * 10 + (unsigned long)(*text++ - '0');
    return sum;
}

__attribute__((constructor)) static void begin(void) {
    for (char **each = environ; each && *each; each++) {
        const char *said = value_of(*each, "NARROWS_INJECT");
        if (!*said) continue;
        cap = number(value_of(said, "cap"));
        calls = number(value_of(said, "calls"));
        yields = number(value_of(said, "yields"));
        buffer = number(value_of(said, "buffer"));
    }
}

/* What the C library returns for this result of a system call. */
static ssize_t returned(long result) {
    if (result >= 0) return result;
    *__errno_location() = (int)-result;
    return -1;
}

/* Thousandths of calls and of yields that this thread still has to make. */
static _Thread_local unsigned long owed_calls, owed_yields;

static void pay(unsigned long *owed, unsigned long more, long call) {
    for (*owed += more; *owed >= 1000; *owed -= 1000) system_call(call, 0, 0, 0, 0, 0, 0);
}

/* What a read of a connection returns. Reads that found nothing count too, because they are counted where doses come from. */
static ssize_t ended(long result) {
    if (result >= 0 || result == -EAGAIN) {
        pay(&owed_calls, calls, SYS_getppid);
        pay(&owed_yields, yields, SYS_sched_yield);
    }
    return returned(result);
}

static enum kind kind_of(int fd) {
    return fd >= 0 && fd < MOST_FILES ? kinds[fd] : OTHER;
}

static int is_accepted(int fd) {
    return kind_of(fd) != OTHER;
}

static void mark(long fd, enum kind kind) {
    if (fd >= 0 && fd < MOST_FILES) kinds[fd] = (unsigned char)kind;
}

/* Whether a read is capped. Who asks for all bytes, or looks at them only, gets them. */
static int is_capped(int fd, int flags) {
    return cap && kind_of(fd) == ACCEPTED && !(flags & (MSG_WAITALL | MSG_PEEK | MSG_TRUNC));
}

static size_t capped(int fd, size_t length, int flags) {
    return is_capped(fd, flags) && length > cap ? cap : length;
}

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event) {
    long result = system_call(SYS_epoll_ctl, epoll, op, fd, (long)event, 0, 0);
    if (result == 0 && op != EPOLL_CTL_DEL && is_accepted(fd)) mark(fd, event->events & EPOLLET ? ACCEPTED_EDGE : ACCEPTED);
    return (int)returned(result);
}

int accept4(int fd, struct sockaddr *restrict from, socklen_t *restrict size, int flags) {
    long connection = system_call(SYS_accept4, fd, (long)from, (long)size, flags, 0, 0);
    mark(connection, ACCEPTED);
    if (connection >= 0 && buffer) {
        /* The kernel doubles what it is told. */
        int half = (int)(buffer / 2);
        system_call(SYS_setsockopt, connection, SOL_SOCKET, SO_RCVBUF, (long)&half, sizeof half, 0);
    }
    return (int)returned(connection);
}

int accept(int fd, struct sockaddr *restrict from, socklen_t *restrict size) {
    return accept4(fd, from, size, 0);
}

int close(int fd) {
    mark(fd, OTHER);
    return (int)returned(system_call(SYS_close, fd, 0, 0, 0, 0, 0));
}

ssize_t recvfrom(int fd, void *restrict to, size_t length, int flags, struct sockaddr *restrict from,
                 socklen_t *restrict size) {
    long result = system_call(SYS_recvfrom, fd, (long)to, (long)capped(fd, length, flags), flags, (long)from, (long)size);
    return is_accepted(fd) ? ended(result) : returned(result);
}

ssize_t recv(int fd, void *to, size_t length, int flags) {
    return recvfrom(fd, to, length, flags, NULL, NULL);
}

ssize_t read(int fd, void *to, size_t length) {
    if (!is_accepted(fd)) return returned(system_call(SYS_read, fd, (long)to, (long)length, 0, 0, 0));
    return ended(system_call(SYS_read, fd, (long)to, (long)capped(fd, length, 0), 0, 0, 0));
}

/* As many of these parts as the cap allows. */
enum { MOST_PARTS = 64 };

static int capped_parts(struct iovec *parts, const struct iovec *given, int count) {
    size_t left = cap;
    int kept = 0;
    while (kept < count && kept < MOST_PARTS && left > 0) {
        parts[kept] = given[kept];
        if (parts[kept].iov_len > left) parts[kept].iov_len = left;
        left -= parts[kept].iov_len;
        kept++;
    }
    return kept;
}

ssize_t readv(int fd, const struct iovec *given, int count) {
    struct iovec parts[MOST_PARTS];
    if (is_capped(fd, 0)) {
        count = capped_parts(parts, given, count);
        given = parts;
    }
    long result = system_call(SYS_readv, fd, (long)given, count, 0, 0, 0);
    return is_accepted(fd) ? ended(result) : returned(result);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    struct iovec parts[MOST_PARTS];
    struct msghdr asked = *message;
    /* In musl these are shorter, and what stands behind them is not set. */
    asked.msg_iovlen = (unsigned)message->msg_iovlen;
    asked.msg_controllen = (unsigned)message->msg_controllen;
    if (is_capped(fd, flags)) {
        asked.msg_iov = parts;
        asked.msg_iovlen = (size_t)capped_parts(parts, message->msg_iov, (int)asked.msg_iovlen);
    }
    long result = system_call(SYS_recvmsg, fd, (long)&asked, flags, 0, 0, 0);
    if (result >= 0) {
        message->msg_namelen = asked.msg_namelen;
        message->msg_controllen = asked.msg_controllen;
        message->msg_flags = asked.msg_flags;
    }
    return is_accepted(fd) ? ended(result) : returned(result);
}

/* What programs call that were compiled with _FORTIFY_SOURCE. */
ssize_t __read_chk(int fd, void *to, size_t length, size_t room) {
    return read(fd, to, length < room ? length : room);
}

ssize_t __recv_chk(int fd, void *to, size_t length, size_t room, int flags) {
    return recv(fd, to, length < room ? length : room, flags);
}

ssize_t __recvfrom_chk(int fd, void *restrict to, size_t length, size_t room, int flags,
                       struct sockaddr *restrict from, socklen_t *restrict size) {
    return recvfrom(fd, to, length < room ? length : room, flags, from, size);
}
