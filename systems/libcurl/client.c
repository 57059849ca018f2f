/* A client with pools: libcurl's multi interface. A pool is a multi handle with at most pool_size connections, all of them
 * kept. There is one thread. libcurl says which sockets it waits for, and epoll waits for them.
 *
 * Contract: systems/shared/c. */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "narrows_client.h"

typedef struct {
    CURLM *multi;
    uint64_t number, due_us; /* due_us: when libcurl wants to be called without an event; UINT64_MAX: never */
} pool_t;

typedef struct {
    narrows_caller_t self;
    CURL *easy;
    struct curl_slist *headers;
    size_t length;
    char body[NARROWS_KEPT], reason[CURL_ERROR_SIZE];
} caller_t;

static narrows_orders_t orders;
static pool_t *pools;
static int poller;
static uint64_t busy;

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *of, void *socket) {
    pool_t *pool = of;
    (void)easy, (void)socket;
    struct epoll_event event = {.data.u64 = pool->number << 32 | (uint32_t)fd};
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(poller, EPOLL_CTL_DEL, fd, &event);
        return 0;
    }
    event.events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    if (epoll_ctl(poller, EPOLL_CTL_MOD, fd, &event) && epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event)) fail("epoll_ctl");
    return 0;
}

static int on_timer(CURLM *multi, long wait_ms, void *of) {
    (void)multi;
    ((pool_t *)of)->due_us = wait_ms < 0 ? UINT64_MAX : narrows_now_us() + 1000 * (uint64_t)wait_ms;
    return 0;
}

static size_t on_body(char *data, size_t one, size_t length, void *of) {
    caller_t *caller = of;
    for (size_t i = 0; i < one * length; i++, caller->length++)
        if (caller->length < sizeof caller->body) caller->body[caller->length] = data[i];
    return one * length;
}

/* Called when the request is about to be sent on a connection, new or kept. */
static int on_connection(void *of, char *to, char *from, int to_port, int from_port) {
    (void)to, (void)from, (void)to_port, (void)from_port;
    ((caller_t *)of)->self.own_us = narrows_now_us();
    return CURL_PREREQFUNC_OK;
}

static void start_pool(pool_t *pool, uint64_t number) {
    pool->number = number;
    pool->due_us = UINT64_MAX;
    pool->multi = curl_multi_init();
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)orders.pool_size);
    curl_multi_setopt(pool->multi, CURLMOPT_MAXCONNECTS, (long)orders.pool_size);
}

static void start_caller(caller_t *caller, uint64_t number) {
    caller->self.number = number;
    caller->easy = curl_easy_init();
    curl_easy_setopt(caller->easy, CURLOPT_URL, orders.url);
    curl_easy_setopt(caller->easy, CURLOPT_PROXY, "");
    curl_easy_setopt(caller->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(caller->easy, CURLOPT_TIMEOUT_MS, (long)orders.timeout_ms);
    curl_easy_setopt(caller->easy, CURLOPT_PRIVATE, caller);
    curl_easy_setopt(caller->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(caller->easy, CURLOPT_WRITEDATA, caller);
    curl_easy_setopt(caller->easy, CURLOPT_PREREQFUNCTION, on_connection);
    curl_easy_setopt(caller->easy, CURLOPT_PREREQDATA, caller);
    curl_easy_setopt(caller->easy, CURLOPT_ERRORBUFFER, caller->reason);
}

static void begin(caller_t *caller) {
    if (!narrows_begin(&caller->self)) return;
    char header[80];
    snprintf(header, sizeof header, "x-request-id: %s", caller->self.id);
    curl_slist_free_all(caller->headers);
    caller->headers = curl_slist_append(NULL, header);
    caller->length = 0;
    caller->reason[0] = 0;
    curl_easy_setopt(caller->easy, CURLOPT_HTTPHEADER, caller->headers);
    curl_multi_add_handle(pools[(uint64_t)random() % orders.pools].multi, caller->easy);
    busy++;
}

static void answered(caller_t *caller) {
    long status = 0;
    struct curl_header *told = NULL;
    curl_easy_getinfo(caller->easy, CURLINFO_RESPONSE_CODE, &status);
    if (curl_easy_header(caller->easy, "x-request-id", 0, CURLH_HEADER, -1, &told) != CURLHE_OK) told = NULL;
    narrows_answered(&caller->self, status, told ? told->value : NULL, caller->body, caller->length);
}

static narrows_outcome_t class_of(caller_t *caller, CURLcode code) {
    long error = 0;
    curl_off_t connected = 0, sent = 0;
    curl_easy_getinfo(caller->easy, CURLINFO_OS_ERRNO, &error);
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT: /* the times of the steps say how far the request was */
        curl_easy_getinfo(caller->easy, CURLINFO_PRETRANSFER_TIME_T, &sent);
        curl_easy_getinfo(caller->easy, CURLINFO_NAMELOOKUP_TIME_T, &connected);
        return sent ? REQUEST_TIMEOUT : connected ? CONNECT_TIMEOUT : POOL_WAIT;
    case CURLE_SEND_ERROR: case CURLE_RECV_ERROR: return RESET;
    case CURLE_GOT_NOTHING: case CURLE_PARTIAL_FILE: return CLOSED_EARLY;
    case CURLE_WEIRD_SERVER_REPLY: case CURLE_UNSUPPORTED_PROTOCOL: return PROTOCOL;
    default: return code == CURLE_COULDNT_CONNECT && error == ECONNREFUSED ? CONNECT_REFUSED : OTHER;
    }
}

static void collect(pool_t *pool) {
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(pool->multi, &left));) {
        caller_t *caller;
        CURLcode code = message->data.result;
        CURL *easy = message->easy_handle;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &caller);
        if (code == CURLE_OK) answered(caller);
        else narrows_failed(&caller->self, class_of(caller, code), caller->reason[0] ? caller->reason : curl_easy_strerror(code));
        curl_multi_remove_handle(pool->multi, easy);
        busy--;
        begin(caller);
    }
}

/* How long epoll may wait, in milliseconds, rounded up. */
static int patience(void) {
    uint64_t now = narrows_now_us(), due = UINT64_MAX;
    for (uint64_t i = 0; i < orders.pools; i++)
        if (pools[i].due_us < due) due = pools[i].due_us;
    return due == UINT64_MAX ? 1000 : due <= now ? 0 : (int)((due - now + 999) / 1000);
}

static void turn(void) {
    struct epoll_event events[256];
    int running, count = epoll_wait(poller, events, 256, patience());
    for (int i = 0; i < count; i++) {
        int what = (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                   (events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
        curl_multi_socket_action(pools[events[i].data.u64 >> 32].multi, (int)(uint32_t)events[i].data.u64, what, &running);
    }
    for (uint64_t i = 0; i < orders.pools; i++) {
        if (pools[i].due_us <= narrows_now_us()) {
            pools[i].due_us = UINT64_MAX;
            curl_multi_socket_action(pools[i].multi, CURL_SOCKET_TIMEOUT, 0, &running);
        }
        collect(&pools[i]);
    }
}

int main(int argc, char **argv) {
    const char *version = curl_version_info(CURLVERSION_NOW)->version;
    if (argc == 2 && !strcmp(argv[1], "--version")) return printf("libcurl %s\n", version) < 0;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    narrows_listen(&orders);
    poller = epoll_create1(EPOLL_CLOEXEC);
    pools = calloc(orders.pools, sizeof *pools);
    caller_t *callers = calloc(orders.concurrency, sizeof *callers);
    if (poller < 0 || !pools || !callers) fail("cannot begin");
    for (uint64_t i = 0; i < orders.pools; i++) start_pool(&pools[i], i);
    for (uint64_t i = 0; i < orders.concurrency; i++) start_caller(&callers[i], i);
    narrows_ready(&orders);
    for (uint64_t i = 0; i < orders.concurrency; i++) begin(&callers[i]);
    while (busy) turn();
    char text[64];
    snprintf(text, sizeof text, "libcurl %s", version);
    narrows_done(text);
    return 0;
}
