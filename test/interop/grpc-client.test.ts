// Tests the gRPC client against a real grpc-js server.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status as foreignStatus, type ServerUnaryCall, type ServerWritableStream } from '@grpc/grpc-js';
import { RuntimeService, type RuntimeServiceMethods } from '../../src/cri/index.ts';
import { realClock, seededRandom } from '../../src/lib/index.ts';
import { GrpcChannel, type GrpcCode, GrpcError, type ServiceClient } from '../../src/protocols/grpc/index.ts';
import { Relay } from '../fakes/relay.ts';
import { socketFolder } from '../fakes/socket-folder.ts';
import { until } from '../fakes/until.ts';
import { type GrpcJsStream, type GrpcJsUnary, grpcJsServer } from './grpc-js.ts';

type Methods = Readonly<Record<string, GrpcJsUnary | GrpcJsStream>>;

interface Pair extends AsyncDisposable {
  readonly client: ServiceClient<RuntimeServiceMethods>;
  readonly relay: Relay;
  readonly server: Awaited<ReturnType<typeof grpcJsServer>>;
  readonly serverPath: string;
}

async function connectTo(methods: Methods): Promise<Pair> {
  const stack = new AsyncDisposableStack();
  const folder = stack.use(socketFolder());
  const serverPath = folder.path('server.sock');
  const server = stack.use(await grpcJsServer(serverPath, methods));
  const relay = stack.use(new Relay(serverPath));
  await relay.listen(folder.path('relay.sock'));
  const channel = stack.use(
    new GrpcChannel({
      target: `unix://${folder.path('relay.sock')}`,
      clock: realClock(),
      random: seededRandom(1),
    }),
  );
  return {
    client: channel.client(RuntimeService),
    relay,
    server,
    serverPath,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const forever = { signal: new AbortController().signal };

function failsWith(code: GrpcCode, message?: string | RegExp): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof GrpcError, String(error));
    assert.equal(error.grpcCode, code, error.message);
    if (typeof message === 'string') assert.equal(error.message, message);
    else if (message !== undefined) assert.match(error.message, message);
    return true;
  };
}

const version: GrpcJsUnary = (_call, done) =>
  done(null, { version: '0.1.0', runtimeName: 'other', runtimeVersion: '1', runtimeApiVersion: 'v1' });

/** A method that runs until the caller cancels the call, and records the cancellation. */
function patient(seen: string[]): GrpcJsUnary {
  return (call: ServerUnaryCall<object, object>) => {
    seen.push('begun');
    call.on('cancelled', () => seen.push('cancelled'));
  };
}

describe('unary gRPC calls', () => {
  test('a unary call delivers the request and returns the response', async () => {
    await using pair = await connectTo({
      execSync: ({ request }, done) => {
        assert.deepEqual(request, { containerId: 'c', cmd: ['a', 'ü'], timeout: '-9223372036854775808' });
        done(null, { stdout: Buffer.from('out'), stderr: Buffer.alloc(0), exitCode: -1 });
      },
    });
    const response = await pair.client.execSync(
      { containerId: 'c', cmd: ['a', 'ü'], timeout: -(2n ** 63n) },
      forever,
    );
    assert.deepEqual(response, { stdout: Buffer.from('out'), stderr: Buffer.alloc(0), exitCode: -1 });
  });

  test('a unary call reports every gRPC status code', async () => {
    await using pair = await connectTo({
      status: ({ request }, done) => {
        const code = request['verbose'] === true ? 5 : 0;
        done({ code, details: 'x' });
      },
      stopPodSandbox: ({ request }, done) =>
        done({ code: Number(request['podSandboxId']), details: 'said so' }),
    });
    await assert.rejects(pair.client.status({ verbose: true }, forever), failsWith('NOT_FOUND', 'x'));
    for (const [name, code] of Object.entries(foreignStatus)) {
      if (typeof code !== 'number' || code === 0) continue;
      await assert.rejects(
        pair.client.stopPodSandbox({ podSandboxId: String(code) }, forever),
        failsWith(name as GrpcCode, 'said so'),
      );
    }
    assert.equal(pair.relay.connections, 1);
  });

  test('a unary call returns messages of every type', async () => {
    const messages = [
      '',
      'plain',
      '100% %41',
      'two\nlines\r\n\ttab',
      'grüße 日本 \u{1f600}',
      'y'.repeat(3_000),
    ];
    await using pair = await connectTo({
      stopContainer: ({ request }, done) =>
        done({ code: 9, details: messages[Number(request['timeout'])] ?? 'none' }),
    });
    for (const [index, message] of messages.entries()) {
      await assert.rejects(
        pair.client.stopContainer({ timeout: BigInt(index) }, forever),
        failsWith('FAILED_PRECONDITION', message),
      );
    }
  });

  test('a unary call reports error messages of many kilobytes', async () => {
    const long = 'failed: '.repeat(5_000);
    await using pair = await connectTo({ version: (_call, done) => done({ code: 2, details: long }) });
    await assert.rejects(pair.client.version({}, forever), failsWith('UNKNOWN', long));
    assert.equal(pair.relay.connections, 1);
  });

  test('a call of a method that the server does not implement fails with UNIMPLEMENTED', async () => {
    await using pair = await connectTo({ version });
    await assert.rejects(pair.client.status({}, forever), failsWith('UNIMPLEMENTED'));
    assert.equal((await pair.client.version({}, forever)).runtimeName, 'other');
  });

  test('500 unary calls run concurrently over one connection', async () => {
    const waiting: (() => void)[] = [];
    await using pair = await connectTo({
      // The server sends its responses only after all requests have arrived, so the calls must run
      // concurrently.
      version: (_call, done) => {
        waiting.push(() => done(null, { version: String(waiting.length) }));
        if (waiting.length === 500) for (const response of waiting) response();
      },
    });
    const responses = await Promise.all(Array.from({ length: 500 }, () => pair.client.version({}, forever)));
    assert.equal(responses.length, 500);
    assert.equal(pair.relay.connections, 1);
  });
});

describe('large gRPC messages', () => {
  const large = (bytes: number): Methods => ({
    version,
    execSync: (_call, done) => done(null, { stdout: Buffer.alloc(bytes, 7) }),
  });

  test('messages of 15 MiB pass in both directions', async () => {
    await using pair = await connectTo({
      execSync: ({ request }, done) =>
        done(null, { stdout: Buffer.from((request['cmd'] as string[])[0] ?? '') }),
    });
    const cmd = ['z'.repeat(15 << 20)];
    const { stdout } = await pair.client.execSync({ cmd }, forever);
    assert.equal(stdout.length, 15 << 20);
    assert.ok(Buffer.from(stdout).equals(Buffer.alloc(15 << 20, 'z')));
  });

  test('a response over 16 MiB is rejected by the client, which keeps the connection open', async () => {
    await using pair = await connectTo(large((16 << 20) + 1));
    for (let round = 0; round < 3; round++) {
      await assert.rejects(
        pair.client.execSync({}, forever),
        failsWith('RESOURCE_EXHAUSTED', /larger than the limit: 167772\d\d bytes, limit 16777216/),
      );
      assert.equal((await pair.client.version({}, forever)).runtimeName, 'other');
    }
    assert.equal(pair.relay.connections, 1);
  });

  test('a request over 16 MiB is rejected by the server, which keeps the connection open', async () => {
    await using pair = await connectTo(large(1));
    await assert.rejects(
      pair.client.execSync({ cmd: ['z'.repeat(17 << 20)] }, forever),
      failsWith('RESOURCE_EXHAUSTED'),
    );
    assert.equal((await pair.client.version({}, forever)).runtimeName, 'other');
    assert.equal(pair.relay.connections, 1);
  });
});

describe('server-streaming gRPC calls', () => {
  const events = (count: number, after: (call: ServerWritableStream<object, object>) => void): Methods => ({
    version,
    getContainerEvents: (call: ServerWritableStream<object, object>) => {
      for (let index = 0; index < count; index++) call.write({ containerId: String(index) });
      after(call);
    },
  });

  async function readAll(stream: AsyncIterable<{ containerId: string }>, into: string[]): Promise<void> {
    for await (const { containerId } of stream) into.push(containerId);
  }

  test('a stream delivers every response in order, then ends', async () => {
    await using pair = await connectTo(events(5_000, (call) => call.end()));
    const read: string[] = [];
    await readAll(pair.client.getContainerEvents({}, forever), read);
    assert.deepEqual(
      read,
      Array.from({ length: 5_000 }, (_, index) => String(index)),
    );
  });

  test('a stream may end without a response', async () => {
    await using pair = await connectTo(events(0, (call) => call.end()));
    await readAll(pair.client.getContainerEvents({}, forever), []);
  });

  test('a failing stream delivers the responses sent before the failure, then the failure', async () => {
    await using pair = await connectTo(
      events(3, (call) => call.emit('error', { code: 13, details: 'ran dry' })),
    );
    const read: string[] = [];
    await assert.rejects(
      readAll(pair.client.getContainerEvents({}, forever), read),
      failsWith('INTERNAL', 'ran dry'),
    );
    assert.deepEqual(read, ['0', '1', '2']);
  });

  test('a stream that fails immediately reports the failure', async () => {
    await using pair = await connectTo(events(0, (call) => call.emit('error', { code: 12, details: 'no' })));
    await assert.rejects(
      readAll(pair.client.getContainerEvents({}, forever), []),
      failsWith('UNIMPLEMENTED', 'no'),
    );
  });

  test('a stream whose reader stops early is cancelled on the server', async () => {
    const observed: string[] = [];
    await using pair = await connectTo(
      events(10, (call) => call.on('cancelled', () => observed.push('cancelled'))),
    );
    for await (const { containerId } of pair.client.getContainerEvents({}, forever)) {
      if (containerId === '4') break;
    }
    await until('the server received it', () => observed.length === 1);
  });

  test('a stream aborted between two responses ends immediately, without buffered responses', async () => {
    const observed: string[] = [];
    await using pair = await connectTo(
      events(10, (call) => call.on('cancelled', () => observed.push('cancelled'))),
    );
    const controller = new AbortController();
    const read: string[] = [];
    const reading = (async () => {
      for await (const { containerId } of pair.client.getContainerEvents({}, { signal: controller.signal })) {
        read.push(containerId);
        if (containerId === '4') controller.abort(new Error('enough'));
      }
    })();
    await assert.rejects(reading, failsWith('CANCELLED'));
    assert.equal(read.length, 5);
    await until('the server received it', () => observed.length === 1);
  });

  test('a stream aborted while waiting for a response ends immediately', async () => {
    await using pair = await connectTo(events(1, () => {}));
    const controller = new AbortController();
    const reading = (async () => {
      for await (const _ of pair.client.getContainerEvents({}, { signal: controller.signal })) {
        setImmediate(() => controller.abort(new Error('enough')));
      }
    })();
    await assert.rejects(reading, failsWith('CANCELLED'));
  });

  test('a slowly read stream throttles the sender and does not block other calls', async () => {
    let sent = 0;
    const flood: GrpcJsStream = (call) => {
      const fill = () => {
        while (call.write({ containerId: 'x'.repeat(64 << 10) })) sent += 64 << 10;
      };
      call.on('drain', fill);
      fill();
    };
    await using pair = await connectTo({ version, getContainerEvents: flood });
    const readers = Array.from({ length: 20 }, () =>
      pair.client.getContainerEvents({}, forever)[Symbol.asyncIterator](),
    );
    await Promise.all(readers.map((reader) => reader.next()));
    let before = -1;
    // When no new message was sent for a while, the sender is waiting for the client.
    while (before !== sent) {
      before = sent;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    assert.ok(sent < 20 * (4 << 20), `${sent} bytes for 20 readers that read one response each`);
    assert.equal((await pair.client.version({}, forever)).runtimeName, 'other');
    await Promise.all(readers.map((reader) => reader.return?.()));
  });
});

describe('deadlines and cancellation of gRPC calls', () => {
  test('the deadline is sent to the server, which ends the call when it expires', async () => {
    let deadline: unknown;
    await using pair = await connectTo({
      version: (call: ServerUnaryCall<object, object>) => {
        deadline = call.getDeadline();
      },
    });
    const startMs = Date.now();
    await assert.rejects(
      pair.client.version({}, { ...forever, timeoutMs: 300 }),
      failsWith('DEADLINE_EXCEEDED'),
    );
    const tellsMs = (deadline instanceof Date ? deadline.getTime() : Number(deadline)) - startMs;
    assert.ok(tellsMs > 100 && tellsMs < 60_000, String(tellsMs));
  });

  test('an aborted call ends immediately and is cancelled on the server', async () => {
    const observed: string[] = [];
    await using pair = await connectTo({ version: patient(observed) });
    const controller = new AbortController();
    const call = pair.client.version({}, { signal: controller.signal });
    await until('the call has arrived', () => observed.length === 1);
    controller.abort(new Error('enough'));
    await assert.rejects(call, failsWith('CANCELLED'));
    await until('the server received it', () => observed.includes('cancelled'));
  });

  test('a call aborted by a timeout signal fails with DEADLINE_EXCEEDED', async () => {
    await using pair = await connectTo({ version: patient([]) });
    await assert.rejects(
      pair.client.version({}, { signal: AbortSignal.timeout(100) }),
      failsWith('DEADLINE_EXCEEDED'),
    );
  });

  test('a signal aborted before the call prevents the call', async () => {
    await using pair = await connectTo({ version });
    const gone = { signal: AbortSignal.abort(new Error('no')) };
    await assert.rejects(pair.client.version({}, gone), failsWith('CANCELLED'));
    await assert.rejects(Array.fromAsync(pair.client.getContainerEvents({}, gone)), failsWith('CANCELLED'));
    assert.equal(pair.relay.connections, 0);
  });

  test('a request that cannot be encoded fails with the name of the field and is not sent', async () => {
    await using pair = await connectTo({ version });
    await assert.rejects(
      pair.client.stopContainer({ timeout: 2n ** 70n }, forever),
      /StopContainerRequest\.timeout/,
    );
    assert.equal(pair.relay.connections, 0);
  });
});

describe('gRPC server that closes', () => {
  test('when the server closes during calls, they fail with UNAVAILABLE and the next call reconnects', async () => {
    const observed: string[] = [];
    await using pair = await connectTo({
      version,
      status: patient(observed),
      getContainerEvents: () => observed.push('s'),
    });
    const calls = [
      pair.client.status({}, forever),
      Array.fromAsync(pair.client.getContainerEvents({}, forever)),
    ];
    await until('both have arrived', () => observed.length === 2);
    pair.relay.cut();
    for (const call of calls) await assert.rejects(call, failsWith('UNAVAILABLE'));
    assert.equal((await pair.client.version({}, forever)).runtimeName, 'other');
    assert.equal(pair.relay.connections, 2);
  });

  test('when the server closes gracefully, calls in flight finish and new calls use a new connection', async () => {
    let finish: (() => void) | undefined;
    await using pair = await connectTo({
      version,
      status: (_call, done) => {
        finish = () => done(null, {});
      },
    });
    const slow = pair.client.status({}, forever);
    await until('the call has arrived', () => finish !== undefined);
    pair.server.tryShutdown(() => {});
    await using _next = await nextServer(pair.serverPath);
    const { runtimeName } = await retried(() => pair.client.version({}, forever));
    assert.equal(runtimeName, 'next');
    finish?.();
    assert.deepEqual((await slow).info, {});
    assert.equal(pair.relay.connections, 2);
  });
});

async function nextServer(path: string): ReturnType<typeof grpcJsServer> {
  for (;;) {
    try {
      return await grpcJsServer(path, { version: (_call, done) => done(null, { runtimeName: 'next' }) });
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}

async function retried<T>(call: () => Promise<T>): Promise<T> {
  for (let left = 1_000; ; left--) {
    try {
      return await call();
    } catch (error) {
      if (left === 0 || !(error instanceof GrpcError) || error.grpcCode !== 'UNAVAILABLE') throw error;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}
