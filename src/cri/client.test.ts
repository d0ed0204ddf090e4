import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, test } from 'node:test';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { cancelledError, isKind, KubelingError } from '../lib/index.ts';
import { type CallOptions, GrpcError } from '../protocols/grpc/index.ts';
import { type CriClient, createCriClient } from './client.ts';
import { ImageService, RuntimeService, VersionResponse } from './gen/runtime.ts';
import { type CriOperation, operationNames } from './operations.ts';
import type { CriTransport } from './transport.ts';

type Unary = (request: object, options: CallOptions) => Promise<unknown>;
type Stream = (request: object, options: CallOptions) => AsyncIterable<unknown>;

const goodVersion = VersionResponse.create({
  version: '0.1.0',
  runtimeName: 'fake',
  runtimeVersion: '1',
  runtimeApiVersion: 'v1',
});

interface Harness {
  readonly clock: VirtualClock;
  readonly client: CriClient;
  readonly observed: string[];
  closed: number;
}

/** A client of a runtime that implements only the given calls. */
function createHarness(
  methods: Readonly<Record<string, Unary | Stream>>,
  requestTimeoutMs?: number,
): Harness {
  const clock = new VirtualClock();
  const observed: string[] = [];
  const service = { ...unimplemented(), ...methods };
  const transport = {
    runtime: service,
    image: service,
    containerdEvents: service,
    close: () => created.closed++,
  } as unknown as CriTransport;
  const observer = {
    called(operation: string, durationMs: number, error: KubelingError | undefined) {
      observed.push([operation, durationMs, error?.code ?? 'ok'].join(' '));
    },
  };
  const timeout = requestTimeoutMs === undefined ? {} : { requestTimeoutMs };
  const client = createCriClient({ transport, clock, observer, ...timeout });
  const created: Harness = { clock, client, observed, closed: 0 };
  return created;
}

function unimplemented(): Record<string, Unary | Stream> {
  const methods = Object.entries({ ...RuntimeService.methods, ...ImageService.methods });
  return Object.fromEntries(
    methods.map(([name, { kind }]) => [
      name,
      kind === 'unary'
        ? async () => Promise.reject(new GrpcError('UNIMPLEMENTED', name))
        : async function* () {
            yield* [];
            throw new GrpcError('UNIMPLEMENTED', name);
          },
    ]),
  );
}

/** A fake call that runs until it is cancelled, and then fails with the error of the transport. */
const endless: Unary = (_request, { signal }) =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new GrpcError('CANCELLED', 'the call was cancelled')), {
      once: true,
    });
  });

const open = () => new AbortController().signal;
const withCode = (code: string) => (error: unknown) => error instanceof KubelingError && error.code === code;

describe('cancelled ExecSync calls', () => {
  async function giveUpAfter(
    ms: number,
  ): Promise<{ readonly clock: VirtualClock; readonly wire: AbortSignal }> {
    let wire = AbortSignal.abort();
    const { client, clock } = createHarness({
      execSync: (request, options) => {
        wire = options.signal;
        return endless(request, options);
      },
    });
    const caller = new AbortController();
    const call = client.execSync({ containerId: 'c', cmd: ['sleep', '1000'] }, caller.signal);
    await clock.advance(ms);
    caller.abort(cancelledError('the pod is terminating'));
    await assert.rejects(call, withCode('CANCELLED'));
    return { clock, wire };
  }

  test('a cancelled ExecSync call younger than 10 s returns to its caller immediately and is cancelled in the runtime at the age of 10 s', async () => {
    const { clock, wire } = await giveUpAfter(1_000);
    assert.equal(wire.aborted, false);
    await clock.advance(8_999);
    assert.equal(wire.aborted, false);
    await clock.advance(1);
    assert.equal(wire.aborted, true);
    assert.equal(clock.pendingTimers, 0);
  });

  test('a cancelled ExecSync call older than 10 s is cancelled in the runtime immediately', async () => {
    const { wire } = await giveUpAfter(10_000);
    assert.equal(wire.aborted, true);
  });
});

describe('CRI calls', () => {
  test('a CRI call passes on request and response', async () => {
    const requests: object[] = [];
    const { client } = createHarness({
      createContainer: async (request) => {
        requests.push(request);
        return { containerId: 'c' };
      },
    });
    assert.deepEqual(await client.createContainer({ podSandboxId: 's' }, open()), { containerId: 'c' });
    assert.deepEqual(requests, [{ podSandboxId: 's' }]);
  });

  test('a CRI call rejects a response without required fields', async () => {
    const { client, observed } = createHarness({ createContainer: async () => ({ containerId: '' }) });
    await assert.rejects(client.createContainer({}, open()), withCode('CRI_BAD_ANSWER'));
    assert.deepEqual(observed, ['create_container 0 CRI_BAD_ANSWER']);
  });

  test('a failed CRI call throws an error with the message of the runtime and the kind of its gRPC status', async () => {
    const { client } = createHarness({
      containerStatus: async () => Promise.reject(new GrpcError('NOT_FOUND', 'no such container')),
    });
    await assert.rejects(
      client.containerStatus({ containerId: 'x' }, open()),
      (error) => isKind(error, 'NotFound') && (error as Error).message === 'no such container',
    );
  });

  test('a non-zero exit code of ExecSync is a response, not an error', async () => {
    const response = { stdout: Buffer.alloc(0), stderr: Buffer.from('x'), exitCode: 1 };
    const { client } = createHarness({ execSync: async () => response });
    assert.equal(await client.execSync({ timeout: 1n }, open()), response);
  });

  test('every CRI call is observed once under its metric name', async () => {
    const { client, observed } = createHarness({});
    const calls = client as unknown as Record<string, (request: object, signal: AbortSignal) => unknown>;
    for (const [name, { kind }] of Object.entries({ ...RuntimeService.methods, ...ImageService.methods })) {
      const called = calls[name]?.({}, open());
      const ended = kind === 'unary' ? called : Array.fromAsync(called as AsyncIterable<unknown>);
      await assert.rejects(ended as Promise<unknown>, withCode('CRI_UNSUPPORTED'));
      assert.deepEqual(observed.splice(0), [`${operationNames[name as CriOperation]} 0 CRI_UNSUPPORTED`]);
    }
  });
});

describe('deadlines of CRI calls', () => {
  const cases: readonly (readonly [CriOperation, object, number | undefined])[] = [
    ['removeContainer', {}, 120_000],
    ['runPodSandbox', {}, 240_000],
    ['stopContainer', { timeout: 30n }, 150_000],
    ['execSync', { timeout: 10n }, 130_000],
    ['execSync', { timeout: 0n }, undefined],
    ['pullImage', {}, undefined],
  ];

  for (const [operation, request, limitMs] of cases) {
    test(`${operation} ${'timeout' in request ? `with ${request.timeout} s ` : ''}has the deadline ${limitMs ?? 'none'}`, async () => {
      const reported: (number | undefined)[] = [];
      const spy: Unary = (message, options) => {
        reported.push(options.timeoutMs);
        return endless(message, options);
      };
      const { client, clock, observed } = createHarness({ [operation]: spy });
      const controller = new AbortController();
      const call = (client[operation] as (request: object, signal: AbortSignal) => Promise<unknown>)(
        request,
        controller.signal,
      );
      const outcome = call.catch((error: KubelingError) => error.code);
      await clock.advance((limitMs ?? 10_000_000) - 1);
      assert.deepEqual(observed, []);
      assert.deepEqual(reported, [limitMs]);
      await clock.advance(1);
      if (limitMs === undefined) controller.abort(cancelledError('enough'));
      const late = operation === 'execSync' ? 'CRI_EXEC_TIMEOUT' : 'CRI_DEADLINE';
      assert.equal(await outcome, limitMs === undefined ? 'CANCELLED' : late);
      assert.equal(observed.length, 1);
      assert.equal(clock.pendingTimers, 0);
      assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
    });
  }

  test('the deadline of a CRI call follows the configured timeout', async () => {
    const { client, clock } = createHarness({ status: endless }, 5_000);
    const outcome = assert.rejects(
      client.status({}, open()),
      /Cannot finish the runtime call status within 5000 ms/,
    );
    await clock.advance(5_000);
    await outcome;
  });

  test('a deadline ends a CRI call even if the transport ignores the signal', async () => {
    const { client, clock } = createHarness({ status: () => new Promise(() => {}) });
    const outcome = assert.rejects(client.status({}, open()), withCode('CRI_DEADLINE'));
    await clock.advance(120_000);
    await outcome;
  });
});

describe('cancellation of CRI calls', () => {
  for (const [what, reason] of [
    ['a KubelingError', cancelledError('the pod is gone')],
    ['any error', new Error('shutting down')],
    ['no reason', undefined],
  ] as const) {
    test(`an abort with ${what} as reason fails the CRI call as cancelled`, async () => {
      const { client, clock, observed } = createHarness({ status: endless, pullImage: endless });
      for (const call of [client.status, client.pullImage]) {
        const controller = new AbortController();
        const outcome = assert.rejects(call({}, controller.signal), (error) => isKind(error, 'Cancelled'));
        await settle();
        controller.abort(reason);
        await outcome;
        assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
      }
      assert.deepEqual(observed, ['status 0 CANCELLED', 'pull_image 0 CANCELLED']);
      assert.equal(clock.pendingTimers, 0);
    });
  }

  test('a CRI call with an aborted signal sends no request', async () => {
    let calls = 0;
    const { client } = createHarness({
      status: async () => {
        calls++;
        return {};
      },
    });
    await assert.rejects(client.status({}, AbortSignal.abort(new Error('x'))), (error) =>
      isKind(error, 'Cancelled'),
    );
    assert.equal(calls, 0);
  });

  test("a CRI call aborted by its caller's timeout fails with a deadline error", async () => {
    const { client } = createHarness({ status: endless });
    const controller = new AbortController();
    const outcome = assert.rejects(client.status({}, controller.signal), withCode('CRI_DEADLINE'));
    controller.abort(new KubelingError('DEADLINE_EXCEEDED', 'the sync took too long'));
    await outcome;
  });
});

describe('CRI streams', () => {
  const three: Stream = async function* () {
    yield* [{ containerId: 'a' }, { containerId: 'b' }, { containerId: 'c' }];
  };

  test('a CRI stream passes on every response and is observed at its end', async () => {
    const { client, observed } = createHarness({ getContainerEvents: three });
    const read = await Array.fromAsync(client.getContainerEvents({}, open()));
    assert.equal(read.length, 3);
    assert.deepEqual(observed, ['get_container_events 0 ok']);
  });

  test('when the reader of a CRI stream leaves its loop, the source is closed and the call is observed as successful', async () => {
    let closed = 0;
    const { client, observed } = createHarness({
      async *getContainerEvents() {
        try {
          for (;;) yield { containerId: 'a' };
        } finally {
          closed++;
        }
      },
    });
    for await (const _ of client.getContainerEvents({}, open())) break;
    assert.equal(closed, 1);
    assert.deepEqual(observed, ['get_container_events 0 ok']);
  });

  test("a CRI stream has no deadline and fails with the runtime's error", async () => {
    const broke = Promise.withResolvers<never>();
    const { client, clock, observed } = createHarness({
      async *getContainerEvents() {
        yield { containerId: 'a' };
        await broke.promise;
      },
    });
    const read: unknown[] = [];
    const reading = (async () => {
      for await (const event of client.getContainerEvents({}, open())) read.push(event);
    })();
    const outcome = assert.rejects(reading, withCode('CRI_UNAVAILABLE'));
    await clock.advance(24 * 3_600_000);
    broke.reject(new GrpcError('UNAVAILABLE', 'gone'));
    await outcome;
    assert.equal(read.length, 1);
    assert.deepEqual(observed, ['get_container_events 86400000 CRI_UNAVAILABLE']);
  });
});

describe('checkVersion', () => {
  test("returns the runtime's version", async () => {
    const { client } = createHarness({ version: async () => goodVersion });
    assert.equal(await client.checkVersion(open()), goodVersion);
  });

  test('rejects a runtime with another CRI version and names the version', async () => {
    const { client } = createHarness({ version: async () => ({ ...goodVersion, version: '0.2.0' }) });
    await assert.rejects(
      client.checkVersion(open()),
      (error) =>
        withCode('CRI_VERSION')(error) && /fake 1 .*must be 0\.1\.0: it is 0\.2\.0/.test(String(error)),
    );
  });

  test('rejects a version response without runtime name or version', async () => {
    const { client } = createHarness({ version: async () => ({ ...goodVersion, runtimeName: '' }) });
    await assert.rejects(client.checkVersion(open()), /version lacks runtimeName/);
  });
});

test('closing the CRI client closes the transport', () => {
  const created = createHarness({});
  created.client.close();
  assert.equal(created.closed, 1);
});
