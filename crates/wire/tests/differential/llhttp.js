// Reads messages of HTTP with llhttp, the parser of Node, as undici carries it for WebAssembly: the same version on every machine. One
// stream a line, as `x` and hexadecimal digits. Prints how each ended, and its whole messages: the status or the path, a colon, and
// the body.
//
// usage: node llhttp.js UNDICI request|response
const [, , undici, kind] = process.argv;
const wasm = require(`${undici}/lib/llhttp/llhttp-wasm.js`);
const REQUEST = 1, RESPONSE = 2, OK = 0;
const type = kind === 'request' ? REQUEST : RESPONSE;

let messages, current, path;
const bytes = (at, length) => Buffer.from(llhttp.memory.buffer.slice(at, at + length));
const module_ = new WebAssembly.Module(wasm);
const { exports: llhttp } = new WebAssembly.Instance(module_, {
  env: {
    wasm_on_message_begin: () => { path = ''; return OK; },
    wasm_on_url: (parser, at, length) => { path += bytes(at, length).toString('hex'); return OK; },
    wasm_on_status: () => OK,
    wasm_on_header_field: () => OK,
    wasm_on_header_value: () => OK,
    wasm_on_headers_complete: (parser, status) => {
      current = { what: type === REQUEST ? path : String(status), body: [] };
      // Answers without a body, whatever their fields say (RFC 9112, 6.3).
      return type === RESPONSE && (status < 200 || status === 204 || status === 304) ? 1 : 0;
    },
    wasm_on_body: (parser, at, length) => { current.body.push(bytes(at, length)); return OK; },
    wasm_on_message_complete: () => {
      messages.push(`${current.what}:${Buffer.concat(current.body).toString('hex')}`);
      return OK;
    },
  },
});
llhttp._initialize();

const text = (at) => {
  const memory = Buffer.from(llhttp.memory.buffer);
  return memory.toString('latin1', at, memory.indexOf(0, at));
};
for (const line of require('fs').readFileSync(0, 'latin1').split('\n').filter(Boolean)) {
  const stream = Buffer.from(line.slice(1), 'hex');
  messages = [];
  const parser = llhttp.llhttp_alloc(type);
  const at = llhttp.malloc(stream.length || 1);
  Buffer.from(llhttp.memory.buffer).set(stream, at);
  let code = llhttp.llhttp_execute(parser, at, stream.length);
  if (code === OK) code = llhttp.llhttp_finish(parser);
  console.log([code === OK ? 'ok' : text(llhttp.llhttp_errno_name(code)), ...messages].join(' '));
  llhttp.free(at);
  llhttp.llhttp_free(parser);
}
