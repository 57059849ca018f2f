// A client with pools: undici. A pool is a Pool with at most pool_size connections.
//
// Contract: systems/shared/node. undici has no timeout that covers the wait for the pool, so an AbortSignal gives a request up.
// Its diagnostics channel tells whether and when the request was sent. That is the end of the wait for the pool.
'use strict';
const diagnostics = require('diagnostics_channel');
const { Pool } = require('undici');
const { performance } = require('perf_hooks');
const { run, classOf } = require('./narrows_client.js');

const pipelining = Number(process.argv[2]);
const sent = new Map();
diagnostics.channel('undici:client:sendHeaders').subscribe(({ headers }) => {
  const begin = headers.indexOf('x-request-id: ') + 14;
  sent.set(headers.slice(begin, headers.indexOf('\r\n', begin)), performance.now());
});

function failureClass(error, wasSent) {
  switch (error.code) {
    case 'UND_ERR_ABORTED': return wasSent ? 'request_timeout' : 'pool_wait';
    case 'UND_ERR_CONNECT_TIMEOUT': return 'connect_timeout';
    case 'UND_ERR_HEADERS_TIMEOUT': case 'UND_ERR_BODY_TIMEOUT': return 'request_timeout';
    case 'UND_ERR_SOCKET': return 'closed_early';
    case 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH': return 'length';
    default: return error.name === 'AbortError' ? (wasSent ? 'request_timeout' : 'pool_wait') : classOf(error);
  }
}

run({
  startPool: (size, origin, timeout) => new Pool(origin, { connections: size, pipelining, connect: { timeout } }),
  async get(pool, path, id, timeout) {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), timeout);
    try {
      const answer = await pool.request({ path, method: 'GET', headers: { 'x-request-id': id }, signal: abort.signal });
      const body = Buffer.from(await answer.body.arrayBuffer());
      return { status: answer.statusCode, id: answer.headers['x-request-id'], body, own: sent.get(id) };
    } catch (error) {
      error.failureClass = failureClass(error, sent.has(id));
      throw error;
    } finally {
      clearTimeout(timer);
      sent.delete(id);
    }
  },
});
