// Tests the gRPC server with a real grpc-js client.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { status as foreignStatus, Metadata, type ServiceError } from '@grpc/grpc-js';
import { RuntimeService, type RuntimeServiceMethods } from '../../src/cri/index.ts';
import {
  type GrpcCode,
  GrpcError,
  GrpcServer,
  type ServiceImplementation,
} from '../../src/protocols/grpc/index.ts';
import { Relay } from '../fakes/relay.ts';
import { socketFolder } from '../fakes/socket-folder.ts';
import { until } from '../fakes/until.ts';
import { type GrpcJsClient, grpcJsClient } from './grpc-js.ts';

type Implementation = Partial<ServiceImplementation<RuntimeServiceMethods>>;

interface Pair extends AsyncDisposable {
  readonly client: GrpcJsClient;
  readonly server: GrpcServer;
  readonly relay: Relay;
  readonly path: string;
  /** The errors of method implementations that the server reported. */
  readonly bugs: string[];
}

async function serve(implementation: Implementation): Promise<Pair> {
  const stack = new AsyncDisposableStack();
  const folder = stack.use(socketFolder());
  const bugs: string[] = [];
  const server = stack.use(new GrpcServer({ onBug: (path, error) => bugs.push(`${path} ${String(error)}`) }));
  server.add(RuntimeService, implementation as ServiceImplementation<RuntimeServiceMethods>);
  await server.listen(folder.path('server.sock'));
  const relay = stack.use(new Relay(folder.path('server.sock')));
  await relay.listen(folder.path('relay.sock'));
  const client = stack.use(grpcJsClient(folder.path('relay.sock')));
  return {
    client,
    server,
    relay,
    path: folder.path('server.sock'),
    bugs,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const version = async () => ({ version: '0.1.0', runtimeName: 'ours' });

function failsWith(code: number, details?: string | RegExp): (error: ServiceError) => true {
  return (error) => {
    assert.equal(error.code, code, error.message);
    if (typeof details === 'string') assert.equal(error.details, details);
    else if (details !== undefined) assert.match(error.details, details);
    return true;
  };
}

describe('unary gRPC calls', () => {
  test('unary calls are served', async () => {
    await using pair = await serve({
      execSync: async ({ containerId, cmd, timeout }) => ({
        stdout: Buffer.from(`${containerId} ${cmd.join(',')} ${timeout}`),
        exitCode: -5,
      }),
    });
    const { answer } = pair.client.unary('execSync', { containerId: 'c', cmd: ['a', 'ü'], timeout: '-1' });
    assert.deepEqual(await answer, {
      stdout: Buffer.from('c a,ü -1'),
      stderr: Buffer.alloc(0),
      exitCode: -5,
    });
  });

  test('a failing method returns the given status code and message, for every code', async () => {
    const messages = ['plain', '100% %41', 'two\nlines\r\n\ttab', 'grüße 日本 \u{1f600}', 'y'.repeat(4_000)];
    await using pair = await serve({
      stopContainer: async ({ containerId, timeout }) => {
        throw new GrpcError(containerId as GrpcCode, messages[Number(timeout)] ?? 'none');
      },
    });
    for (const [index, message] of messages.entries()) {
      await assert.rejects(
        pair.client.unary('stopContainer', { containerId: 'NOT_FOUND', timeout: index }).answer,
        failsWith(foreignStatus.NOT_FOUND, message),
      );
    }
    for (const [name, code] of Object.entries(foreignStatus)) {
      if (typeof code !== 'number' || code === 0) continue;
      const { answer } = pair.client.unary('stopContainer', { containerId: name });
      await assert.rejects(answer, failsWith(code, 'plain'));
    }
    assert.deepEqual(pair.bugs, []);
    assert.equal(pair.relay.connections, 1);
  });

  test('an error message too long for an HTTP/2 header is truncated', async () => {
    await using pair = await serve({
      version: async () => {
        throw new GrpcError('ABORTED', 'ü'.repeat(200_000));
      },
    });
    await assert.rejects(
      pair.client.unary('version', {}).answer,
      failsWith(foreignStatus.ABORTED, /^ü{4000}/),
    );
  });

  test('a method that throws an error other than a GrpcError returns UNKNOWN, and the server reports the error', async () => {
    await using pair = await serve({
      version: async () => {
        throw new TypeError('oops');
      },
    });
    await assert.rejects(pair.client.unary('version', {}).answer, failsWith(foreignStatus.UNKNOWN, 'oops'));
    await until('it was reported', () => pair.bugs.length === 1);
    assert.deepEqual(pair.bugs, ['/runtime.v1.RuntimeService/Version TypeError: oops']);
  });

  test('a response that cannot be encoded is reported', async () => {
    await using pair = await serve({ version: async () => ({ version: 5 as unknown as string }) });
    await assert.rejects(
      pair.client.unary('version', {}).answer,
      failsWith(foreignStatus.UNKNOWN, /VersionResponse/),
    );
    assert.match(pair.bugs[0] ?? '', /VersionResponse\.version/);
  });

  test('a call of an unimplemented method returns UNIMPLEMENTED', async () => {
    await using pair = await serve({ version });
    const { answer } = pair.client.unary('status', {});
    await assert.rejects(answer, failsWith(foreignStatus.UNIMPLEMENTED, /RuntimeService\/Status/));
    assert.equal((await pair.client.unary('version', {}).answer)['runtimeName'], 'ours');
    assert.equal(pair.relay.connections, 1);
  });

  test('500 concurrent unary calls are served', async () => {
    let requestCount = 0;
    const all = Promise.withResolvers<void>();
    await using pair = await serve({
      version: async () => {
        if (++requestCount === 500) all.resolve();
        await all.promise;
        return version();
      },
    });
    const calls = Array.from({ length: 500 }, () => pair.client.unary('version', {}).answer);
    assert.equal((await Promise.all(calls)).length, 500);
  });
});

describe('large gRPC messages', () => {
  const echo: Implementation = {
    version,
    execSync: async ({ cmd, timeout }) => ({
      stdout: Buffer.alloc(Number(timeout) || (cmd[0]?.length ?? 0)),
    }),
  };

  test('messages of 15 MiB pass in both directions', async () => {
    await using pair = await serve(echo);
    const { answer } = pair.client.unary('execSync', { cmd: ['z'.repeat(15 << 20)] });
    assert.equal(((await answer)['stdout'] as Buffer).length, 15 << 20);
  });

  test('a request over 16 MiB is rejected by the server, which keeps the connection open', async () => {
    await using pair = await serve(echo);
    for (let round = 0; round < 3; round++) {
      const { answer } = pair.client.unary('execSync', { cmd: ['z'.repeat(17 << 20)] });
      await assert.rejects(answer, failsWith(foreignStatus.RESOURCE_EXHAUSTED, /larger than the limit/));
      assert.equal((await pair.client.unary('version', {}).answer)['runtimeName'], 'ours');
    }
    assert.equal(pair.relay.connections, 1);
  });

  test('a response over 16 MiB is rejected by the client, which keeps the connection open', async () => {
    await using pair = await serve(echo);
    const { answer } = pair.client.unary('execSync', { timeout: 17 << 20 });
    await assert.rejects(answer, failsWith(foreignStatus.RESOURCE_EXHAUSTED));
    assert.equal((await pair.client.unary('version', {}).answer)['runtimeName'], 'ours');
    assert.equal(pair.relay.connections, 1);
  });
});

describe('server-streaming gRPC calls', () => {
  test('the responses of a stream are delivered in order', async () => {
    await using pair = await serve({
      async *getContainerEvents() {
        for (let index = 0; index < 5_000; index++) yield { containerId: String(index) };
      },
    });
    const read = await Array.fromAsync(pair.client.stream('getContainerEvents', {}));
    assert.deepEqual(
      read.map(({ containerId }) => containerId),
      Array.from({ length: 5_000 }, (_, index) => String(index)),
    );
  });

  test('a stream may end without a response', async () => {
    await using pair = await serve({ async *getContainerEvents() {} });
    assert.deepEqual(await Array.fromAsync(pair.client.stream('getContainerEvents', {})), []);
  });

  test('a failing stream delivers its responses before the failure', async () => {
    await using pair = await serve({
      async *getContainerEvents() {
        yield { containerId: 'a' };
        throw new GrpcError('DATA_LOSS', 'ran\ndry');
      },
    });
    const read: unknown[] = [];
    const reading = (async () => {
      for await (const item of pair.client.stream('getContainerEvents', {})) read.push(item);
    })();
    await assert.rejects(reading, failsWith(foreignStatus.DATA_LOSS, 'ran\ndry'));
    assert.equal(read.length, 1);
  });

  test('a stream ends on the server when the client cancels it', async () => {
    const observed: string[] = [];
    await using pair = await serve({
      async *getContainerEvents(_request, { signal }) {
        try {
          yield { containerId: 'a' };
          await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
        } finally {
          observed.push(`left ${signal.aborted}`);
        }
      },
    });
    const stream = pair.client.stream('getContainerEvents', {});
    stream.on('error', () => {});
    stream.on('data', () => stream.cancel());
    await until('it ended', () => observed.length === 1);
    assert.deepEqual(observed, ['left true']);
    assert.deepEqual(pair.bugs, []);
  });

  test('a stream waits for a slow reader, and ends when the reader disconnects', async () => {
    let sent = 0;
    let ended = false;
    await using pair = await serve({
      version,
      async *getContainerEvents() {
        try {
          for (;;) {
            yield { containerId: 'x'.repeat(64 << 10) };
            sent += 64 << 10;
          }
        } finally {
          ended = true;
        }
      },
    });
    const stream = pair.client.stream('getContainerEvents', {});
    stream.on('error', () => {});
    await new Promise((resolve) => stream.once('readable', resolve));
    let before = -1;
    while (before !== sent) {
      before = sent;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    assert.ok(sent < 8 << 20, `${sent} bytes for a reader that read nothing`);
    assert.equal((await pair.client.unary('version', {}).answer)['runtimeName'], 'ours');
    stream.cancel();
    await until('the source was closed', () => ended);
  });
});

describe('deadlines and cancellation of gRPC calls', () => {
  test('the deadline of a call is passed to the method, which is notified when it expires', async () => {
    const observed: string[] = [];
    await using pair = await serve({
      version: async (_request, { signal, timeoutMs }) => {
        observed.push(
          timeoutMs !== undefined && timeoutMs > 0 && timeoutMs <= 500 ? 'told' : String(timeoutMs),
        );
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        observed.push('ended');
        return {};
      },
    });
    const { answer } = pair.client.unary('version', {}, { deadline: new Date(Date.now() + 300) });
    await assert.rejects(answer, failsWith(foreignStatus.DEADLINE_EXCEEDED));
    await until('the method observed it', () => observed.length === 2);
    assert.deepEqual(observed, ['told', 'ended']);
    assert.deepEqual(pair.bugs, []);
  });

  test('a cancelled call aborts its method, and an error the method throws afterwards is not reported', async () => {
    const observed: string[] = [];
    await using pair = await serve({
      version: async (_request, { signal }) => {
        observed.push('begun');
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        observed.push('ended');
        throw new Error('cancelled');
      },
    });
    const call = pair.client.unary('version', {});
    await until('it began', () => observed.length === 1);
    call.cancel();
    await assert.rejects(call.answer, failsWith(foreignStatus.CANCELLED));
    await until('it ended', () => observed.length === 2);
    assert.deepEqual(pair.bugs, []);
  });

  test('the abort signal of a completed call is not triggered', async () => {
    const signals: AbortSignal[] = [];
    await using pair = await serve({
      version: async (_request, { signal }) => {
        signals.push(signal);
        return version();
      },
    });
    await pair.client.unary('version', {}).answer;
    await pair.client.unary('version', {}).answer;
    assert.equal(signals[0]?.aborted, false);
  });

  test('closing the server ends the calls in flight', async () => {
    let begun = false;
    await using pair = await serve({
      version: async (_request, { signal }) => {
        begun = true;
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        return {};
      },
    });
    const { answer } = pair.client.unary('version', {});
    await until('it began', () => begun);
    await Promise.all([pair.server.close(), assert.rejects(answer)]);
    await pair.server.close();
  });
});

describe('gRPC clients that violate the protocol', () => {
  for (const [what, bytes] of [
    ['HTTP/1', Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n')],
    ['garbage', Buffer.alloc(4_096, 0xff)],
    [
      'the preface, then garbage',
      Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), Buffer.alloc(64, 0xff)]),
    ],
    ['nothing', Buffer.alloc(0)],
  ] as const) {
    test(`a client with ${what} does not affect other clients`, async () => {
      await using pair = await serve({ version });
      const socket = connect(pair.path);
      socket.on('error', () => {});
      socket.resume();
      socket.write(bytes);
      assert.equal((await pair.client.unary('version', {}).answer)['runtimeName'], 'ours');
      socket.destroy();
      assert.equal((await pair.client.unary('version', {}).answer)['runtimeName'], 'ours');
    });
  }

  test('requests that are not gRPC are rejected, and the next request is served', async () => {
    await using pair = await serve({ version });
    const session = connectHttp2('http://localhost', { path: pair.path });
    for (const [headers, body] of [
      [{ ':method': 'GET', ':path': '/' }, ''],
      [{ ':method': 'POST', ':path': '/runtime.v1.RuntimeService/Version' }, ''],
      [{ ':method': 'POST', ':path': '/runtime.v1.RuntimeService/Version' }, 'not a frame'],
      [{ ':method': 'POST', ':path': '/runtime.v1.RuntimeService/Version' }, '\0\0\0\0\x02\x0a\x7f'],
      [{ ':method': 'POST', ':path': '/runtime.v1.RuntimeService/Version' }, '\0\0\0\0\0\0\0\0\0\0'],
    ] as const) {
      const stream = session.request(headers);
      if (!stream.writableEnded) stream.end(Buffer.from(body, 'latin1'));
      const [response] = (await once(stream, 'response')) as [Record<string, unknown>];
      assert.notEqual(response['grpc-status'], undefined, JSON.stringify(body));
      assert.notEqual(response['grpc-status'], '0');
      stream.resume();
      await once(stream, 'close');
    }
    session.close();
    assert.deepEqual(pair.bugs, []);
  });
});

describe('socket of the gRPC server', () => {
  test('the socket is accessible to its owner only, replaces a stale socket, and is removed with the server', async () => {
    using folder = socketFolder();
    const path = folder.path('a.sock');
    {
      const crashed = new GrpcServer();
      await crashed.listen(path);
      await using server = new GrpcServer();
      await server.listen(path);
      assert.equal(statSync(path).mode & 0o777, 0o600);
      await crashed.close();
    }
    assert.equal(existsSync(path), false);
  });

  test('the server does not replace a file that is not a socket', async () => {
    using folder = socketFolder();
    const path = folder.path('notes.txt');
    writeFileSync(path, 'mine');
    await using server = new GrpcServer();
    await assert.rejects(server.listen(path), /EADDRINUSE/);
    assert.equal(statSync(path).size, 4);
  });
});

test('a call that fails immediately receives its trailers together with its headers', async () => {
  await using pair = await serve({});
  const { answer, trailers } = pair.client.unary('version', {});
  await assert.rejects(answer);
  assert.ok((await trailers) instanceof Metadata);
});
