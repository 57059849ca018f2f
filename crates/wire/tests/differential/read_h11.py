# Reads answers of HTTP with h11, up to the first that is not interim: one stream a line, as `x` and hexadecimal digits. Prints how
# each ended, and its whole answers: the status, a colon, and the body.
import sys

import h11

for line in sys.stdin:
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "h")]))
    connection.send(h11.EndOfMessage())
    messages, body, status, ended, how = [], b"", None, False, "ok"
    try:
        connection.receive_data(bytes.fromhex(line.strip()[1:]))
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                if ended:
                    break
                ended = True
                connection.receive_data(b"")
            elif isinstance(event, h11.InformationalResponse):
                messages.append("%d:" % event.status_code)
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            else:
                if isinstance(event, h11.EndOfMessage):
                    messages.append("%d:%s" % (status, body.hex()))
                break
    except h11.RemoteProtocolError:
        how = "error"
    print(how, *messages)
