"""A client with pools: httpx. A pool is an AsyncClient with at most pool_size connections, all of them kept.

Contract: systems/shared/python. httpx has a timeout for each step but none for the whole, so asyncio's timeout is around it. The
trace extension tells which step the request had reached by then. The wait for the pool ends when the request is sent, and the
extension tells that, too.
"""

import asyncio
import time

import httpx
from narrows_client import Failed, run

SENDING = "http11.send_request_headers.started"
# What a timeout means after these events. Before them it is a wait for the pool.
STEPS = {"connection.connect_tcp.started": "connect_timeout", SENDING: "request_timeout"}


class Pool:
    def __init__(self, size, timeout):
        limits = httpx.Limits(max_connections=size, max_keepalive_connections=size)
        self.timeout = timeout
        self.client = httpx.AsyncClient(limits=limits, timeout=timeout, trust_env=False)

    async def get(self, url, request_id):
        step, own = "pool_wait", None

        async def trace(event, _):
            nonlocal step, own
            step = STEPS.get(event, step)
            if event == SENDING:
                own = time.monotonic()

        try:
            async with asyncio.timeout(self.timeout):
                answer = await self.client.get(url, headers={"x-request-id": request_id}, extensions={"trace": trace})
                return answer.status_code, answer.headers.get("x-request-id"), answer.content, own
        except (TimeoutError, httpx.TimeoutException):
            raise Failed(step)
        except httpx.RemoteProtocolError as error:
            closed = "disconnected" in str(error) or "peer closed" in str(error)
            raise Failed("closed_early" if closed else "protocol")


async def start_pool(size, timeout):
    return Pool(size, timeout)


run(start_pool)
