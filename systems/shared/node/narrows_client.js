// The common part of Node's client drivers: it reads and writes the JSON lines, keeps the callers and their counters, and checks
// every answer. It implements docs/contracts.md, "A client driver". A client only has to provide an object with
//   startPool(size, origin, timeout)   creates a pool of `size` connections; the timeout is in milliseconds
//   get(pool, path, id, timeout)       makes one GET, including the wait for the pool. Resolves to { status, id, body, own }:
//                                      body is a Buffer, own is the performance.now() at which a connection of the pool
//                                      became the request's own, if the library tells. Rejects with an error that has a
//                                      `failureClass` of the contract
//   version                            optional
'use strict';
const readline = require('readline');
const { performance } = require('perf_hooks');

/** Carries out one trial. */
async function run(client) {
  const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const orders = await readLine(lines);
  if (orders.rate !== undefined && orders.rate !== null) fail('this driver does not support rate');
  const { origin, pathname } = new URL(orders.url);
  const timeout = orders.timeout_ms;
  const pools = Array.from({ length: orders.pools }, () => client.startPool(orders.pool_size, origin, timeout));
  say({ event: 'ready' });
  await readLine(lines);

  const windowStart = performance.now() + orders.warmup_ms;
  const windowEnd = windowStart + orders.duration_ms;
  const [inside, total, latency, waits, service, failed, ages] = Array.from({ length: 7 }, () => new Map());
  const firsts = {};
  let inFlight = 0;

  // One caller, which sends request after request. Requests that end inside the window count.
  async function call(number) {
    for (let sent = 0; ; sent++) {
      const begin = performance.now();
      if (begin >= windowEnd) return;
      const id = `${number}-${sent}`;
      let seen, outcome;
      try {
        const pool = pools[Math.floor(Math.random() * pools.length)];
        seen = await client.get(pool, pathname, id, timeout);
        outcome = judge(seen, id, performance.now() - begin > timeout);
      } catch (error) {
        seen = error;
        outcome = error.failureClass ?? 'other';
        if (outcome === 'other') report(error);
      }
      const end = performance.now();
      add(total, outcome);
      if (end >= windowEnd) {
        inFlight++;
        addTime(ages, windowEnd - begin);
      } else if (end >= windowStart) {
        add(inside, outcome);
        if (outcome === 'ok') {
          addTime(latency, end - begin);
          if (seen.own !== undefined) {
            addTime(waits, seen.own - begin);
            addTime(service, end - seen.own);
          }
        } else {
          addTime(failed, end - begin);
          firsts[outcome] ??= example(seen, end - windowStart);
        }
      }
    }
  }

  await Promise.all(Array.from({ length: orders.concurrency }, (_, number) => call(number)));
  const window = account(inside);
  say({
    event: 'done', elapsed_us: orders.duration_ms * 1000, ...window, attempts: window.attempts + inFlight, in_flight: inFlight,
    in_flight_us: pairs(ages), latency_us: pairs(latency), pool_wait_us: pairs(waits), service_us: pairs(service), failed_us: pairs(failed),
    first_errors: firsts, total: account(total), version: client.version,
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

// Describes an error for first_errors: what was seen, and when. Long reasons are cut. A parser's error has the offending bytes.
function example(seen, into) {
  const said = seen instanceof Error
    ? String(seen).slice(0, 300) + (seen.data ? ` in ${quoted(Buffer.from(seen.data))}` : '')
    : `status ${seen.status}, id ${seen.id ?? 'none'}, body ${quoted(seen.body)}`;
  return `${said} (${(into / 1000).toFixed(3)} s into the window)`;
}

// The first bytes as text.
function quoted(bytes) {
  const text = bytes.subarray(0, 48).toString('latin1');
  return `"${text.replace(/[^ -~]|["\\]/g, (c) => '\\x' + c.charCodeAt().toString(16).padStart(2, '0'))}"`;
}

/** The class of an error of a socket or of the parser. */
function classOf(error) {
  switch (error.code) {
    case 'ECONNREFUSED': return 'connect_refused';
    case 'ETIMEDOUT': return 'connect_timeout';
    case 'ECONNRESET': case 'EPIPE': return 'reset';
    default: return /^HPE_/.test(error.code) ? 'protocol' : 'other';
  }
}

let reported = 0;

// Reports the first few unknown errors. More of them would only fill the pipe.
function report(error) {
  if (reported++ < 20) console.error('other:', error);
}

// Keeps the ten highest bits of a time.
function bucket(v) {
  let shift = 0;
  while (v >> shift >= 1024) shift++;
  return (v >> shift) << shift;
}

function addTime(times, ms) {
  add(times, bucket(Math.round(ms * 1000)));
}

function pairs(times) {
  return [...times].sort((a, b) => a[0] - b[0]);
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
  if (done) process.exit(1); // Narrows has exited
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
