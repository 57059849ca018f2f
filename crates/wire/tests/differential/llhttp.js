// Reads messages of HTTP with llhttp, the parser of Node: one stream a line, as `x` and hexadecimal digits. Prints how each ended,
// and its whole messages: the status or the path, a colon, and the body.
const { HTTPParser } = process.binding('http_parser');
const type = process.argv[2] === 'request' ? HTTPParser.REQUEST : HTTPParser.RESPONSE;
const lines = require('fs').readFileSync(0, 'latin1').split('\n').filter(Boolean);
for (const line of lines) {
  const messages = [];
  let current = null;
  const parser = new HTTPParser();
  parser.initialize(type, {});
  // Once a message has had trailers, the path of the next request comes before the end of its head. Trailers bring theirs again.
  let early = '';
  parser[HTTPParser.kOnHeaders | 0] = (headers, url) => { early += url; };
  parser[HTTPParser.kOnHeadersComplete | 0] = (major, minor, headers, method, url, status) => {
    const path = () => Buffer.from(url ?? early, 'latin1').toString('hex');
    current = { what: type === HTTPParser.REQUEST ? path() : String(status), body: [] };
    // Answers without a body, whatever their fields say (RFC 9112, 6.3).
    return status < 200 || status === 204 || status === 304 ? 1 : 0;
  };
  parser[HTTPParser.kOnBody | 0] = (bytes, start, length) => {
    current.body.push(Buffer.from(length === undefined ? bytes : bytes.subarray(start, start + length)));
  };
  parser[HTTPParser.kOnMessageComplete | 0] = () => {
    early = '';
    messages.push(`${current.what}:${Buffer.concat(current.body).toString('hex')}`);
  };
  const executed = parser.execute(Buffer.from(line.slice(1), 'hex'));
  const ended = executed instanceof Error ? executed : parser.finish();
  console.log([ended instanceof Error ? ended.code : 'ok', ...messages].join(' '));
}
