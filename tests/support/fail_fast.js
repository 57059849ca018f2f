// A client driver (docs/contracts.md, "A client driver") with the pool behind the first row of a published table. It pipelines
// requests on a random connection. When the server closes a connection, the requests on it fail, and it is opened again only after
// a pause. Meanwhile a call that finds no open connection fails at once.
//
// usage: node fail_fast.js BACKOFF_MS ATTEMPTS
// With ATTEMPTS = 0 it makes as many as the time allows, else exactly so many, however long they take.
'use strict';
const net = require('net');
const readline = require('readline');
const { performance } = require('perf_hooks');

const [backoff, most] = process.argv.slice(2).map(Number);
const now = () => Math.round(performance.now() * 1000);
const say = (event) => process.stdout.write(JSON.stringify(event) + '\n');
const add = (counts, key) => { counts[key] = (counts[key] || 0) + 1; };
const sum = (counts) => Object.values(counts).reduce((a, b) => a + b, 0);
const pairs = (counts) => Object.entries(counts).map(([key, n]) => [Number(key), n]).sort((a, b) => a[0] - b[0]);
const bucket = (us) => { let s = 0; while (us >> s >= 1024) s++; return (us >> s) << s; };

class Connection {
  constructor(url) {
    this.url = url;
    this.waiting = []; // calls that were sent and not answered, oldest first
    this.answered = 0;
    this.up = false;
  }

  open(ready) {
    this.text = '';
    this.answered = 0;
    this.socket = net.connect({ host: this.url.hostname, port: this.url.port, noDelay: true });
    this.socket.on('connect', () => { this.up = true; if (ready) ready(); });
    this.socket.on('data', (data) => this.receive(data.toString('latin1')));
    this.socket.on('error', () => {}); // 'close' follows
    this.socket.on('end', () => this.lost());
    this.socket.on('close', () => this.lost());
  }

  lost() {
    if (!this.socket) return;
    this.socket.destroy();
    this.socket = null;
    this.up = false;
    const [ordinal, lost] = [this.answered + 1, this.waiting];
    this.waiting = [];
    for (const call of lost) call.end('closed_early', ordinal);
    setTimeout(() => this.open(), backoff).unref();
  }

  send(call) {
    this.waiting.push(call);
    this.socket.write(`GET ${this.url.pathname} HTTP/1.1\r\nHost: ${this.url.host}\r\nx-request-id: ${call.id}\r\n\r\n`);
  }

  receive(text) {
    this.text += text;
    for (;;) {
      const head = this.text.indexOf('\r\n\r\n');
      if (head < 0) return;
      const length = Number(/content-length: (\d+)/i.exec(this.text.slice(0, head))[1]);
      if (this.text.length < head + 4 + length) return;
      const [answer, body] = [this.text.slice(0, head), this.text.slice(head + 4, head + 4 + length)];
      this.text = this.text.slice(head + 4 + length);
      this.answered += 1;
      const id = /x-request-id: (\S+)/i.exec(answer);
      const good = answer.startsWith('HTTP/1.1 200 ') && body === 'ok' && id && id[1] === this.waiting[0].id;
      this.waiting.shift().end(good ? null : 'wrong_id', this.answered);
    }
  }
}

const tally = { attempts: 0, successes: 0, errors: {} };
const inside = { successes: 0, errors: {}, in_flight: 0, latency: {}, failed: {}, ordinals: {} };

// One call after another until the attempts are used up or, without a number of them, the time is over.
function caller(pool, window, done) {
  const next = () => {
    const began = now();
    if (most > 0 ? tally.attempts >= most : began >= window.end) return done();
    const call = { id: String(tally.attempts++), end: (error, ordinal) => {
      const ended = now();
      if (error) add(tally.errors, error); else tally.successes += 1;
      if (began < window.end && ended >= window.end) inside.in_flight += 1;
      else if (ended < window.end && ended >= window.start && error) {
        add(inside.errors, error);
        add(inside.failed, bucket(ended - began));
        if (ordinal) add(inside.ordinals, ordinal);
      } else if (ended < window.end && ended >= window.start) {
        inside.successes += 1;
        add(inside.latency, bucket(ended - began));
      }
      setImmediate(next);
    } };
    const connection = pool[Math.floor(Math.random() * pool.length)];
    if (connection.up) connection.send(call); else call.end('busy');
  };
  next();
}

function finish(orders) {
  say({
    event: 'done',
    elapsed_us: orders.duration_ms * 1000,
    attempts: inside.successes + sum(inside.errors) + inside.in_flight,
    successes: inside.successes,
    errors: inside.errors,
    in_flight: inside.in_flight,
    latency_us: pairs(inside.latency),
    service_us: pairs(inside.latency),
    pool_wait_us: inside.successes > 0 ? [[0, inside.successes]] : [],
    failed_us: pairs(inside.failed),
    failed_ordinals: pairs(inside.ordinals),
    total: tally,
  });
  process.exit(0);
}

let orders;
let pool;
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const said = JSON.parse(line);
  if (!said.go) {
    orders = said;
    const url = new URL(orders.url);
    pool = Array.from({ length: orders.pools * orders.pool_size }, () => new Connection(url));
    let opening = pool.length;
    const ready = () => { if (--opening === 0) say({ event: 'ready' }); };
    pool.forEach((connection) => connection.open(ready));
    return;
  }
  const start = now() + orders.warmup_ms * 1000;
  const window = { start, end: start + orders.duration_ms * 1000 };
  let callers = orders.concurrency;
  const done = () => { if (--callers === 0) setTimeout(() => finish(orders), Math.max(0, (window.end - now()) / 1000)); };
  for (let n = orders.concurrency; n > 0; n--) caller(pool, window, done);
});
