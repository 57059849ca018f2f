"""The common part of the Python clients' drivers: it talks JSON lines, keeps the callers and their counters, and checks every
answer. docs/contracts.md, "A client driver", is the contract it keeps. What is left to a client is a coroutine

    start_pool(size, timeout)   one pool of `size` connections; seconds

that gives an object with a coroutine

    get(url, id)                one GET, end to end within the timeout: (status, id, body), or raises Failed or what the
                                client raised
"""

import asyncio
import json
import random
import sys
import time
from collections import Counter


class Failed(Exception):
    """No answer; its one argument is a class of the contract."""


def run(start_pool):
    """Does one trial's work."""
    asyncio.run(_run(start_pool))


async def _run(start_pool):
    orders = _read_line()
    if orders.get("rate") is not None:
        _fail("rate is not known to this driver")
    timeout = orders["timeout_ms"] / 1000
    pools = [await start_pool(orders["pool_size"], timeout) for _ in range(orders["pools"])]
    _say(event="ready")
    _read_line()

    window_start = time.monotonic() + orders["warmup_ms"] / 1000
    window_end = window_start + orders["duration_ms"] / 1000
    inside, total, latency = Counter(), Counter(), Counter()
    in_flight = 0

    # One caller, request after request. The window is two points in time, and what ended between them counts.
    async def call(number):
        nonlocal in_flight
        sent = 0
        while (begin := time.monotonic()) < window_end:
            request_id = f"{number}-{sent}"
            sent += 1
            outcome = await _outcome(random.choice(pools), orders["url"], request_id)
            end = time.monotonic()
            if outcome == "ok" and end - begin > timeout:
                outcome = "request_timeout"
            total[outcome] += 1
            if end >= window_end:
                in_flight += 1
            elif end >= window_start:
                inside[outcome] += 1
                if outcome == "ok":
                    latency[_bucket(int((end - begin) * 1e6))] += 1

    await asyncio.gather(*(call(number) for number in range(orders["concurrency"])))
    _say(
        event="done",
        elapsed_us=orders["duration_ms"] * 1000,
        **_account(inside, in_flight),
        in_flight=in_flight,
        latency_us=sorted(latency.items()),
        total=_account(total),
    )


async def _outcome(pool, url, request_id):
    try:
        status, told, body = await pool.get(url, request_id)
    except Failed as failed:
        return failed.args[0]
    except Exception as error:
        outcome = _class(error)
        if outcome == "other":
            _report(error)
        return outcome
    if status != 200:
        return "status"
    if body != b"ok":
        return "wrong_content" if len(body) == 2 else "length"
    return "ok" if told == request_id else "wrong_id"


def _class(error):
    """The class of a socket's error, which may lie under the client's own."""
    causes = set()
    while error is not None and error not in causes:
        causes.add(error)
        if isinstance(error, ConnectionRefusedError):
            return "connect_refused"
        if isinstance(error, (ConnectionResetError, BrokenPipeError)):
            return "reset"
        error = error.__cause__ or error.__context__
    return "other"


_reported = 0


def _report(error):
    """The first few unknown errors are worth reading; the rest would only fill the pipe."""
    global _reported
    _reported += 1
    if _reported <= 20:
        print(f"other: {error!r}", file=sys.stderr, flush=True)


def _bucket(v):
    """The ten highest bits."""
    shift = max(0, v.bit_length() - 10)
    return v >> shift << shift


def _account(outcomes, in_flight=0):
    errors = {outcome: count for outcome, count in outcomes.items() if outcome != "ok"}
    return {"attempts": outcomes.total() + in_flight, "successes": outcomes["ok"], "errors": errors}


def _read_line():
    line = sys.stdin.readline()
    if not line:
        sys.exit(1)  # Narrows has gone
    try:
        return json.loads(line)
    except ValueError as error:
        _fail(str(error))


def _say(**event):
    print(json.dumps(event), flush=True)


def _fail(message):
    _say(event="error", message=message)
    sys.exit(1)
