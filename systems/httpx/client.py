"""httpx as a client with pools: a pool is an AsyncClient with at most pool_size connections, all of them kept.

Contract: systems/shared/python. httpx has a timeout for each step and none for all of them, so asyncio's own is around it. The one for
a connection of the pool ends a moment before that, so that it is known which of them passed.
"""

import asyncio

import httpx
from narrows_client import Failed, run


class Pool:
    def __init__(self, size, timeout):
        limits = httpx.Limits(max_connections=size, max_keepalive_connections=size)
        times = httpx.Timeout(timeout, pool=timeout * 0.999)
        self.timeout = timeout
        self.client = httpx.AsyncClient(limits=limits, timeout=times, trust_env=False)

    async def get(self, url, request_id):
        try:
            async with asyncio.timeout(self.timeout):
                answer = await self.client.get(url, headers={"x-request-id": request_id})
                return answer.status_code, answer.headers.get("x-request-id"), answer.content
        except httpx.PoolTimeout:
            raise Failed("pool_wait")
        except httpx.ConnectTimeout:
            raise Failed("connect_timeout")
        except (TimeoutError, httpx.TimeoutException):
            raise Failed("request_timeout")
        except httpx.RemoteProtocolError as error:
            raise Failed("closed_early" if "disconnected" in str(error) else "protocol")


async def start_pool(size, timeout):
    return Pool(size, timeout)


run(start_pool)
