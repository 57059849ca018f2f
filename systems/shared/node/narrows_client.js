// The common part of Node's client drivers: it talks JSON lines, keeps the callers and their counters, and checks every
// answer. docs/contracts.md, "A client driver", is the contract it keeps. What is left to a client is an object with
//   startPool(size, origin, timeout)   one pool of `size` connections; milliseconds
//   get(pool, path, id, timeout)       one GET, waiting for the pool included: resolves to { status, id, body }, a Buffer,
//                                      or rejects with an error that has a `failureClass` of the contract
//   version                            optional
'use strict';
const readline = require('readline');
const { performance } = require('perf_hooks');

/** Does one trial's work. */
async function run(client) {
  const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const orders = await readLine(lines);
  if (orders.rate !== undefined && orders.rate !== null) fail('rate is not known to this driver');
  const { origin, pathname } = new URL(orders.url);
  const timeout = orders.timeout_ms;
  const pools = Array.from({ length: orders.pools }, () => client.startPool(orders.pool_size, origin, timeout));
  say({ event: 'ready' });
  await readLine(lines);

  const windowStart = performance.now() + orders.warmup_ms;
  const windowEnd = windowStart + orders.duration_ms;
  const inside = new Map();
  const total = new Map();
  const latency = new Map();
  let inFlight = 0;

  // One caller, request after request. The window is two points in time, and what ended between them counts.
  async function call(number) {
    for (let sent = 0; ; sent++) {
      const begin = performance.now();
      if (begin >= windowEnd) return;
      const id = `${number}-${sent}`;
      let outcome;
      try {
        const pool = pools[Math.floor(Math.random() * pools.length)];
        outcome = judge(await client.get(pool, pathname, id, timeout), id, performance.now() - begin > timeout);
      } catch (error) {
        outcome = error.failureClass ?? 'other';
        if (outcome === 'other') report(error);
      }
      const end = performance.now();
      add(total, outcome);
      if (end >= windowEnd) inFlight++;
      else if (end >= windowStart) {
        add(inside, outcome);
        if (outcome === 'ok') add(latency, bucket(Math.round((end - begin) * 1000)));
      }
    }
  }

  await Promise.all(Array.from({ length: orders.concurrency }, (_, number) => call(number)));
  const window = account(inside);
  say({
    event: 'done', elapsed_us: orders.duration_ms * 1000, ...window, attempts: window.attempts + inFlight, in_flight: inFlight,
    latency_us: [...latency].sort((a, b) => a[0] - b[0]), total: account(total), version: client.version,
  });
  process.exit(0);
}

function judge(answer, id, late) {
  if (late) return 'request_timeout';
  if (answer.status !== 200) return 'status';
  const body = answer.body.toString('latin1');
  if (body !== 'ok') return body.length === 2 ? 'wrong_content' : 'length';
  return answer.id === id ? 'ok' : 'wrong_id';
}

/** The class of a socket's or parser's error. */
function classOf(error) {
  switch (error.code) {
    case 'ECONNREFUSED': return 'connect_refused';
    case 'ETIMEDOUT': return 'connect_timeout';
    case 'ECONNRESET': case 'EPIPE': return 'reset';
    default: return /^HPE_/.test(error.code) ? 'protocol' : 'other';
  }
}

let reported = 0;

// The first few unknown errors are worth reading; the rest would only fill the pipe.
function report(error) {
  if (reported++ < 20) console.error('other:', error);
}

// The ten highest bits.
function bucket(v) {
  let shift = 0;
  while (v >> shift >= 1024) shift++;
  return (v >> shift) << shift;
}

function add(counts, key) {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function account(outcomes) {
  const { ok = 0, ...errors } = Object.fromEntries(outcomes);
  return { attempts: Object.values(errors).reduce((sum, count) => sum + count, ok), successes: ok, errors };
}

async function readLine(lines) {
  const { value, done } = await lines.next();
  if (done) process.exit(1); // Narrows has gone
  try {
    return JSON.parse(value);
  } catch (error) {
    return fail(error.message);
  }
}

function say(event) {
  require('fs').writeSync(1, JSON.stringify(event) + '\n');
}

function fail(message) {
  say({ event: 'error', message });
  process.exit(1);
}

module.exports = { run, classOf };
