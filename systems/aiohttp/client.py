"""A client with pools: aiohttp. A pool is a ClientSession whose TCPConnector has the limit pool_size.

Contract: systems/shared/python. aiohttp's tracing tells which step a request had reached when its timeout passed. The wait for the
pool ends when the request is sent, and tracing tells that, too.
"""

import time

import aiohttp
from narrows_client import Failed, run


class Request:
    """What a timeout would mean, and when a connection became the request's own."""

    step = "pool_wait"
    own = None


async def connecting(session, context, event):
    context.trace_request_ctx.step = "connect_timeout"


async def sent(session, context, event):
    context.trace_request_ctx.step = "request_timeout"
    context.trace_request_ctx.own = time.monotonic()


class Pool:
    def __init__(self, size, timeout):
        trace = aiohttp.TraceConfig()
        trace.on_connection_create_start.append(connecting)
        trace.on_request_headers_sent.append(sent)
        times = aiohttp.ClientTimeout(total=timeout, ceil_threshold=float("inf"))
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=size), timeout=times, trace_configs=[trace])

    async def get(self, url, request_id):
        request = Request()
        headers = {"x-request-id": request_id}
        try:
            async with self.session.get(url, headers=headers, allow_redirects=False, trace_request_ctx=request) as answer:
                return answer.status, answer.headers.get("x-request-id"), await answer.read(), request.own
        except TimeoutError:
            raise Failed(request.step)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError):
            raise Failed("closed_early")
        except aiohttp.ClientResponseError:
            raise Failed("protocol")


async def start_pool(size, timeout):
    return Pool(size, timeout)


run(start_pool)
