"""A Starlette application that streams, for ASGI servers.

Contract: GET /events/N?gap=10ms&size=100 sends N server-sent events; GET / answers "ok".
"""

import asyncio

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route


async def events(count, gap, data):
    for number in range(1, count + 1):
        if number > 1:
            await asyncio.sleep(gap)
        yield f"id: {number}\ndata: {data}\n\n"


async def stream(request):
    query = request.query_params
    gap, size = query["gap"].removesuffix("ms"), query["size"]
    sent = events(request.path_params["count"], int(gap) / 1000, "x" * int(size))
    return StreamingResponse(sent, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


async def ok(_request):
    return PlainTextResponse("ok")


app = Starlette(routes=[Route("/", ok), Route("/events/{count:int}", stream)])
