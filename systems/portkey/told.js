// What Portkey's gateway cannot be told by options: to listen at one address, and where requests go that do not say so.
// Its users name a provider in headers of each request. All gateways get the same requests here, so this adds the headers.
//
// usage: ADDRESS=127.0.0.1 BACKEND=127.0.0.3:8080 node --require told.js start-server.js
'use strict';
const http = require('http');
const net = require('net');

const { ADDRESS, BACKEND } = process.env;
const HEADERS = ['x-portkey-provider', 'openai', 'x-portkey-custom-host', `http://${BACKEND}/v1`];

const { listen } = net.Server.prototype;
net.Server.prototype.listen = function listenAt(port, ...rest) {
  const called = rest.filter((word) => typeof word === 'function');
  return listen.call(this, { port, host: ADDRESS, backlog: 4096 }, ...called);
};

const { emit } = http.Server.prototype;
http.Server.prototype.emit = function emitTold(event, ...words) {
  if (event === 'request') words[0].rawHeaders.push(...HEADERS);
  return emit.call(this, event, ...words);
};
