# Reads HTTP with h11: one stream a line, as `x` and hexadecimal digits. Prints how each ended, and its whole messages: the status or
# the path, a colon, and the body. It reads up to the first answer that is not interim, or up to the first request.
import sys

import h11


def client():
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "h")]))
    connection.send(h11.EndOfMessage())
    return connection


def read(connection, stream, messages):
    body, what, ended = b"", None, False
    connection.receive_data(stream)
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            if ended:
                return
            ended = True
            connection.receive_data(b"")
        elif isinstance(event, h11.InformationalResponse):
            messages.append("%d:" % event.status_code)
        elif isinstance(event, h11.Response):
            what = str(event.status_code)
        elif isinstance(event, h11.Request):
            what = event.target.hex()
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        else:
            if isinstance(event, h11.EndOfMessage):
                messages.append("%s:%s" % (what, body.hex()))
            return


for line in sys.stdin:
    messages, how = [], "ok"
    try:
        connection = h11.Connection(h11.SERVER) if sys.argv[1] == "request" else client()
        read(connection, bytes.fromhex(line.strip()[1:]), messages)
    except h11.RemoteProtocolError:
        how = "error"
    print(how, *messages)
