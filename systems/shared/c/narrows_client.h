/* The common part of the C clients' drivers: it talks JSON lines, keeps the callers' counters, and checks every answer.
 * docs/contracts.md, "A client driver", is the contract it keeps. What is left to a client is the loop:
 *
 *     narrows_listen(&orders);  make the pools;  narrows_ready(&orders);
 *     for each caller: while narrows_begin says so, send a GET with caller.id, and tell narrows_answered or narrows_failed
 *     what came of it
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

/* How many bytes of an answer's body are looked at: enough to judge it, and to show what a wrong one was. */
#define NARROWS_KEPT 48

/* Zero but for its number as it begins. */
typedef struct {
    uint64_t number, sent, began_us;
    uint64_t own_us; /* the client's to set: since when a connection of the pool is the request's own; 0: it does not tell */
    char id[48];
} narrows_caller_t;

/* Reads the orders. */
void narrows_listen(narrows_orders_t *orders);
/* Says that the pools are there, and waits for the word to go. */
void narrows_ready(const narrows_orders_t *orders);
/* 1: the caller has a new id, and its request begins now. 0: the time is over. */
int narrows_begin(narrows_caller_t *caller);
/* The caller's request has ended with an answer, which is judged; told is NULL where there was no id, and of the body there are
 * its first bytes, NARROWS_KEPT at most. */
void narrows_answered(const narrows_caller_t *caller, long status, const char *told, const char *body, size_t length);
/* The caller's request has ended without an answer; the reason is the client's word for it. */
void narrows_failed(const narrows_caller_t *caller, narrows_outcome_t class, const char *reason);
/* Gives the account of the trial. */
void narrows_done(const char *version);
/* The clock of all this. */
uint64_t narrows_now_us(void);
#endif
