#include "narrows_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const names[OUTCOMES] = {
    "ok", "connect_refused", "connect_timeout", "pool_wait", "busy", "request_timeout", "reset", "closed_early", "protocol", "status",
    "length", "wrong_content", "wrong_id", "other"};

/* Buckets keep the ten highest bits of a time: 512 buckets for each power of two from 1024 on. */
#define BUCKETS (1024 + 54 * 512)

static uint64_t inside[OUTCOMES], total[OUTCOMES], in_flight;
static uint64_t latency[BUCKETS], waits[BUCKETS], service[BUCKETS], failed[BUCKETS], ages[BUCKETS];
static uint64_t window_start_us, window_end_us, timeout_us, duration_us;
/* The first error of each class: what was seen, and how far into the window. */
static struct {
    char seen[512];
    uint64_t into_us;
} firsts[OUTCOMES];

static void fail(const char *message, const char *detail) {
    printf("{\"event\":\"error\",\"message\":\"%s%s\"}\n", message, detail);
    exit(1);
}

uint64_t narrows_now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Finds a field of a flat JSON object; supports only what the contract needs. NULL if there is no such field. */
static const char *field(const char *line, const char *name) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\"", name);
    const char *at = strstr(line, quoted);
    if (!at) return NULL;
    at += strlen(quoted);
    return at + strspn(at, " \t:");
}

static uint64_t number(const char *line, const char *name) {
    const char *text = field(line, name);
    if (!text) fail("the orders lack ", name);
    return strtoull(text, NULL, 10);
}

static void read_line(char *line, int size) {
    if (!fgets(line, size, stdin)) exit(1); /* Narrows has exited */
}

void narrows_listen(narrows_orders_t *orders) {
    char line[4096];
    read_line(line, sizeof line);
    const char *rate = field(line, "rate");
    if (rate && strncmp(rate, "null", 4)) fail("this driver does not support rate", "");
    const char *url = field(line, "url");
    if (!url || sscanf(url, "\"%1023[^\"]\"", orders->url) != 1) fail("the orders lack ", "url");
    orders->pools = number(line, "pools");
    orders->pool_size = number(line, "pool_size");
    orders->concurrency = number(line, "concurrency");
    orders->timeout_ms = number(line, "timeout_ms");
    orders->warmup_ms = number(line, "warmup_ms");
    orders->duration_ms = number(line, "duration_ms");
}

void narrows_ready(const narrows_orders_t *orders) {
    char line[4096];
    puts("{\"event\":\"ready\"}");
    fflush(stdout);
    read_line(line, sizeof line);
    timeout_us = 1000 * orders->timeout_ms;
    duration_us = 1000 * orders->duration_ms;
    window_start_us = narrows_now_us() + 1000 * orders->warmup_ms;
    window_end_us = window_start_us + duration_us;
}

int narrows_begin(narrows_caller_t *caller) {
    caller->began_us = narrows_now_us();
    caller->own_us = 0;
    if (caller->began_us >= window_end_us) return 0;
    snprintf(caller->id, sizeof caller->id, "%" PRIu64 "-%" PRIu64, caller->number, caller->sent++);
    return 1;
}

static size_t bucket(uint64_t v) {
    size_t shift = 0;
    while (v >> shift >= 1024) shift++;
    return shift * 512 + (v >> shift);
}

/* Counts a request that ended. For the first error of a class inside the window, returns a buffer for what was seen. */
static char *ended(const narrows_caller_t *caller, narrows_outcome_t outcome, uint64_t end) {
    total[outcome]++;
    if (end >= window_end_us) {
        in_flight++;
        ages[bucket(window_end_us - caller->began_us)]++;
    }
    if (end >= window_end_us || end < window_start_us) return NULL;
    inside[outcome]++;
    if (outcome != OK) {
        failed[bucket(end - caller->began_us)]++;
        if (inside[outcome] > 1) return NULL;
        firsts[outcome].into_us = end - window_start_us;
        return firsts[outcome].seen;
    }
    latency[bucket(end - caller->began_us)]++;
    if (caller->own_us) {
        waits[bucket(caller->own_us - caller->began_us)]++;
        service[bucket(end - caller->own_us)]++;
    }
    return NULL;
}

static narrows_outcome_t judge(const char *id, long status, const char *told, const char *body, size_t length) {
    if (status != 200) return STATUS;
    if (length != 2) return LENGTH;
    if (memcmp(body, "ok", 2)) return WRONG_CONTENT;
    return told && !strcmp(told, id) ? OK : WRONG_ID;
}

void narrows_answered(const narrows_caller_t *caller, long status, const char *told, const char *body, size_t length) {
    uint64_t end = narrows_now_us();
    int late = end - caller->began_us > timeout_us;
    char *seen = ended(caller, late ? REQUEST_TIMEOUT : judge(caller->id, status, told, body, length), end);
    if (!seen) return;
    seen += sprintf(seen, "status %ld, id %.100s, body \"", status, told ? told : "none");
    for (size_t i = 0; i < length && i < NARROWS_KEPT; i++) {
        unsigned char c = body[i];
        seen += sprintf(seen, c < ' ' || c > '~' || c == '"' || c == '\\' ? "\\x%02x" : "%c", c);
    }
    strcpy(seen, "\"");
}

void narrows_failed(const narrows_caller_t *caller, narrows_outcome_t class, const char *reason) {
    static int reported;
    /* Report the first few unknown errors. More of them would only fill the pipe. */
    if (class == OTHER && reported++ < 20) fprintf(stderr, "other: %s\n", reason);
    char *seen = ended(caller, class, narrows_now_us());
    if (seen) sprintf(seen, "%.300s", reason);
}

static void account(const uint64_t *outcomes, uint64_t unfinished) {
    uint64_t attempts = unfinished;
    for (int i = 0; i < OUTCOMES; i++) attempts += outcomes[i];
    printf("\"attempts\":%" PRIu64 ",\"successes\":%" PRIu64 ",\"errors\":{", attempts, outcomes[OK]);
    const char *comma = "";
    for (int i = OK + 1; i < OUTCOMES; i++) {
        if (!outcomes[i]) continue;
        printf("%s\"%s\":%" PRIu64, comma, names[i], outcomes[i]);
        comma = ",";
    }
    printf("}");
}

static void pairs(const char *name, const uint64_t *times) {
    printf(",\"%s\":[", name);
    const char *comma = "";
    for (size_t i = 0; i < BUCKETS; i++) {
        if (!times[i]) continue;
        size_t shift = i < 1024 ? 0 : i / 512 - 1;
        printf("%s[%" PRIu64 ",%" PRIu64 "]", comma, (uint64_t)(i - shift * 512) << shift, times[i]);
        comma = ",";
    }
    printf("]");
}

static void examples(void) {
    printf(",\"first_errors\":{");
    const char *comma = "";
    for (int i = OK + 1; i < OUTCOMES; i++) {
        if (!inside[i]) continue;
        printf("%s\"%s\":\"", comma, names[i]);
        for (const unsigned char *c = (const unsigned char *)firsts[i].seen; *c; c++)
            printf(*c < ' ' || *c > '~' || *c == '"' || *c == '\\' ? "\\u%04x" : "%c", *c);
        printf(" (%.3f s into the window)\"", firsts[i].into_us / 1e6);
        comma = ",";
    }
    printf("}");
}

void narrows_done(const char *version) {
    printf("{\"event\":\"done\",\"version\":\"%s\",\"elapsed_us\":%" PRIu64 ",\"in_flight\":%" PRIu64 ",", version, duration_us, in_flight);
    account(inside, in_flight);
    pairs("in_flight_us", ages);
    pairs("latency_us", latency);
    pairs("pool_wait_us", waits);
    pairs("service_us", service);
    pairs("failed_us", failed);
    examples();
    printf(",\"total\":{");
    account(total, 0);
    printf("}}\n");
    fflush(stdout);
}
