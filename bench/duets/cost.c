/* A server of HTTP/1.1 on one thread, whose request costs what its arguments say: PORT LOOPS CALLS LINES.
   Each request runs a loop LOOPS times, makes CALLS system calls, and reads LINES cache lines of 64 MiB. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <sys/mman.h>

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
static uint8_t *memory;
static const size_t lines_of_memory = 1 << 20;
static volatile uint64_t kept;

static void work(long loops, long calls, long lines) {
    uint64_t x = kept | 1;
    for (long i = 0; i < loops; i++) x = x * 6364136223846793005ull + 1442695040888963407ull;
    for (long i = 0; i < calls; i++) syscall(SYS_getppid);
    for (long i = 0; i < lines; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        x += memory[((x >> 40) % lines_of_memory) * 64];
    }
    kept = x;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    long loops = atol(argv[2]), calls = atol(argv[3]), lines = atol(argv[4]);
    memory = mmap(0, lines_of_memory * 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (lines) memset(memory, 1, lines_of_memory * 64);
    int one = 1, l = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(l, (void *)&a, sizeof a) || listen(l, 4096)) return 1;
    int e = epoll_create1(0);
    struct epoll_event v = {.events = EPOLLIN, .data.fd = l}, got[256];
    epoll_ctl(e, EPOLL_CTL_ADD, l, &v);
    char b[4096];
    for (;;) {
        int n = epoll_wait(e, got, 256, -1);
        for (int i = 0; i < n; i++) {
            int f = got[i].data.fd;
            if (f == l) {
                int c = accept(l, 0, 0);
                setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                v.data.fd = c;
                epoll_ctl(e, EPOLL_CTL_ADD, c, &v);
                continue;
            }
            ssize_t r = read(f, b, sizeof b);
            if (r <= 0) { close(f); continue; }
            work(loops, calls, lines);
            if (write(f, answer, sizeof answer - 1) < 0) close(f);
        }
    }
}
