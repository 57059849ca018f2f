"""A server for requests, uploads and streams: a plain ASGI application for uvicorn, and a Starlette application for streams.

Contract: GET / answers "ok"; POST /upload counts the bytes of the body as they arrive, keeps none of them, and answers the count;
GET /events/N?gap=10ms&size=100 sends N server-sent events.
"""


async def app(scope, receive, send):
    if scope["path"].startswith("/events/"):
        # Imported where it is needed, because other trials measure the memory without it.
        from streams import app as streams

        await streams(scope, receive, send)
        return
    count = 0
    if scope["method"] == "POST":
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            count += len(message.get("body", b""))
            more = message.get("more_body", False)
    body = b"%d" % count if scope["path"] == "/upload" else b"ok"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
