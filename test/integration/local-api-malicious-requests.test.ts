import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import type { Caller } from '../fakes/every-way.ts';
import { ServedApi } from '../fakes/served-api.ts';

const secrets = '/api/v1/namespaces/default/secrets';
const word = 'nobody-should-read-this';

describe('malicious requests to the embedded API', { timeout: 240_000 }, () => {
  let api: ServedApi;
  let admin: Caller;
  let token = '';
  before(async () => {
    api = await ServedApi.open();
    admin = api.caller(api.pairOf('admin'));
    await admin({ method: 'POST', path: secrets, body: { metadata: { name: 's' }, stringData: { word } } });
    const path = '/api/v1/namespaces/default/serviceaccounts';
    await admin({ method: 'POST', path, body: { metadata: { name: 'bare' } } });
    const { text } = await admin({ method: 'POST', path: `${path}/bare/token`, body: { spec: {} } });
    ({ token } = (JSON.parse(text) as { readonly status: { readonly token: string } }).status);
  });
  after(() => api[Symbol.asyncDispose]());

  /** The request target is sent unchanged, because client libraries would normalize it. */
  function asked(target: string, headers: readonly string[] = [], method = 'GET'): string {
    return [`${method} ${target} HTTP/1.1`, 'Host: x', 'Connection: close', ...headers, '', ''].join('\r\n');
  }

  const codeOf = (response: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(response)?.[1]);

  const publicOnes = /^(ok|\{\s*"major")/;
  const paths = [
    '//version',
    '/./version',
    '/version/x',
    '/VERSION',
    '/healthz/ping',
    '/healthz/../api/v1/secrets',
    `/healthz/..${secrets}`,
    `/version/../..${secrets}`,
    `/healthz%2f..${secrets}`,
    `/healthz/%2e%2e${secrets}`,
    `/version;/..${secrets}`,
    `/version%00${secrets}`,
    `/version%3f/..${secrets}`,
    `/version#${secrets}`,
    '/livez/../metrics',
    '//api/v1/secrets',
    '/api//v1/secrets',
    '/API/v1/secrets',
    '/api/v1/Secrets',
    '/api/V1/secrets',
    '/api/v1/secrets/',
    '/api/v1//secrets',
    `${secrets}/`,
    `${secrets}//s`,
    `${secrets}/s/`,
    '/api/v1/namespaces/default/pods/..%2fsecrets%2fs',
    '/api/v1/namespaces/default/pods/../secrets/s',
    '/api/v1/namespaces/default/pods/%2e%2e/secrets/s',
    '/api/v1/namespaces/x%2f..%2fdefault/secrets/s',
    '/api/v1/namespaces/default/%73ecrets/s',
    '/api/v1/namespaces/default/secrets/%73',
    '/api/v1/watch/secrets',
    '/api/v1/proxy/nodes/n1/pods',
    '/apis//v1/secrets',
    '/apis/v1/secrets',
    '/apis/core/v1/secrets',
    '/api/v1/../../api/v1/secrets',
    'http://127.0.0.1/api/v1/secrets',
    'https://x/version/../api/v1/secrets',
    '\\api\\v1\\secrets',
    '/%61pi/v1/secrets',
    '/%61pis/%2e%2e/api/v1/secrets',
  ];
  for (const target of paths) {
    test(`a request for ${target} exposes nothing to anonymous and unprivileged callers`, async () => {
      for (const headers of [[], [`Authorization: Bearer ${token}`]]) {
        const response = await api.raw(asked(target, headers));
        const body = response.slice(response.indexOf('\r\n\r\n') + 4);
        assert.ok(!response.includes(word) && !response.includes('SecretList'), response);
        assert.ok(codeOf(response) >= 400 || publicOnes.test(body), response);
      }
    });
  }

  test('an encoded object name resolves to the same object for an authorized caller, or to none', async () => {
    const pair = api.pairOf('admin');
    const code = async (target: string) => codeOf(await api.raw(asked(target), pair));
    for (const target of [`${secrets}/s`, `${secrets}/s/`, `${secrets}/%73`, '/%61pi/v1/secrets'])
      assert.equal(await code(target), 200, target);
    for (const target of ['/API/v1/secrets', '/api/v1/Secrets', '//api/v1/secrets', `${secrets}/..%2fs`])
      assert.ok([400, 404].includes(await code(target)), target);
  });

  const inside = asked(`${secrets}/s`);
  const smuggling: Readonly<Record<string, string>> = {
    'a length and chunks': `POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: ${inside.length + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inside}`,
    'chunks and a length': `POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n${inside}`,
    'two lengths': `POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: ${inside.length}\r\n\r\n${inside}`,
    'a list of two lengths': `POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 5\r\n\r\n${inside}`,
    'a signed length': `POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\n${inside}`,
    'an unknown transfer encoding': `POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${inside}`,
    'an encoding after chunked': `POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${inside}`,
    'a space before the colon': `POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n${inside}`,
    'a header on two lines': `POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${inside}`,
    'a chunk with an invalid size': `POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n${inside}`,
    'a bare carriage return': `GET /version HTTP/1.1\rHost: x\r\n\r\n${inside}`,
    'no host': `GET /version HTTP/1.1\r\n\r\n${inside}`,
    'another protocol': `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${inside}`,
  };
  for (const [what, bytes] of Object.entries(smuggling)) {
    test(`no second request can be smuggled after ${what}`, async () => {
      const response = await api.raw(bytes, api.pairOf('admin'));
      assert.ok(!response.includes('"name":"s"') && !response.includes(btoa(word)), response);
      assert.equal(codeOf(response), 400, response);
    });
  }

  test('no request can be smuggled after a rejected upgrade, to the API server or to the kubelet', async () => {
    const visits = api.kubelet.visits.length;
    const target = '/api/v1/namespaces/default/pods/nowhere/exec?command=id';
    const upgrade = [
      'GET',
      target,
      'HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n',
    ].join(' ');
    const response = await api.raw(upgrade + inside, api.pairOf('admin'));
    assert.equal(codeOf(response), 404, response);
    assert.equal(response.split('HTTP/1.1').length, 2, response);
    assert.equal(api.kubelet.visits.length, visits);
  });

  test('a request for an unsupported upgrade is served as a plain request', async () => {
    const head = 'HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n';
    const of = (target: string) => api.raw(`GET ${target} ${head}`);
    assert.match(await of('/version'), /^HTTP\/1\.1 200 (?:.|\s)*"major"/);
    assert.equal(codeOf(await of(secrets)), 403);
    assert.equal(codeOf(await of('/metrics')), 403);
  });

  test('requests with endless headers are rejected while other clients are served', async () => {
    const long = `X-Long: ${'a'.repeat(1 << 17)}`;
    const response = await api.raw(
      asked(
        '/version',
        Array.from({ length: 12 }, () => long),
      ),
    );
    // A client that is still writing may miss the response.
    assert.ok(response === '' || codeOf(response) === 431, response.slice(0, 200));
    assert.equal((await admin({ method: 'GET', path: '/version' })).status, 200);
    const within = asked('/version', [`X-Long: ${'a'.repeat(1 << 19)}`]);
    assert.notEqual(codeOf(await api.raw(within)), 200);
    assert.equal(codeOf(await api.raw(within, api.pairOf('admin'))), 200);
  });

  test('a request with an endless body is rejected without reading the body when unauthorized, and at the size limit when authorized', async () => {
    const begin = (bearer: string) =>
      `POST ${secrets} HTTP/1.1\r\nHost: x\r\n${bearer}Content-Length: 99999999999\r\n\r\n`;
    for (const bearer of ['', `Authorization: Bearer ${token}\r\n`]) {
      const socket = await api.connect();
      const [response] = (await Promise.all([once(socket, 'data'), socket.write(begin(bearer))]))[0] as [
        Buffer,
      ];
      assert.equal(codeOf(response.toString()), 403);
      socket.destroy();
    }
    const pair = api.pairOf('admin');
    const response = await api.raw(begin('') + 'a'.repeat(17 << 20), pair);
    assert.equal(codeOf(response), 413, response.slice(0, 200));
  });

  test('many clients that never complete their requests do not block other clients', async () => {
    const beginnings = ['', 'G', 'GET /version HTTP/1.1\r\n', 'GET /version HTTP/1.1\r\nX: '];
    const sockets: TLSSocket[] = [];
    try {
      for (let index = 0; index < 200; index++) sockets.push(await api.connect());
      for (const [index, socket] of sockets.entries())
        socket.write(beginnings[index % beginnings.length] ?? '');
      for (let count = 0; count < 20; count++)
        assert.equal((await admin({ method: 'GET', path: secrets })).status, 200);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  test('clients cannot negotiate another protocol or an older TLS version', async () => {
    await assert.rejects(
      api.connect({ ALPNProtocols: ['h2'] }),
      /no application protocol|alert|reset|hang up/i,
    );
    const plain = await api.connect({ ALPNProtocols: ['h2', 'http/1.1'] });
    assert.equal(plain.alpnProtocol, 'http/1.1');
    plain.destroy();
    const older = { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    await assert.rejects(api.connect(older), /version|alert|protocol/i);
  });

  test('requests from web pages of other origins are rejected', async () => {
    const headers = ['Origin: https://evil.example', 'Access-Control-Request-Method: POST'];
    for (const method of ['GET', 'OPTIONS', 'POST']) {
      const response = await api.raw(asked(secrets, headers, method));
      assert.equal(codeOf(response), 403, response);
      assert.doesNotMatch(response, /access-control/i);
    }
    const open = await api.raw(asked('/version', headers));
    assert.doesNotMatch(open, /access-control/i);
  });

  test('requests with unknown methods are rejected', async () => {
    for (const method of ['TRACE', 'OPTIONS', 'PROPFIND', 'LINK']) {
      const response = await api.raw(asked(`${secrets}/s`, [], method), api.pairOf('admin'));
      assert.equal(codeOf(response), 405, `${method}: ${response.slice(0, 300)}`);
      assert.ok(!response.includes(word));
    }
    const connected = await api.raw(asked('127.0.0.1:22', [], 'CONNECT'), api.pairOf('admin'));
    assert.ok(connected === '' || codeOf(connected) >= 400, connected);
  });

  test('the server has logged no internal error after all malicious requests', () => {
    assert.deepEqual(
      [...api.logs.records].filter(({ severity }) => severity === 'error'),
      [],
    );
  });
});
