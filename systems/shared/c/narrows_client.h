/* The common part of the C client drivers: it reads and writes the JSON lines, keeps the callers' counters, and checks every answer.
 * It implements docs/contracts.md, "A client driver". The client only has to provide the loop:
 *
 *     narrows_listen(&orders);  make the pools;  narrows_ready(&orders);
 *     for each caller: while narrows_begin returns 1, send a GET with caller.id, and call narrows_answered or narrows_failed
 *     with the result
 *     narrows_done(version); */
#ifndef NARROWS_CLIENT_H
#define NARROWS_CLIENT_H
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char url[1024];
    uint64_t pools, pool_size, concurrency, timeout_ms, warmup_ms, duration_ms;
} narrows_orders_t;

typedef enum {
    OK, CONNECT_REFUSED, CONNECT_TIMEOUT, POOL_WAIT, BUSY, REQUEST_TIMEOUT, RESET, CLOSED_EARLY, PROTOCOL, STATUS, LENGTH,
    WRONG_CONTENT, WRONG_ID, OTHER, OUTCOMES
} narrows_outcome_t;

/* How many bytes of a body are kept: enough to judge an answer, and to show a wrong one. */
#define NARROWS_KEPT 48

/* Set everything but the number to zero before the first use. */
typedef struct {
    uint64_t number, sent, began_us;
    uint64_t own_us; /* set by the client: when a connection of the pool became the request's own; 0 if unknown */
    char id[48];
} narrows_caller_t;

/* Reads the line with the orders. */
void narrows_listen(narrows_orders_t *orders);
/* Reports that the pools are ready, and waits for the line to go. */
void narrows_ready(const narrows_orders_t *orders);
/* Returns 1 if the caller has a new id and its request begins now, and 0 if the time is over. */
int narrows_begin(narrows_caller_t *caller);
/* Judges the answer to the caller's request. told is the id in the answer, or NULL. body has the first bytes of the body, at most
 * NARROWS_KEPT. */
void narrows_answered(const narrows_caller_t *caller, long status, const char *told, const char *body, size_t length);
/* Counts a request that ended without an answer. reason is the client's own text. */
void narrows_failed(const narrows_caller_t *caller, narrows_outcome_t class, const char *reason);
/* Prints the result of the trial. */
void narrows_done(const char *version);
/* The clock for all these times. */
uint64_t narrows_now_us(void);
#endif
