/* A server that answers "ok". Its arguments: the port, how often check_token spins for an answer, for how many microseconds it sleeps,
   how many bytes it reads at once, and perhaps "edge": it waits for its connections with EPOLLET. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static unsigned long sum;

__attribute__((noinline)) static void check_token(long spins) {
    for (long i = 0; i < spins; i++) {
        sum = sum * 31 + (unsigned long)i;
        __asm__ volatile("" ::: "memory");
    }
}

/* What is known of a connection: its head, and how much of its body is missing. */
static struct connection {
    char head[1024];
    long length, missing;
} connections[1024];

static void answer(int fd, long spins, useconds_t sleeps) {
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    check_token(spins);
    if (sleeps) usleep(sleeps);
    if (send(fd, text, sizeof text - 1, MSG_NOSIGNAL) < 0) close(fd);
}

/* Takes bytes that were read, and says whether a request is complete. */
static int take(struct connection *of, const char *bytes, long count) {
    if (of->missing < 0) {
        long room = (long)sizeof of->head - 1 - of->length, kept = count < room ? count : room;
        memcpy(of->head + of->length, bytes, (size_t)kept);
        of->length += kept;
        of->head[of->length] = 0;
        char *end = strstr(of->head, "\r\n\r\n"), *length = strcasestr(of->head, "content-length:");
        if (!end) return 0;
        of->missing = (length ? atol(length + 15) : 0) - (of->length - (end + 4 - of->head)) - (count - kept);
    } else {
        of->missing -= count;
    }
    if (of->missing > 0) return 0;
    of->missing = -1;
    of->length = 0;
    return 1;
}

int main(int count, char **words) {
    if (count < 5) return 2;
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, queue = epoll_create1(0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(words[1]))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 128)) return 1;
    struct epoll_event wanted = {.events = EPOLLIN, .data.fd = listener}, seen;
    epoll_ctl(queue, EPOLL_CTL_ADD, listener, &wanted);
    long most = atol(words[4]);
    int edge = count > 5;
    char *bytes = malloc((size_t)most);
    for (;;) {
        if (epoll_wait(queue, &seen, 1, -1) < 1) continue;
        int fd = seen.data.fd;
        if (fd == listener) {
            fd = accept(listener, NULL, NULL);
            if (fd < 0 || fd >= 1024) return 1;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            connections[fd] = (struct connection){.missing = -1};
            wanted.data.fd = fd;
            wanted.events = EPOLLIN | (edge ? EPOLLET : 0);
            epoll_ctl(queue, EPOLL_CTL_ADD, fd, &wanted);
            continue;
        }
        long got;
        do {
            got = recv(fd, bytes, (size_t)most, edge ? MSG_DONTWAIT : 0);
            if (got < 0 && errno == EAGAIN) break;
            if (got <= 0) close(fd);
            else if (take(&connections[fd], bytes, got)) answer(fd, atol(words[2]), (useconds_t)atol(words[3]));
            /* Fewer bytes than were asked for are all that there are. */
        } while (edge && got == most);
    }
}
