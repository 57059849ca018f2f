"""The common part of the Python client drivers: it reads and writes the JSON lines, keeps the callers and their counters, and
checks every answer. It implements docs/contracts.md, "A client driver". A client only has to provide a coroutine

    start_pool(size, timeout)   creates a pool of `size` connections; the timeout is in seconds

that returns an object with a coroutine

    get(url, id)                makes one GET, end to end within the timeout. Returns (status, id, body, own), or raises Failed
                                or the client's exception. own is the time.monotonic() at which a connection of the pool
                                became the request's own, or None if the client does not tell
"""

import asyncio
import json
import random
import sys
import time
from collections import Counter


class Failed(Exception):
    """There was no answer. The argument is a class of the contract; the context is the client's exception."""


def run(start_pool):
    """Carries out one trial."""
    asyncio.run(_run(start_pool))


async def _run(start_pool):
    orders = _read_line()
    if orders.get("rate") is not None:
        _fail("this driver does not support rate")
    timeout = orders["timeout_ms"] / 1000
    pools = [await start_pool(orders["pool_size"], timeout) for _ in range(orders["pools"])]
    _say(event="ready")
    _read_line()

    window_start = time.monotonic() + orders["warmup_ms"] / 1000
    window_end = window_start + orders["duration_ms"] / 1000
    inside, total, latency, waits, service, failed, ages = (Counter() for _ in range(7))
    firsts = {}

    # One caller, which sends request after request. Requests that end inside the window count.
    async def call(number):
        sent = 0
        while (begin := time.monotonic()) < window_end:
            request_id = f"{number}-{sent}"
            sent += 1
            outcome, seen = await _outcome(random.choice(pools), orders["url"], request_id)
            end = time.monotonic()
            if outcome == "ok" and end - begin > timeout:
                outcome = "request_timeout"
            total[outcome] += 1
            if end >= window_end:
                ages[_bucket(window_end - begin)] += 1
            elif end >= window_start:
                inside[outcome] += 1
                if outcome == "ok":
                    latency[_bucket(end - begin)] += 1
                    if (own := seen[3]) is not None:
                        waits[_bucket(own - begin)] += 1
                        service[_bucket(end - own)] += 1
                else:
                    failed[_bucket(end - begin)] += 1
                    if outcome not in firsts:
                        firsts[outcome] = _example(seen, end - window_start)

    await asyncio.gather(*(call(number) for number in range(orders["concurrency"])))
    _say(
        event="done",
        elapsed_us=orders["duration_ms"] * 1000,
        **_account(inside, ages.total()),
        in_flight=ages.total(),
        in_flight_us=sorted(ages.items()),
        latency_us=sorted(latency.items()),
        pool_wait_us=sorted(waits.items()),
        service_us=sorted(service.items()),
        failed_us=sorted(failed.items()),
        first_errors=firsts,
        total=_account(total),
    )


async def _outcome(pool, url, request_id):
    """The outcome of a request, and the answer or error."""
    try:
        answer = await pool.get(url, request_id)
    except Failed as failed:
        return failed.args[0], failed.__context__ or failed
    except Exception as error:
        outcome = _class(error)
        if outcome == "other":
            _report(error)
        return outcome, error
    return _judge(answer, request_id), answer


def _judge(answer, request_id):
    status, told, body, _ = answer
    if status != 200:
        return "status"
    if body != b"ok":
        return "wrong_content" if len(body) == 2 else "length"
    return "ok" if told == request_id else "wrong_id"


def _example(seen, into):
    """Describes an error for first_errors: what was seen, and when. Long reasons are cut."""
    if isinstance(seen, Exception):
        said = " ".join(f"{type(seen).__name__}: {seen}".split())[:300].rstrip(":")
    else:
        status, told, body, _ = seen
        said = f'status {status}, id {told or "none"}, body "{repr(body[:48])[2:-1]}"'
    return f"{said} ({into:.3f} s into the window)"


def _class(error):
    """The class of a socket's error, which may be the cause of the client's error."""
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
    """Reports the first few unknown errors. More of them would only fill the pipe."""
    global _reported
    _reported += 1
    if _reported <= 20:
        print(f"other: {error!r}", file=sys.stderr, flush=True)


def _bucket(seconds):
    """Keeps the ten highest bits of a time in microseconds."""
    v = int(seconds * 1e6)
    shift = max(0, v.bit_length() - 10)
    return v >> shift << shift


def _account(outcomes, in_flight=0):
    errors = {outcome: count for outcome, count in outcomes.items() if outcome != "ok"}
    return {"attempts": outcomes.total() + in_flight, "successes": outcomes["ok"], "errors": errors}


def _read_line():
    line = sys.stdin.readline()
    if not line:
        sys.exit(1)  # Narrows has exited
    try:
        return json.loads(line)
    except ValueError as error:
        _fail(str(error))


def _say(**event):
    print(json.dumps(event), flush=True)


def _fail(message):
    _say(event="error", message=message)
    sys.exit(1)
