// Makes every kind of gRPC call many times and reports memory leaks. Run with --expose-gc.
import { getEventListeners } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createCriClient,
  RuntimeService,
  type RuntimeServiceMethods,
  wireTransport,
} from '../../../src/cri/index.ts';
import { realClock, seededRandom } from '../../../src/lib/index.ts';
import { GrpcChannel, GrpcServer, type ServiceImplementation } from '../../../src/protocols/grpc/index.ts';

export interface LeakReport {
  /**
   * The growth of the heap and of buffers in bytes by kind of call, after a shorter warm-up of the
   * same calls.
   */
  readonly growth: Readonly<Record<string, number>>;
  readonly listeners: number;
  readonly openStreams: number;
  readonly resourcesBefore: readonly string[];
  readonly resourcesAfter: readonly string[];
  readonly warnings: readonly string[];
}

const warnings: string[] = [];
process.on('warning', (warning) => warnings.push(String(warning)));

const folder = mkdtempSync(join(tmpdir(), 'kubeling-leak-'));
const path = join(folder, 'runtime.sock');
let openStreams = 0;

const implementation: Partial<ServiceImplementation<RuntimeServiceMethods>> = {
  version: async () => ({ version: '0.1.0', runtimeName: 'x', runtimeVersion: '1', runtimeApiVersion: 'v1' }),
  removePodSandbox: (_request, { signal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  async *getContainerEvents(_request, { signal }) {
    openStreams++;
    try {
      for (let index = 0; index < 3; index++) yield { containerId: String(index) };
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    } finally {
      openStreams--;
    }
  },
};

/** The abort signal of the whole process: every call adds a listener to it and must remove it. */
const root = new AbortController();
const clock = realClock();

async function times(count: number, atOnce: number, work: () => Promise<unknown>): Promise<void> {
  let left = count;
  const worker = async () => {
    while (left-- > 0) await work();
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

async function heapBytes(): Promise<number> {
  for (let round = 0; round < 4; round++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    globalThis.gc?.();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const refused = (call: Promise<unknown>) =>
  call.then(
    () => Promise.reject(new Error('The call should have failed')),
    () => {},
  );

async function run(): Promise<Record<string, number>> {
  const server = new GrpcServer();
  server.add(RuntimeService, implementation as ServiceImplementation<RuntimeServiceMethods>);
  await server.listen(path);
  const open = (requestTimeoutMs: number) => {
    const transport = wireTransport({ endpoint: path, clock, random: seededRandom(1) });
    return createCriClient({ transport, clock, requestTimeoutMs });
  };
  const [client, hasty] = [open(60_000), open(5)];
  const nobody = new GrpcChannel({
    target: `unix://${folder}/nobody.sock`,
    clock,
    random: seededRandom(1),
    baseBackoffMs: 0,
  });
  const lost = nobody.client(RuntimeService);

  const work: Readonly<Record<string, (share: number) => Promise<void>>> = {
    '10000 unary calls': (share) => times(10_000 * share, 20, () => client.version({}, root.signal)),
    '1000 streams left early': (share) =>
      times(1_000 * share, 20, async () => {
        for await (const _ of client.getContainerEvents({}, root.signal)) break;
      }),
    '1000 streams aborted': (share) =>
      times(1_000 * share, 20, async () => {
        const controller = new AbortController();
        const stream = client.getContainerEvents({}, controller.signal)[Symbol.asyncIterator]();
        await stream.next();
        controller.abort(new Error('enough'));
        await refused(stream.next());
      }),
    '1000 aborted calls': (share) =>
      times(1_000 * share, 20, async () => {
        const controller = new AbortController();
        const call = refused(client.removePodSandbox({}, controller.signal));
        setImmediate(() => controller.abort(new Error('enough')));
        await call;
      }),
    '1000 timed-out calls': (share) =>
      times(1_000 * share, 20, () => refused(hasty.removePodSandbox({}, root.signal))),
    '1000 failed connects': (share) =>
      times(1_000 * share, 1, () => refused(lost.version({}, { signal: root.signal }))),
    '200 connections': (share) =>
      times(200 * share, 4, async () => {
        const own = open(60_000);
        await own.version({}, root.signal);
        own.close();
      }),
  };

  const growth: Record<string, number> = {};
  for (const [name, act] of Object.entries(work)) {
    await act(0.2);
    const before = await heapBytes();
    await act(1);
    growth[name] = (await heapBytes()) - before;
  }
  while (openStreams > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  client.close();
  hasty.close();
  nobody.close();
  await server.close();
  return growth;
}

const resourcesBefore = process.getActiveResourcesInfo().sort();
const growth = await run();
rmSync(folder, { recursive: true, force: true });
await heapBytes();
const report: LeakReport = {
  growth,
  listeners: getEventListeners(root.signal, 'abort').length,
  openStreams,
  resourcesBefore,
  resourcesAfter: process.getActiveResourcesInfo().sort(),
  warnings,
};
console.log(JSON.stringify(report));
