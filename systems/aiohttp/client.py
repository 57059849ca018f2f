"""aiohttp as a client with pools: a pool is a ClientSession whose TCPConnector has the limit pool_size.

Contract: systems/shared/python. The timeout for a connection of the pool ends a moment before the one for everything, so that
it is known which of them passed; a connect that hangs counts as waiting for the pool, since aiohttp has one timeout for both.
"""

import aiohttp
from narrows_client import Failed, run


class Pool:
    def __init__(self, size, timeout):
        times = aiohttp.ClientTimeout(total=timeout, connect=timeout * 0.999, ceil_threshold=float("inf"))
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=size), timeout=times)

    async def get(self, url, request_id):
        try:
            async with self.session.get(url, headers={"x-request-id": request_id}, allow_redirects=False) as answer:
                return answer.status, answer.headers.get("x-request-id"), await answer.read()
        except aiohttp.ConnectionTimeoutError:
            raise Failed("pool_wait")
        except TimeoutError:
            raise Failed("request_timeout")
        except aiohttp.ServerDisconnectedError:
            raise Failed("closed_early")
        except aiohttp.ClientPayloadError:
            raise Failed("closed_early")
        except aiohttp.ClientResponseError:
            raise Failed("protocol")


async def start_pool(size, timeout):
    return Pool(size, timeout)


run(start_pool)
