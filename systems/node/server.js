// A server for requests, uploads and streams with Node's own http, https or http2 module, in one process.
//
// Contract: GET / answers "ok"; POST /upload counts the bytes of the body as they arrive, keeps none of them, and answers
// the count; GET /events/N?gap=10ms&size=100 sends N server-sent events. Node's timeouts are off, so that a long trial is not interrupted.
//
// usage: node server.js ADDRESS PORT TLS CERT KEY TICKETS HTTP   TLS is off for plain text, HTTP is 1.1 or 2
'use strict';
const fs = require('fs');
const http = require('http');
const http2 = require('http2');
const https = require('https');
const { setTimeout } = require('timers/promises');
const { SSL_OP_NO_TICKET } = require('crypto').constants;

const [host, port, tls, cert, key, tickets, version] = process.argv.slice(2);

function answer(response, body) {
  response.setHeader('Content-Length', body.length);
  response.end(body);
}

async function send(request, response) {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  const count = Number(pathname.slice('/events/'.length));
  const gap = parseInt(searchParams.get('gap'), 10);
  const data = 'x'.repeat(Number(searchParams.get('size')));
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' });
  for (let id = 1; id <= count && !response.destroyed; id += 1) {
    if (id > 1 && gap > 0) await setTimeout(gap);
    response.write(`id: ${id}\ndata: ${data}\n\n`);
  }
  response.end();
}

function serve(request, response) {
  let count = 0;
  request.on('data', (data) => { count += data.length; });
  if (request.url.startsWith('/events/')) {
    request.on('end', () => send(request, response));
    return;
  }
  request.on('end', () => answer(response, request.url === '/upload' ? String(count) : 'ok'));
}

const patient = { requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 };

function secured() {
  const secureOptions = tickets === 'true' ? 0 : SSL_OP_NO_TICKET;
  const options = { ...patient, cert: fs.readFileSync(cert), key: fs.readFileSync(key), secureOptions };
  return version === '2' ? http2.createSecureServer(options, serve) : https.createServer(options, serve);
}

function plain() {
  return version === '2' ? http2.createServer(serve) : http.createServer(patient, serve);
}

const server = tls === 'off' ? plain() : secured();
server.on('error', (error) => {
  console.error(`cannot serve on port ${port} of ${host}: ${error.message}`);
  process.exit(1);
});
server.listen({ host, port: Number(port), backlog: 4096 });
