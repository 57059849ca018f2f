// The faster server of the example in README.md: Node's http.
const http = require('http');

http.createServer((request, response) => {
  response.setHeader('Content-Length', 6);
  response.end('hello\n');
}).listen(Number(process.argv[2]), '127.0.0.1');
