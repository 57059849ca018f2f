// A server for requests and uploads with Node's own http module, in one process.
//
// Contract: GET / answers "ok"; POST /upload counts the bytes of the body as they arrive, keeps none of them, and answers
// the count. Node's timeouts are off, so that a long trial is not interrupted.
'use strict';
const http = require('http');

const port = Number(process.argv[2]);

function answer(response, body) {
  response.setHeader('Content-Length', body.length);
  response.end(body);
}

const server = http.createServer({ requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 }, (request, response) => {
  let count = 0;
  request.on('data', (data) => { count += data.length; });
  request.on('end', () => answer(response, request.url === '/upload' ? String(count) : 'ok'));
});

server.on('error', (error) => {
  console.error(`cannot serve on port ${port}: ${error.message}`);
  process.exit(1);
});
server.listen({ host: '127.0.0.1', port, backlog: 4096 });
