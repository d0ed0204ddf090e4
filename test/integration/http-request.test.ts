import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { cancelledError, type HttpRequest, sendHttp } from '../../src/lib/index.ts';

const execute = promisify(execFile);
const open = new AbortController().signal;

async function listening(server: Server, host = '127.0.0.1') {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  const request: HttpRequest = { scheme: 'http', host, port, target: '/a?b', headers: [] };
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()));
  return { request, [Symbol.asyncDispose]: close };
}

/** Starts a server that gives the same response to every request and records the requests. */
async function answering(answer: RequestListener, host?: string) {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    answer(request, response);
  });
  return Object.assign(await listening(server, host), { asked: requests });
}

async function certificate(): Promise<{ readonly key: string; readonly cert: string }> {
  const dir = await mkdtemp(join(tmpdir(), 'klg-tls-'));
  const [key, cert] = [join(dir, 'key'), join(dir, 'cert')];
  const subject = ['-subj', '/CN=nobody', '-days', '1', '-nodes', '-newkey', 'rsa:2048'];
  try {
    await execute('openssl', ['req', '-x509', ...subject, '-keyout', key, '-out', cert]);
    return { key: await readFile(key, 'utf8'), cert: await readFile(cert, 'utf8') };
  } finally {
    await rm(dir, { recursive: true });
  }
}

describe('an HTTP probe request over the network', () => {
  it('sends exactly the given headers, including a Host header in place of the default one', async () => {
    await using server = await answering((_request, response) => response.writeHead(418).end('tea'));
    const headers = [
      ['Host', 'somewhere'],
      ['X-Two', '1'],
      ['X-Two', '2'],
    ] as const;
    const reply = await sendHttp({ ...server.request, headers }, 10, open);
    assert.deepEqual([reply.status, reply.body.toString()], [418, 'tea']);
    const [asked] = server.asked;
    assert.equal(asked?.url, '/a?b');
    assert.deepEqual({ ...asked?.headers }, { host: 'somewhere', 'x-two': '1, 2', connection: 'close' });
  });

  it('reads only the limited part of a long response', async () => {
    await using server = await answering((_request, response) => {
      const more = () => response.write('x'.repeat(1_000), () => response.destroyed || setImmediate(more));
      more();
    });
    const { body } = await sendHttp(server.request, 1_500, open);
    assert.equal(body.byteLength, 1_500);
  });

  it('connects to IPv6 addresses', async () => {
    await using server = await answering((_request, response) => response.end('six'), '::1');
    assert.equal((await sendHttp(server.request, 10, open)).body.toString(), 'six');
  });

  it('accepts any server certificate', async () => {
    const tls = createTlsServer(await certificate(), (_request, response) => response.end('safe'));
    await using server = await listening(tls);
    const { body } = await sendHttp({ ...server.request, scheme: 'https' }, 10, open);
    assert.equal(body.toString(), 'safe');
  });

  it('reports a server that does not use TLS', async () => {
    await using server = await answering((_request, response) => response.end());
    await assert.rejects(sendHttp({ ...server.request, scheme: 'https' }, 10, open), {
      code: 'HTTP_NOT_TLS',
    });
  });

  it('fails when no server listens and when the server closes the connection', async () => {
    const server = await listening(createTcpServer((socket) => socket.destroy()));
    await assert.rejects(sendHttp(server.request, 10, open), { code: 'ECONNRESET' });
    await server[Symbol.asyncDispose]();
    await assert.rejects(sendHttp(server.request, 10, open), { code: 'ECONNREFUSED' });
  });

  it('ends immediately when it is aborted, before and during the response', async () => {
    for (const begin of [false, true]) {
      const controller = new AbortController();
      await using server = await answering((_request, response) => {
        if (begin) response.write('x');
        setTimeout(() => controller.abort(cancelledError('enough')), 50);
      });
      await assert.rejects(sendHttp(server.request, 10, controller.signal), /enough/);
    }
  });

  it('rejects a request with an invalid header', async () => {
    await using server = await answering((_request, response) => response.end());
    await assert.rejects(sendHttp({ ...server.request, headers: [['X', 'a\nb']] }, 10, open), {
      code: 'ERR_INVALID_CHAR',
    });
  });
});
