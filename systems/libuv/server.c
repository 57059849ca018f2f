/* A server for requests with libuv: the published program, repaired. The original sent one stray byte after each response,
 * ran a thread-pool job and a timer for each connection, and took read errors for data.
 *
 * Contract: reads each request up to its blank line (in any pieces, also several requests at once) and answers "ok"; keeps
 * the connection unless the request says Connection: close. Requests have no body. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <uv.h>

#define KEEP "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define CLOSE "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
#define LONGEST_HEAD 8192

typedef struct {
    uv_tcp_t tcp;
    size_t filled;
    int closing;
    char received[LONGEST_HEAD];
} connection_t;

static void fail(const char *what, int status) {
    fprintf(stderr, "%s: %s\n", what, uv_strerror(status));
    exit(1);
}

static void on_closed(uv_handle_t *handle) {
    free(handle);
}

static void close_connection(connection_t *connection) {
    if (!uv_is_closing((uv_handle_t *)connection)) uv_close((uv_handle_t *)connection, on_closed);
}

static void on_written(uv_write_t *request, int status) {
    connection_t *connection = (connection_t *)request->handle;
    free(request);
    if (status < 0 || connection->closing) close_connection(connection);
}

/* Whether the head (request line and headers) has a line "Connection: close". */
static int asks_to_close(const char *head, const char *end) {
    static const char name[] = "\r\nconnection:";
    for (const char *line = head; (line = memmem(line, end - line, "\r\n", 2)); line += 2) {
        if ((size_t)(end - line) < sizeof name + 4 || strncasecmp(line, name, sizeof name - 1)) continue;
        const char *value = line + sizeof name - 1;
        while (value < end && (*value == ' ' || *value == '\t')) value++;
        return end - value >= 5 && !strncasecmp(value, "close", 5);
    }
    return 0;
}

/* Answers all requests that have arrived completely, in one write. */
static void answer(connection_t *connection) {
    uv_buf_t answers[LONGEST_HEAD / 4];
    unsigned count = 0;
    char *start = connection->received, *end = start + connection->filled, *blank;
    while (!connection->closing && (blank = memmem(start, end - start, "\r\n\r\n", 4))) {
        connection->closing = asks_to_close(start, blank + 2);
        answers[count++] = connection->closing ? uv_buf_init(CLOSE, sizeof CLOSE - 1) : uv_buf_init(KEEP, sizeof KEEP - 1);
        start = blank + 4;
    }
    connection->filled = end - start;
    memmove(connection->received, start, connection->filled);
    if (count == 0) {
        if (connection->filled == LONGEST_HEAD) close_connection(connection);
        return;
    }
    if (connection->closing) uv_read_stop((uv_stream_t *)connection);
    uv_write_t *request = malloc(sizeof *request);
    if (!request) fail("write", UV_ENOMEM);
    int status = uv_write(request, (uv_stream_t *)connection, answers, count, on_written);
    if (status < 0) {
        free(request);
        close_connection(connection);
    }
}

static void on_wanted(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
    connection_t *connection = (connection_t *)handle;
    (void)suggested;
    *buffer = uv_buf_init(connection->received + connection->filled, LONGEST_HEAD - connection->filled);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer) {
    connection_t *connection = (connection_t *)stream;
    (void)buffer;
    if (size < 0) {
        close_connection(connection);
    } else if (size > 0) {
        connection->filled += size;
        answer(connection);
    }
}

static void on_connection(uv_stream_t *listener, int status) {
    if (status < 0) return; /* no files are left, or a similar error: libuv continues to listen */
    connection_t *connection = malloc(sizeof *connection);
    if (!connection) fail("connection", UV_ENOMEM);
    connection->filled = 0;
    connection->closing = 0;
    uv_tcp_init(listener->loop, &connection->tcp);
    if (uv_accept(listener, (uv_stream_t *)connection) < 0 ||
        uv_read_start((uv_stream_t *)connection, on_wanted, on_read) < 0)
        close_connection(connection);
}

/* Reads an address and a port. */
static int read_address(char **words, struct sockaddr_storage *address) {
    int port = atoi(words[1]);
    if (uv_ip4_addr(words[0], port, (struct sockaddr_in *)address) == 0) return 0;
    return uv_ip6_addr(words[0], port, (struct sockaddr_in6 *)address);
}

int main(int argc, char **argv) {
    uv_tcp_t listener;
    struct sockaddr_storage address;
    if (argc == 2 && !strcmp(argv[1], "--version")) {
        printf("libuv %s\n", uv_version_string());
        return 0;
    }
    if (argc != 3) {
        fprintf(stderr, "usage: server ADDRESS PORT\n");
        return 1;
    }
    uv_loop_t *loop = uv_default_loop();
    uv_tcp_init(loop, &listener);
    int status = read_address(argv + 1, &address);
    if (status == 0) status = uv_tcp_bind(&listener, (const struct sockaddr *)&address, 0);
    if (status == 0) status = uv_listen((uv_stream_t *)&listener, 4096, on_connection);
    if (status < 0) fail("cannot listen", status);
    return uv_run(loop, UV_RUN_DEFAULT);
}
