/* Makes a call of a function fail, in the first process that loads it (LD_PRELOAD). NARROWS_FAULT names the function, and
   NARROWS_FAULT_AT the call, from 1. With NARROWS_FAULT_BY=place only the first call from each place of the program counts: a place is
   what its stack looks like. NARROWS_FAULT_LOG is a file that gets the number of calls when the process ends.

   NARROWS_FAULT=io_uring_fewer lets nothing fail: each submission to a ring takes one of several operations, and is counted. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { DEEPEST = 64, MOST_PLACES = 1 << 14 };

static const char *chosen = "";
static long at, calls;
static int active, by_place;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t places[MOST_PLACES];
static long known;
static __thread int looking;

__attribute__((constructor)) static void begin(void) {
  char own[32];
  const char *first = getenv("NARROWS_FAULT_PROCESS"), *by = getenv("NARROWS_FAULT_BY");
  snprintf(own, sizeof own, "%d", getpid());
  if (first && strcmp(first, own) != 0) return; /* a child */
  setenv("NARROWS_FAULT_PROCESS", own, 1);
  if (!getenv("NARROWS_FAULT") || !getenv("NARROWS_FAULT_AT")) return;
  chosen = getenv("NARROWS_FAULT");
  at = atol(getenv("NARROWS_FAULT_AT"));
  by_place = by && strcmp(by, "place") == 0;
  void *frames[1];
  backtrace(frames, 1); /* the first call loads a library */
  active = getpid();
}

__attribute__((destructor)) static void end(void) {
  const char *log = getenv("NARROWS_FAULT_LOG");
  if (!log || active != getpid()) return;
  active = 0;
  FILE *file = fopen(log, "w");
  if (file) {
    fprintf(file, "%ld", calls);
    fclose(file);
  }
}

/* Whether the stack looks like none before. */
static int is_new(void **frames, int count) {
  uint64_t place = 14695981039346656037u;
  for (int i = 0; i < count; i++) place = (place ^ (uintptr_t)frames[i]) * 1099511628211u;
  for (long i = 0; i < known; i++)
    if (places[i] == place) return 0;
  if (known < MOST_PLACES) places[known++] = place;
  return 1;
}

/* Whether this call fails. */
static int fails(const char *name) {
  void *frames[DEEPEST];
  if (!active || strcmp(name, chosen) != 0 || active != getpid() || looking) return 0;
  looking = 1;
  int count = by_place ? backtrace(frames, DEEPEST) : 0;
  looking = 0;
  pthread_mutex_lock(&lock);
  int fail = (!by_place || is_new(frames, count)) && ++calls == at;
  pthread_mutex_unlock(&lock);
  return fail;
}

/* Whether the kernel takes only one of several operations. Each call counts. */
static int takes_fewer(void) {
  if (!active || strcmp("io_uring_fewer", chosen) != 0 || active != getpid()) return 0;
  pthread_mutex_lock(&lock);
  calls++;
  pthread_mutex_unlock(&lock);
  return 1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL(name, error, value) \
  do {                           \
    if (fails(name)) {           \
      errno = (error);           \
      return (value);            \
    }                            \
  } while (0)

#define OPEN(name)                                        \
  int name(const char *path, int flags, ...) {            \
    va_list rest;                                         \
    va_start(rest, flags);                                \
    mode_t mode = va_arg(rest, int);                      \
    va_end(rest);                                         \
    FAIL("open", EMFILE, -1);                             \
    return NEXT(name)(path, flags, mode);                 \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                      \
  int name(int dir, const char *path, int flags, ...) {   \
    va_list rest;                                         \
    va_start(rest, flags);                                \
    mode_t mode = va_arg(rest, int);                      \
    va_end(rest);                                         \
    FAIL("open", EMFILE, -1);                             \
    return NEXT(name)(dir, path, flags, mode);            \
  }
OPENAT(openat)
OPENAT(openat64)
DIR *opendir(const char *path) {
  FAIL("open", EMFILE, NULL);
  return NEXT(opendir)(path);
}

/* Whether Rust's own library reads what became of an exec: 8 bytes from a pipe or from a socket of packets. If this read fails, the
   library waits for the child, and the child may wait for the parent. The kernel does not let this read fail. */
static int asks_of_exec(int fd, size_t size) {
  struct stat about;
  int type = 0;
  socklen_t length = sizeof type;
  if (size != 8) return 0;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0) return type == SOCK_SEQPACKET;
  return fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode);
}

ssize_t read(int fd, void *to, size_t size) {
  if (!asks_of_exec(fd, size)) FAIL("read", EIO, -1);
  return NEXT(read)(fd, to, size);
}
ssize_t readv(int fd, const struct iovec *to, int count) {
  FAIL("read", EIO, -1);
  return NEXT(readv)(fd, to, count);
}
ssize_t pread64(int fd, void *to, size_t size, off64_t where) {
  FAIL("read", EIO, -1);
  return NEXT(pread64)(fd, to, size, where);
}
ssize_t recv(int fd, void *to, size_t size, int flags) {
  if (!asks_of_exec(fd, size)) FAIL("read", EIO, -1);
  return NEXT(recv)(fd, to, size, flags);
}
ssize_t recvmsg(int fd, struct msghdr *to, int flags) {
  FAIL("read", EIO, -1);
  return NEXT(recvmsg)(fd, to, flags);
}
ssize_t write(int fd, const void *from, size_t size) {
  FAIL("write", ENOSPC, -1);
  return NEXT(write)(fd, from, size);
}
ssize_t writev(int fd, const struct iovec *from, int count) {
  FAIL("write", ENOSPC, -1);
  return NEXT(writev)(fd, from, count);
}
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t where) {
  FAIL("write", ENOSPC, -1);
  return NEXT(pwrite64)(fd, from, size, where);
}
ssize_t send(int fd, const void *from, size_t size, int flags) {
  FAIL("write", ENOBUFS, -1);
  return NEXT(send)(fd, from, size, flags);
}
ssize_t sendmsg(int fd, const struct msghdr *from, int flags) {
  FAIL("write", ENOBUFS, -1);
  return NEXT(sendmsg)(fd, from, flags);
}
int fsync(int fd) {
  FAIL("fsync", EIO, -1);
  return NEXT(fsync)(fd);
}
int fdatasync(int fd) {
  FAIL("fsync", EIO, -1);
  return NEXT(fdatasync)(fd);
}
int rename(const char *from, const char *to) {
  FAIL("rename", EACCES, -1);
  return NEXT(rename)(from, to);
}
int connect(int fd, const struct sockaddr *to, socklen_t size) {
  FAIL("connect", ECONNREFUSED, -1);
  return NEXT(connect)(fd, to, size);
}
pid_t fork(void) {
  FAIL("clone", EAGAIN, -1);
  return NEXT(fork)();
}
int posix_spawnp(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                 char *const arguments[], char *const environment[]) {
  if (fails("clone")) return EAGAIN;
  return NEXT(posix_spawnp)(pid, path, actions, attributes, arguments, environment);
}
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *with) {
  if (fails("clone")) return EAGAIN;
  return NEXT(pthread_create)(thread, attributes, run, with);
}
void *mmap64(void *near, size_t size, int protection, int flags, int fd, off64_t where) {
  FAIL("mmap", ENOMEM, MAP_FAILED);
  return NEXT(mmap64)(near, size, protection, flags, fd, where);
}
void *mmap(void *near, size_t size, int protection, int flags, int fd, off_t where) {
  FAIL("mmap", ENOMEM, MAP_FAILED);
  return NEXT(mmap)(near, size, protection, flags, fd, where);
}
long syscall(long number, ...) {
  long a[6];
  va_list rest;
  va_start(rest, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(rest, long);
  va_end(rest);
  if (number == SYS_io_uring_enter) FAIL("io_uring_enter", EAGAIN, -1);
  if (number == SYS_io_uring_enter && a[1] > 1 && takes_fewer()) {
    a[1] = 1; /* The kernel has no memory for more, and so does not wait either. */
    a[2] = 0;
  }
  if (number == SYS_io_uring_setup) FAIL("io_uring_setup", ENOMEM, -1);
  return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
