// How the gRPC client opens, shares, loses and reopens its connection.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createHttp2Server } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { VersionResponse } from '../../../src/cri/index.ts';
import { withDeadline } from '../../../src/lib/index.ts';
import { Call } from '../../../src/protocols/grpc/call.ts';
import { grpcFrame } from '../../../src/protocols/grpc/frames.ts';
import { RequestHeaders } from '../../../src/protocols/grpc/request-headers.ts';
import { ClientConnection, defaultLimits } from '../../../src/protocols/http2/client-connection.ts';
import { Relay } from '../../fakes/relay.ts';
import { until } from '../../fakes/until.ts';
import { settle, VirtualClock } from '../../fakes/virtual-clock.ts';
import { emptySettings, forward, http2Peer, rawPeer } from './misbehaving-peers.ts';
import { answering, createHarness, failsWith, forever } from './rig.ts';

const never = () => new Promise<never>(() => {});

describe('a gRPC connection without a server', () => {
  test('fails with UNAVAILABLE and the path immediately when the socket is missing', async () => {
    await using the = createHarness();
    await assert.rejects(
      the.client.version({}, forever),
      failsWith('UNAVAILABLE', new RegExp(`^Cannot connect to unix://${the.path}: .*ENOENT`)),
    );
    await assert.rejects(
      Array.fromAsync(the.client.getContainerEvents({}, forever)),
      failsWith('UNAVAILABLE', /ENOENT/),
    );
  });

  test('fails with UNAVAILABLE immediately when no process listens on the socket', async () => {
    await using the = createHarness();
    const script = `require('net').createServer().listen(${JSON.stringify(the.path)}, () => process.kill(process.pid, 'SIGKILL'))`;
    const child = fork('-e', [script], { execArgv: [] });
    await once(child, 'exit');
    await assert.rejects(the.client.version({}, forever), failsWith('UNAVAILABLE', /ECONNREFUSED/));
  });

  test('fails with UNAVAILABLE and the reason when the target cannot be dialled', async () => {
    await using the = createHarness({ target: '127.0.0.1:1' });
    await assert.rejects(
      the.client.version({}, forever),
      failsWith('UNAVAILABLE', /127\.0\.0\.1:1: .*ECONNREFUSED/),
    );
    await using strange = createHarness({ target: 'localhost:99999' });
    await assert.rejects(strange.client.version({}, forever), failsWith('UNAVAILABLE', /localhost:99999/));
  });
});

describe('the back-off of gRPC connections', () => {
  /**
   * Returns the milliseconds from each failure to the next connection attempt, measured by one call
   * per millisecond.
   */
  async function delays(random: number, count: number): Promise<readonly number[]> {
    const clock = new VirtualClock();
    await using the = createHarness({ clock, random: { next: () => random } });
    await using peer = await rawPeer(the.path, (socket) => socket.destroy());
    const fails = () => assert.rejects(the.client.version({}, forever), failsWith('UNAVAILABLE'));
    const found: number[] = [];
    await fails();
    while (found.length < count) {
      const before = clock.monotonicMs();
      const attempts = peer.sockets.length;
      while (peer.sockets.length === attempts) {
        await clock.advance(10);
        await fails();
      }
      found.push(clock.monotonicMs() - before);
    }
    assert.equal(clock.pendingTimers, 0);
    return found;
  }

  test('the back-off doubles from 100 ms to the maximum of 3 s', async () => {
    assert.deepEqual(await delays(0.5, 7), [100, 200, 400, 800, 1_590, 2_970, 2_970]);
  });

  test('the back-off has a random jitter', async () => {
    assert.deepEqual(await delays(0, 3), [90, 180, 360]);
    assert.deepEqual(await delays(0.999, 3), [110, 220, 440]);
  });

  test('calls during the back-off fail immediately with the error of the last attempt', async () => {
    const clock = new VirtualClock();
    await using the = createHarness({ clock });
    await assert.rejects(the.client.version({}, forever), failsWith('UNAVAILABLE', /ENOENT/));
    await the.serve(answering);
    await assert.rejects(the.client.version({}, forever), failsWith('UNAVAILABLE', /ENOENT/));
    await clock.advance(120);
    assert.equal((await the.client.version({}, forever)).runtimeName, 'ours');
  });

  test('the back-off is reset after a successful connection', async () => {
    const clock = new VirtualClock();
    await using the = createHarness({ clock, random: { next: () => 0.5 } });
    for (let round = 0; round < 2; round++) {
      for (const delayMs of [99, 198, 396]) {
        await assert.rejects(the.client.version({}, forever), failsWith('UNAVAILABLE'));
        await clock.advance(delayMs);
      }
      const server = await the.serve(answering);
      assert.equal((await the.client.version({}, forever)).runtimeName, 'ours');
      await server.close();
    }
  });
});

describe('a gRPC connection to a slow or misbehaving server', () => {
  test('fails at the connect timeout when the server accepts and never responds', async () => {
    const clock = new VirtualClock();
    await using the = createHarness({ clock, connectTimeoutMs: 10_000 });
    await using peer = await rawPeer(the.path, (socket) => socket.resume());
    const calls = [the.client.version({}, forever), the.client.version({}, forever)];
    const outcomes = Promise.allSettled(calls);
    await until('the server was dialled', () => peer.sockets.length === 1);
    await clock.advance(9_999);
    assert.equal(peer.sockets[0]?.destroyed, false);
    await clock.advance(1);
    await outcomes;
    for (const call of calls)
      await assert.rejects(call, failsWith('UNAVAILABLE', /no reply within 10000 ms/));
    assert.equal(clock.pendingTimers, 0);
    await until('the socket is closed', () => peer.sockets[0]?.destroyed === true);
  });

  test('shares one attempt to connect among many callers', async () => {
    await using the = createHarness();
    await the.serve(answering, the.other('server.sock'));
    await using peer = await rawPeer(the.path, () => {});
    const calls = Array.from({ length: 100 }, () => the.client.version({}, forever));
    await until('the server was dialled', () => peer.sockets.length === 1);
    for (const socket of peer.sockets) forward(socket, the.other('server.sock'));
    assert.equal((await Promise.all(calls)).length, 100);
    assert.equal(peer.sockets.length, 1);
  });

  test('lets one caller abort its wait immediately while the others get the connection', async () => {
    await using the = createHarness();
    await the.serve(answering, the.other('server.sock'));
    await using peer = await rawPeer(the.path, () => {});
    const controller = new AbortController();
    const [one, stream, late, other] = [
      the.client.version({}, { signal: controller.signal }),
      Array.fromAsync(the.client.getContainerEvents({}, { signal: controller.signal })),
      the.client.version({}, { signal: AbortSignal.timeout(20) }),
      the.client.version({}, forever),
    ];
    await until('the server was dialled', () => peer.sockets.length === 1);
    controller.abort(new Error('enough'));
    await assert.rejects(one, failsWith('CANCELLED'));
    await assert.rejects(stream, failsWith('CANCELLED'));
    await assert.rejects(late, failsWith('DEADLINE_EXCEEDED'));
    for (const socket of peer.sockets) forward(socket, the.other('server.sock'));
    assert.equal((await other).runtimeName, 'ours');
    assert.equal(peer.sockets.length, 1);
  });

  test('a connection attempt continues after all its callers have aborted, and is used for the next caller', async () => {
    await using the = createHarness();
    await the.serve(answering, the.other('server.sock'));
    await using peer = await rawPeer(the.path, () => {});
    await assert.rejects(
      the.client.version({}, { signal: AbortSignal.timeout(20) }),
      failsWith('DEADLINE_EXCEEDED'),
    );
    const next = the.client.version({}, forever);
    await until('the server was dialled', () => peer.sockets.length === 1);
    for (const socket of peer.sockets) forward(socket, the.other('server.sock'));
    assert.equal((await next).runtimeName, 'ours');
    assert.equal(peer.sockets.length, 1);
  });

  test('respects a limit of one concurrent stream and removes aborted calls from the queue', async () => {
    await using the = createHarness();
    const responses: (() => void)[] = [];
    const version = grpcFrame(VersionResponse.encode({ runtimeName: 'slow' }));
    await using _peer = await http2Peer(
      the.path,
      (stream) => {
        responses.push(() => {
          stream.respond({ ':status': 200 }, { waitForTrailers: true });
          stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
          stream.end(version);
        });
      },
      { maxConcurrentStreams: 1 },
    );
    const controller = new AbortController();
    const [first, second, third] = [
      the.client.version({}, forever),
      the.client.version({}, { signal: controller.signal }),
      the.client.version({}, forever),
    ];
    await until('the first call has arrived', () => responses.length === 1);
    controller.abort(new Error('enough'));
    await assert.rejects(second, failsWith('CANCELLED'));
    responses[0]?.();
    assert.equal((await first).runtimeName, 'slow');
    await until('the next call has arrived', () => responses.length > 1);
    for (const response of responses.slice(1)) response();
    assert.equal((await third).runtimeName, 'slow');
  });

  for (const [what, greeting] of [
    ['settings, then garbage', Buffer.concat([emptySettings, Buffer.alloc(64, 0xff)])],
    ['garbage', Buffer.alloc(64, 0xff)],
    ['HTTP/1', Buffer.from('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n')],
    ['settings, then nothing more', emptySettings],
    ['nothing', Buffer.alloc(0)],
  ] as const) {
    test(`fails with UNAVAILABLE when the server sends ${what} and disconnects`, async () => {
      const clock = new VirtualClock();
      await using the = createHarness({ clock });
      await using _peer = await rawPeer(the.path, (socket) => {
        socket.resume();
        socket.end(greeting);
      });
      for (let round = 0; round < 5; round++) {
        await assert.rejects(the.client.version({}, forever), failsWith('UNAVAILABLE'));
        await clock.advance(5_000);
      }
      assert.equal(clock.pendingTimers, 0);
    });
  }
});

describe('a gRPC server that stops', () => {
  test('fails a call at its deadline when the server does not respond', async () => {
    const clock = new VirtualClock();
    const observed: AbortSignal[] = [];
    await using the = createHarness({ clock });
    await the.serve({
      version: async (_request, { signal }) => {
        observed.push(signal);
        return never();
      },
    });
    const call = withDeadline(
      { clock, ms: 2_000, what: 'ask' },
      (signal) => the.client.version({}, { signal, timeoutMs: 2_000 }),
      forever.signal,
    );
    const outcome = assert.rejects(call, /Cannot ask within 2000 ms/);
    await until('the call has arrived', () => observed.length === 1);
    await clock.advance(2_000);
    await outcome;
    await until('the server received it', () => observed[0]?.aborted === true);
    assert.equal(clock.pendingTimers, 0);
  });

  test('lets any number of aborted calls return immediately when the server stops reading', async () => {
    await using the = createHarness();
    await the.serve(answering, the.other('server.sock'));
    await using relay = new Relay(the.other('server.sock'));
    await relay.listen(the.path);
    await the.client.version({}, forever);
    relay.hold();
    const cmd = ['x'.repeat(4_096)];
    for (let round = 0; round < 20; round++) {
      const controller = new AbortController();
      const calls = Array.from({ length: 100 }, () =>
        the.client.execSync({ cmd }, { signal: controller.signal }).then(
          () => assert.fail('answered'),
          (error) => failsWith('CANCELLED')(error),
        ),
      );
      await settle();
      controller.abort(new Error('enough'));
      await Promise.all(calls);
    }
  });

  test('fails a call with UNAVAILABLE when the server is killed during it, and the same client connects to the next server', async () => {
    await using the = createHarness();
    const start = async () => {
      const child = fork(join(import.meta.dirname, 'runtime-process.ts'), [the.path]);
      await once(child, 'message');
      return child;
    };
    const first = await start();
    assert.equal((await the.client.version({}, forever)).runtimeVersion, String(first.pid));
    const hanging = [
      the.client.status({}, forever),
      Array.fromAsync(the.client.getContainerEvents({}, forever)),
    ];
    const outcomes = Promise.allSettled(hanging);
    await settle();
    first.kill('SIGKILL');
    await outcomes;
    for (const call of hanging) await assert.rejects(call, failsWith('UNAVAILABLE'));
    await assert.rejects(the.client.version({}, forever), failsWith('UNAVAILABLE'));
    const second = await start();
    let name = '';
    while (name === '') {
      name = await the.client.version({}, forever).then(
        ({ runtimeVersion }) => runtimeVersion,
        (error) => failsWith('UNAVAILABLE')(error) && '',
      );
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.equal(name, String(second.pid));
    second.kill('SIGKILL');
    await once(second, 'exit');
  });
});

describe('closing the gRPC client', () => {
  test('closing the client aborts the connection attempt and fails its callers immediately', async () => {
    await using the = createHarness();
    await using peer = await rawPeer(the.path, (socket) => socket.resume());
    const call = the.client.version({}, forever);
    const outcome = assert.rejects(call, failsWith('CANCELLED', /closed/));
    await until('the server was dialled', () => peer.sockets.length === 1);
    the.channel.close();
    await outcome;
    await until('the socket is closed', () => peer.sockets[0]?.destroyed === true);
    await assert.rejects(the.client.version({}, forever), failsWith('CANCELLED', /closed/));
  });

  test('closing the client ends calls and streams in flight and fails later ones', async () => {
    let count = 0;
    await using the = createHarness();
    await the.serve({
      status: async () => {
        count++;
        return never();
      },
      async *getContainerEvents() {
        count++;
        yield await never();
      },
    });
    const calls = [
      the.client.status({}, forever),
      Array.fromAsync(the.client.getContainerEvents({}, forever)),
    ];
    const outcomes = Promise.allSettled(calls);
    await until('both have arrived', () => count === 2);
    the.channel.close();
    the.channel.close();
    await outcomes;
    for (const call of calls) await assert.rejects(call, failsWith('CANCELLED', /closed/));
    await assert.rejects(the.client.version({}, forever), failsWith('CANCELLED', /closed/));
  });

  test('closing the client also ends a connection that received GOAWAY', async () => {
    await using the = createHarness();
    const server = createHttp2Server();
    let began = false;
    server.on('stream', (stream) => {
      began = true;
      stream.on('error', () => {});
      stream.session?.goaway(0, stream.id ?? 0);
    });
    await new Promise<void>((resolve) => server.listen(the.path, resolve));
    const call = the.client.version({}, forever);
    const outcome = assert.rejects(call, failsWith('CANCELLED', /closed/));
    await until('the call has arrived', () => began);
    // The server has sent GOAWAY on the first connection, so the next call opens another one.
    const next = the.client.version({}, forever);
    const nextOutcome = assert.rejects(next);
    await settle();
    the.channel.close();
    await Promise.all([outcome, nextOutcome]);
    await new Promise<void>((resolve) => server.close(() => resolve()));
  });
});

test('replaces a connection that has used up its stream IDs', async () => {
  await using the = createHarness();
  await the.serve(answering);
  const socket = connectSocket(the.path);
  const heard: string[] = [];
  const { promise: ready, resolve } = Promise.withResolvers<void>();
  const listener = {
    ready: resolve,
    draining: () => heard.push('leaving'),
    ended: () => heard.push('ended'),
  };
  const session = new ClientConnection(socket, listener, { ...defaultLimits, lastStreamId: 1 });
  socket.on('data', (bytes: Buffer) => session.receive(bytes));
  await ready;
  const call = () => {
    const body = grpcFrame(Buffer.alloc(0));
    const head = new RequestHeaders('/runtime.v1.RuntimeService/Version');
    return new Call(session, { head, body, maxReceiveBytes: 1_000, onMessage() {} }, forever).finished;
  };
  const last = call();
  assert.throws(call, failsWith('UNAVAILABLE'));
  assert.deepEqual([session.isUsable, heard], [false, ['leaving']]);
  await last;
  await until('the connection is closed', () => heard.includes('ended'));
  assert.equal(socket.destroyed, true);
});
