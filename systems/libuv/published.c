/* The libuv server of the published comparison, rewritten with the faults that spoiled its row. Each connection has a timer of
 * 10 s, a zeroed buffer and a thread-pool job that does nothing. The connection is closed after one answer. After the answer
 * comes the NUL byte that ends a C string, which no HTTP parser accepts.
 *
 * One fault is left out: the original took a read error for data of negative length, which may crash the program at any time.
 * The server listens on the address that it is told only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define ANSWER                                   \
    "HTTP/1.0 200 OK\r\n"                        \
    "Date: Thu, 07 May 2020 12:49:30 GMT\r\n"    \
    "Connection: close\r\n"                      \
    "Accept-Ranges: bytes\r\n"                   \
    "Last-Modified: Thu, 07 May 2020 12:49:25 GMT\r\n" \
    "Content-Length: 0\r\n\r\n"
#define TIMEOUT_MS 10000
#define BACKLOG 128

typedef struct {
    uv_tcp_t tcp;
    uv_timer_t timer;
    uv_work_t work;
    uv_write_t write;
    int working;
    int open_handles;
} connection_t;

static void on_closed(uv_handle_t *handle) {
    connection_t *connection = handle->data;
    if (--connection->open_handles == 0) free(connection);
}

static void close_connection(connection_t *connection) {
    if (uv_is_closing((uv_handle_t *)&connection->tcp)) return;
    uv_close((uv_handle_t *)&connection->tcp, on_closed);
    uv_close((uv_handle_t *)&connection->timer, on_closed);
}

static void on_timeout(uv_timer_t *timer) {
    connection_t *connection = timer->data;
    if (!connection->working) close_connection(connection);
}

static void on_written(uv_write_t *write, int status) {
    (void)status;
    close_connection(write->data);
}

/* Runs on a thread of the pool. */
static void work(uv_work_t *work) {
    (void)work;
}

static void on_worked(uv_work_t *work, int status) {
    connection_t *connection = work->data;
    /* sizeof counts the zero byte at the end: the fault. */
    uv_buf_t answer = uv_buf_init(ANSWER, sizeof ANSWER);
    (void)status;
    uv_timer_stop(&connection->timer);
    if (uv_write(&connection->write, (uv_stream_t *)&connection->tcp, &answer, 1, on_written) < 0)
        close_connection(connection);
}

static void on_wanted(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
    char *base = calloc(1, suggested);
    (void)handle;
    *buffer = uv_buf_init(base, base ? suggested : 0);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer) {
    connection_t *connection = stream->data;
    free(buffer->base);
    if (size < 0) {
        close_connection(connection);
    } else if (size > 0 && !connection->working) {
        connection->working = 1;
        uv_read_stop(stream);
        uv_queue_work(stream->loop, &connection->work, work, on_worked);
    }
}

static void on_connection(uv_stream_t *listener, int status) {
    connection_t *connection = status < 0 ? NULL : calloc(1, sizeof *connection);
    if (!connection) return;
    connection->tcp.data = connection->timer.data = connection->work.data = connection->write.data = connection;
    connection->open_handles = 2;
    uv_tcp_init(listener->loop, &connection->tcp);
    uv_timer_init(listener->loop, &connection->timer);
    if (uv_accept(listener, (uv_stream_t *)&connection->tcp) < 0) {
        close_connection(connection);
        return;
    }
    uv_timer_start(&connection->timer, on_timeout, TIMEOUT_MS, 2 * TIMEOUT_MS);
    uv_read_start((uv_stream_t *)&connection->tcp, on_wanted, on_read);
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
    if (argc != 3) {
        fprintf(stderr, "usage: published ADDRESS PORT\n");
        return 1;
    }
    uv_tcp_init(uv_default_loop(), &listener);
    int status = read_address(argv + 1, &address);
    if (status == 0) status = uv_tcp_bind(&listener, (const struct sockaddr *)&address, 0);
    if (status == 0) status = uv_listen((uv_stream_t *)&listener, BACKLOG, on_connection);
    if (status < 0) {
        fprintf(stderr, "cannot listen: %s\n", uv_strerror(status));
        return 1;
    }
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
