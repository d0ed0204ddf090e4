import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { collectLogs, realClock } from '../../src/lib/index.ts';
import { type Pod, podUid } from '../../src/pods/index.ts';
import {
  Listener,
  loopbackGate,
  type StreamingHost,
  streamRoutes,
  upgradeDialer,
} from '../../src/server/index.ts';
import type { RequestedStreams } from '../../src/server/streaming/remote-command.ts';

const clock = realClock();

/** A connection to the runtime: the head of its request, and all data after it. */
export interface RuntimeCall {
  readonly socket: Socket;
  readonly head: string;
  received: Buffer;
}

export interface RigOptions {
  readonly idleMs?: number;
  readonly host?: Partial<StreamingHost>;
  /** Whether the container of the pod has `stdinOnce` in its spec. */
  readonly stdinOnce?: boolean;
  readonly onAttach?: (streams: RequestedStreams) => void;
}

/**
 * A fake streaming server of a runtime with scripted responses, and a kubelet's server in front of
 * it.
 */
export class StreamingRig implements AsyncDisposable {
  static readonly token = 'secret-of-the-test';
  readonly calls: RuntimeCall[] = [];
  readonly #runtime: Server;
  readonly #listener: Listener;
  readonly #clients = new Set<Socket>();

  static async open(response: string, options: RigOptions = {}): Promise<StreamingRig> {
    const { idleMs = 0, stdinOnce = false, onAttach } = options;
    const calls: RuntimeCall[] = [];
    const runtime = createServer({ allowHalfOpen: true }, (socket) => receive(socket, response, calls));
    runtime.listen(0, '127.0.0.1');
    await once(runtime, 'listening');
    const { port } = runtime.address() as AddressInfo;
    const url = async () => `http://127.0.0.1:${port}/exec/once?x=1`;
    const host: StreamingHost = {
      getPodByName: (namespace, name) =>
        namespace === 'default' && name === 'web' ? podOf(stdinOnce) : undefined,
      translatePodUid: (uid) => (uid === 'mirror' ? podUid('u1') : uid),
      exec: url,
      attach: async (_pod, _container, streams) => {
        onAttach?.(streams);
        return await url();
      },
      portForward: url,
      run: async (_pod, _container, command) => Buffer.from(command.join('|')),
      ...options.host,
    };
    const deps = { clock, dial: upgradeDialer(clock), idleMs };
    const { routes, upgrades } = streamRoutes(host, deps);
    const { logger } = collectLogs(clock);
    const gate = loopbackGate({ token: StreamingRig.token, open: [], names: ['x'] });
    const listener = await Listener.open({ host: '127.0.0.1', port: 0, routes, upgrades, gate, logger });
    return new StreamingRig(runtime, listener, calls);
  }

  private constructor(runtime: Server, listener: Listener, calls: RuntimeCall[]) {
    this.#runtime = runtime;
    this.#listener = listener;
    this.calls = calls;
  }

  get port(): number {
    return this.#listener.port;
  }

  get only(): RuntimeCall {
    const [call, ...more] = this.calls;
    assert.ok(call, 'the runtime was not called');
    assert.equal(more.length, 0);
    return call;
  }

  keep(socket: Socket): Socket {
    this.#clients.add(socket);
    socket.on('error', () => {});
    return socket;
  }

  async closeServer(): Promise<void> {
    await this.#listener.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#clients) socket.destroy();
    await this.#listener.close();
    for (const { socket } of this.calls) socket.destroy();
    await new Promise((resolve) => this.#runtime.close(resolve));
  }
}

function podOf(stdinOnce: boolean): Pod {
  return {
    metadata: { name: 'web', namespace: 'default', uid: podUid('u1') },
    spec: { containers: [{ name: 'main', stdinOnce }] } as Pod['spec'],
    status: {},
  };
}

function receive(socket: Socket, response: string, calls: RuntimeCall[]): void {
  let buffered = Buffer.alloc(0);
  let call: RuntimeCall | undefined;
  socket.on('error', () => {});
  socket.on('data', (chunk: Buffer) => {
    if (call !== undefined) {
      call.received = Buffer.concat([call.received, chunk]);
      return;
    }
    buffered = Buffer.concat([buffered, chunk]);
    const end = buffered.indexOf('\r\n\r\n');
    if (end < 0) return;
    call = { socket, head: buffered.subarray(0, end).toString(), received: buffered.subarray(end + 4) };
    calls.push(call);
    socket.write(response);
  });
}
