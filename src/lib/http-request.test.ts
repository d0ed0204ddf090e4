import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { describe, it } from 'node:test';
import {
  followRedirects,
  type HttpRequest,
  type HttpResponse,
  joinHostPort,
  requestTarget,
  sendHttp,
} from './http-request.ts';

const open = new AbortController().signal;
const request: HttpRequest = {
  scheme: 'http',
  host: '10.0.0.7',
  port: 8080,
  target: '/a',
  headers: [
    ['Host', 'web'],
    ['X-Key', '1'],
  ],
};

function reply(status: number, location?: string): HttpResponse {
  return { status, headers: { location }, body: Buffer.alloc(0) };
}

/** Returns the given responses in order, and records the requests. */
function dialer(...replies: readonly HttpResponse[]) {
  const requests: HttpRequest[] = [];
  const dial = async (each: HttpRequest) => {
    requests.push(each);
    return replies[Math.min(requests.length, replies.length) - 1] ?? reply(200);
  };
  return { asked: requests, dial };
}

describe('redirects of HTTP requests', () => {
  it('follows a redirect to the same host, with its headers', async () => {
    const { asked, dial } = dialer(reply(302, '/b?c=d'), reply(200));
    assert.equal((await followRedirects(dial, request, 10, open)).kind, 'answered');
    assert.deepEqual(asked[1], { ...request, target: '/b?c=d' });
  });

  it('removes the Host header when it follows a redirect to a full URL', async () => {
    const { asked, dial } = dialer(reply(301, 'https://10.0.0.7/b'), reply(500));
    const { reply: last } = await followRedirects(dial, request, 10, open);
    assert.equal(last.status, 500);
    assert.deepEqual(asked[1], {
      ...request,
      scheme: 'https',
      port: 443,
      target: '/b',
      headers: [['X-Key', '1']],
    });
  });

  it('does not follow a redirect to another host', async () => {
    const { asked, dial } = dialer(reply(307, 'http://elsewhere/b'));
    assert.equal((await followRedirects(dial, request, 10, open)).kind, 'leads-away');
    assert.equal(asked.length, 1);
  });

  it('stops after ten redirects', async () => {
    const { asked, dial } = dialer(reply(308, '/a'));
    await assert.rejects(followRedirects(dial, request, 10, open), { message: 'stopped after 10 redirects' });
    assert.equal(asked.length, 10);
  });
});

it('builds a request target from any path', () => {
  for (const [path, target] of [
    ['', '/'],
    ['healthz', '/healthz'],
    ['/a b?c=ü', '/a%20b?c=%C3%BC'],
    ['/a%20b?x=%', '/a%20b?x=%'],
    ['/100%?x', '/100%25%3Fx'],
    ['/a#b', '/a'],
    ['http://other:1/a/../b', '/a/../b'],
    ['?x=1', '/?x=1'],
  ] as const)
    assert.equal(requestTarget(path), target, path);
});

it('an IPv6 address is put into brackets before its port', () => {
  assert.equal(joinHostPort('fd00::1', 80), '[fd00::1]:80');
  assert.equal(joinHostPort('10.0.0.1', 80), '10.0.0.1:80');
});

describe('the headers of an HTTP request', () => {
  async function received(headers: HttpRequest['headers']) {
    const server = createServer((incoming, outgoing) => outgoing.end(JSON.stringify(incoming.rawHeaders)));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    try {
      const { body } = await sendHttp({ ...request, host: '127.0.0.1', port, headers }, 1 << 20, open);
      return JSON.parse(body.toString('utf8')) as readonly string[];
    } finally {
      server.close();
    }
  }

  it('headers keep every value of a repeated name, and names such as __proto__', async () => {
    const raw = await received([
      ['X-Key', '1'],
      ['__proto__', 'p'],
      ['x-key', '2'],
    ]);
    assert.deepEqual(raw.slice(0, 6), ['x-key', '1', 'x-key', '2', '__proto__', 'p']);
  });

  it('removes request headers that would upgrade the connection or add a body', async () => {
    const raw = await received([
      ['Connection', 'Upgrade'],
      ['Upgrade', 'websocket'],
      ['Content-Length', '5'],
    ]);
    assert.deepEqual(
      raw.map((each) => each.toLowerCase()).filter((each) => /upgrade|length/.test(each)),
      [],
    );
  });

  it('headers above 64 KiB are rejected before the request is sent', async () => {
    const headers = Array.from({ length: 13_150 }, () => ['X-Key', '1'] as const);
    await assert.rejects(sendHttp({ ...request, headers }, 10, open), { code: 'HTTP_HEADERS_TOO_LARGE' });
  });
});

describe('informational HTTP responses', () => {
  async function send(answer: (write: (text: string) => void) => void) {
    const server = createTcpServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => answer((text) => socket.writable && socket.write(text)));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    try {
      const local = { ...request, host: '127.0.0.1', port, headers: [] };
      return await sendHttp(local, 10, AbortSignal.timeout(10_000));
    } finally {
      server.close();
    }
  }

  it('1xx responses are skipped before the final response', async () => {
    const { status } = await send((write) => {
      write('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n');
      write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    });
    assert.equal(status, 200);
  });

  for (const line of ['100 Continue', '103 Early Hints'])
    it(`more than 16 responses with ${line} fail the request`, async () => {
      const endless = send((write) => {
        const timer = setInterval(() => write(`HTTP/1.1 ${line}\r\n\r\n`), 1);
        timer.unref();
        setTimeout(() => clearInterval(timer), 20_000).unref();
      });
      await assert.rejects(endless, { code: 'HTTP_INFORMATIONAL' });
    });
});
