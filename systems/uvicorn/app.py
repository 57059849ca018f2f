"""A server for requests and uploads: a plain ASGI application for uvicorn.

Contract: GET / answers "ok"; POST /upload counts the bytes of the body as they arrive, keeps none of them, and answers the count.
"""


async def app(scope, receive, send):
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
