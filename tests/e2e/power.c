/* Logs what a program does to files whose name begins with that of NARROWS_POWER_STORE, and to their folder, in order (LD_PRELOAD).
   NARROWS_POWER_LOG is the file that gets a line for each call: what, the file's name, and where and what is written. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define FILES 1024
static char *names[FILES]; /* by descriptor; "/" is the folder */
static const char *store;
static FILE *out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
  store = getenv("NARROWS_POWER_STORE");
  if (store && getenv("NARROWS_POWER_LOG")) out = fopen(getenv("NARROWS_POWER_LOG"), "ae");
  if (out) setvbuf(out, NULL, _IOFBF, 1 << 16);
}

/* The name of a file that belongs to the store, "/" for its folder, or NULL. */
static const char *belongs(const char *path) {
  if (!out) return NULL;
  const char *file = strrchr(store, '/') + 1;
  size_t folder = file - store - 1;
  if (strncmp(path, store, strlen(store)) == 0) return path + folder + 1;
  return strlen(path) == folder && strncmp(path, store, folder) == 0 ? "/" : NULL;
}

static void opened(int fd, const char *path, int is_new) {
  const char *name = fd >= 0 && fd < FILES ? belongs(path) : NULL;
  if (!name) return;
  pthread_mutex_lock(&lock);
  free(names[fd]);
  names[fd] = strdup(name);
  if (is_new) fprintf(out, "create %s\n", name), fflush(out);
  pthread_mutex_unlock(&lock);
}

static void done(const char *what, int fd, off64_t where, const unsigned char *from, size_t size) {
  if (!out || fd < 0 || fd >= FILES || !names[fd]) return;
  pthread_mutex_lock(&lock);
  fprintf(out, "%s %s %lld ", what, names[fd], (long long)where);
  for (size_t at = 0; at < size; at++) fprintf(out, "%02x", from[at]);
  fputc('\n', out);
  fflush(out);
  pthread_mutex_unlock(&lock);
}

#define OPEN(name)                                                                                       \
  int name(const char *path, int flags, ...) {                                                           \
    va_list rest;                                                                                        \
    va_start(rest, flags);                                                                               \
    mode_t mode = va_arg(rest, int);                                                                     \
    va_end(rest);                                                                                        \
    int is_new = (flags & O_CREAT) && access(path, F_OK) != 0;                                           \
    int fd = NEXT(name)(path, flags, mode);                                                              \
    opened(fd, path, is_new);                                                                            \
    return fd;                                                                                           \
  }
OPEN(open)
OPEN(open64)

int close(int fd) {
  if (out && fd >= 0 && fd < FILES && names[fd]) {
    pthread_mutex_lock(&lock);
    free(names[fd]);
    names[fd] = NULL;
    pthread_mutex_unlock(&lock);
  }
  return NEXT(close)(fd);
}
ssize_t write(int fd, const void *from, size_t size) {
  off64_t where = out && fd >= 0 && fd < FILES && names[fd] ? lseek64(fd, 0, SEEK_CUR) : 0;
  ssize_t wrote = NEXT(write)(fd, from, size);
  if (wrote > 0) done("write", fd, where, from, wrote);
  return wrote;
}
ssize_t pwrite(int fd, const void *from, size_t size, off_t where) {
  ssize_t wrote = NEXT(pwrite)(fd, from, size, where);
  if (wrote > 0) done("write", fd, where, from, wrote);
  return wrote;
}
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t where) {
  ssize_t wrote = NEXT(pwrite64)(fd, from, size, where);
  if (wrote > 0) done("write", fd, where, from, wrote);
  return wrote;
}
int ftruncate(int fd, off_t size) {
  int failed = NEXT(ftruncate)(fd, size);
  if (!failed) done("truncate", fd, size, NULL, 0);
  return failed;
}
int ftruncate64(int fd, off64_t size) {
  int failed = NEXT(ftruncate64)(fd, size);
  if (!failed) done("truncate", fd, size, NULL, 0);
  return failed;
}
int fsync(int fd) {
  int failed = NEXT(fsync)(fd);
  if (!failed) done("sync", fd, 0, NULL, 0);
  return failed;
}
int fdatasync(int fd) {
  int failed = NEXT(fdatasync)(fd);
  if (!failed) done("sync", fd, 0, NULL, 0);
  return failed;
}
int unlink(const char *path) {
  const char *name = belongs(path);
  int failed = NEXT(unlink)(path);
  if (!failed && name) {
    pthread_mutex_lock(&lock);
    fprintf(out, "unlink %s\n", name), fflush(out);
    pthread_mutex_unlock(&lock);
  }
  return failed;
}
