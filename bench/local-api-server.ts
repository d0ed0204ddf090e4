/**
 * Runs an embedded API in a separate process, as the child of a benchmark. Reports its address
 * once, and its resource usage on every request of the parent.
 */
import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { collectLogs, realClock, systemRandom, Verbosity } from '../src/lib/index.ts';
import { openLocalApi } from '../src/local-api/index.ts';

/** The address of the API, sent to the parent once. */
export interface ServerPlace {
  readonly url: string;
  readonly pki: string;
}

/** Resource usage; CPU time and event loop delay are counted since the previous report. */
export interface ServerFigures {
  readonly cpuMs: number;
  readonly residentMb: number;
  readonly heapMb: number;
  readonly externalMb: number;
  /** The number of open watches. */
  readonly watches: number;
  /**
   * Unsent bytes buffered in this process: the most for one watch, and the sum over all watches.
   */
  readonly mostWaiting: number;
  readonly allWaiting: number;
  readonly loopHeldMs: number;
  readonly errors: number;
}

const [, , directory = ''] = process.argv;
const clock = realClock();
const logs = collectLogs(clock, new Verbosity(0));
const stop = new AbortController();
const watches = new Set<ServerResponse>();
const loop = monitorEventLoopDelay({ resolution: 1 });
let usedBefore = process.cpuUsage();

subscribe('http.server.request.start', (message) => {
  const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
  if (!request.url?.includes('watch=')) return;
  watches.add(response);
  response.once('close', () => watches.delete(response));
});

const api = await openLocalApi(
  {
    directory,
    adminKubeconfig: join(directory, 'admin.kubeconfig'),
    listen: { host: '127.0.0.1', port: 0 },
    nodeName: 'node',
    hostnames: () => [],
    addresses: () => [],
    kubeletAt: () => undefined,
    version: { kubernetes: '1.36.4', own: '0.0.0' },
    clock,
    random: systemRandom(),
    logger: logs.logger,
  },
  stop.signal,
);
const running = api.run(stop.signal).catch(() => {});

process.on('message', (asked) => {
  if (asked === 'figures') process.send?.(figures());
  if (asked === 'collect') {
    (globalThis as { gc?: () => void }).gc?.();
    process.send?.(figures());
  }
});
process.once('disconnect', () => void close());
loop.enable();
process.send?.({ url: api.url, pki: join(directory, 'pki') } satisfies ServerPlace);

function figures(): ServerFigures {
  const used = process.cpuUsage(usedBefore);
  usedBefore = process.cpuUsage();
  const { rss, heapUsed, external } = process.memoryUsage();
  const waiting = [...watches].map(bytesWaiting);
  const held = loop.max / 1e6;
  loop.reset();
  return {
    cpuMs: (used.user + used.system) / 1_000,
    residentMb: rss / 2 ** 20,
    heapMb: heapUsed / 2 ** 20,
    externalMb: external / 2 ** 20,
    watches: watches.size,
    mostWaiting: Math.max(0, ...waiting),
    allWaiting: waiting.reduce((sum, bytes) => sum + bytes, 0),
    loopHeldMs: held,
    errors: [...logs.records].filter(({ severity }) => severity === 'error').length,
  };
}

/**
 * Node.js may count the same unsent bytes in the buffer of the response, in that of its socket, or
 * in both, so the larger count is returned.
 */
function bytesWaiting({ writableLength, socket }: ServerResponse): number {
  return Math.max(writableLength, socket?.writableLength ?? 0);
}

async function close(): Promise<void> {
  stop.abort(new Error('the benchmark has ended'));
  await running;
  await api[Symbol.asyncDispose]();
}
