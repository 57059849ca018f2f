"""The common part of the Python clients' drivers: it talks JSON lines, keeps the callers and their counters, and checks every
answer. docs/contracts.md, "A client driver", is the contract it keeps. What is left to a client is a coroutine

    start_pool(size, timeout)   one pool of `size` connections; seconds

that gives an object with a coroutine

    get(url, id)                one GET, end to end within the timeout: (status, id, body, own), or raises Failed or what
                                the client raised; own is the time.monotonic() at which a connection of the pool was the
                                request's own, None where the client does not tell it
"""

import asyncio
import json
import random
import sys
import time
from collections import Counter


class Failed(Exception):
    """No answer; its one argument is a class of the contract. What the client raised is its context."""


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
    inside, total, latency, waits, service, failed = (Counter() for _ in range(6))
    firsts = {}
    in_flight = 0

    # One caller, request after request. The window is two points in time, and what ended between them counts.
    async def call(number):
        nonlocal in_flight
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
                in_flight += 1
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
        **_account(inside, in_flight),
        in_flight=in_flight,
        latency_us=sorted(latency.items()),
        pool_wait_us=sorted(waits.items()),
        service_us=sorted(service.items()),
        failed_us=sorted(failed.items()),
        first_errors=firsts,
        total=_account(total),
    )


async def _outcome(pool, url, request_id):
    """What came of a request, and the answer or error that said so."""
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
    """What was seen, and when; long reasons are cut."""
    if isinstance(seen, Exception):
        said = " ".join(f"{type(seen).__name__}: {seen}".split())[:300].rstrip(":")
    else:
        status, told, body, _ = seen
        said = f'status {status}, id {told or "none"}, body "{repr(body[:48])[2:-1]}"'
    return f"{said} ({into:.3f} s into the window)"


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


def _bucket(seconds):
    """The ten highest bits of its microseconds."""
    v = int(seconds * 1e6)
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
