"""Answers every request with `ok`. The arguments are the address, the port and the delay in microseconds."""

import asyncio
import sys

ADDRESS, PORT, DELAY_US = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if DELAY_US:
                await asyncio.sleep(DELAY_US / 1e6)
            writer.write(ANSWER)
            if b"connection: close" in head.lower():
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # The client has gone.
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, ADDRESS, PORT, backlog=1024)
    await server.serve_forever()


asyncio.run(main())
