import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CriClient, createCriClient, wireTransport } from '../../src/cri/index.ts';
import { realClock, seededRandom } from '../../src/lib/index.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';
import {
  createSimulatedRuntime,
  memoryFiles,
  realFiles,
  type SimulatorMutation,
} from '../simulator/index.ts';
import type { Backend, Flavour } from './backend.ts';
import { poll, readLog } from './containerd-backend.ts';

const image = 'localhost/kubeling/busybox:1';
const limitMs = 600_000;

export interface SimulatedBackendOptions {
  readonly flavour: Exclude<Flavour, 'containerd-1.7'>;
  readonly mutation?: SimulatorMutation;
}

/**
 * Starts the simulator in this process with a virtual clock, which advances while the test waits.
 */
export async function inProcessBackend({ flavour, mutation }: SimulatedBackendOptions): Promise<Backend> {
  const clock = new VirtualClock();
  const files = memoryFiles();
  const runtime = createSimulatedRuntime({
    clock,
    random: seededRandom(7),
    flavour,
    images: [{ reference: image }],
    files,
    ...(mutation === undefined ? {} : { mutation }),
  });
  const cri = createCriClient({ transport: runtime.transport(), clock });
  return {
    name: `the simulator in process (${flavour})`,
    flavour,
    cri: inVirtualTime(cri, clock),
    image,
    logRoot: '/var/log/contract',
    cgroupParent: '/contract',
    nowNs: () => BigInt(Math.floor(clock.now())) * 1_000_000n + 999_999n,
    async until(what, check) {
      const startMs = clock.monotonicMs();
      for (;;) {
        const found = await check();
        if (found !== undefined) return found;
        const waitedMs = clock.monotonicMs() - startMs;
        if (waitedMs > limitMs) throw new Error(`Waited ${limitMs} virtual ms without success for ${what}`);
        // Waits longer after each check, so that a timeout does not take thousands of checks.
        await clock.advance(Math.max(20, waitedMs / 20));
      }
    },
    readLog: async (path) => files.read(path) ?? '',
    renameLog: async (from, to) => files.rename(from, to),
    kill: async () => runtime.goDown({ state: 'kept' }),
    revive: async () => runtime.comeUp(),
    async [Symbol.asyncDispose]() {
      cri.close();
      runtime.close();
    },
  };
}

/** Advances the clock during each call, and each step of a stream, until it is complete. */
function inVirtualTime(cri: CriClient, clock: VirtualClock): CriClient {
  const pump = async <T>(promise: Promise<T>): Promise<T> => {
    let settled = false;
    const watched = promise.finally(() => {
      settled = true;
    });
    watched.catch(() => {});
    if (!(await clock.advanceUntil(() => settled, limitMs))) throw new Error('The call did not return');
    return await watched;
  };
  const wrap =
    (method: (...args: unknown[]) => unknown) =>
    (...args: unknown[]) => {
      const result = method(...args);
      return result instanceof Promise ? pump(result) : result;
    };
  const entries = Object.entries(cri).map(([name, method]) => [
    name,
    wrap(method as (...args: unknown[]) => unknown),
  ]);
  return Object.fromEntries(entries) as CriClient;
}

/** Starts the simulator behind a real socket, in real time and with real log files. */
export async function socketBackend({ flavour }: SimulatedBackendOptions): Promise<Backend> {
  const clock = realClock();
  const random = seededRandom(7);
  const folder = await mkdtemp(join(tmpdir(), 'kubeling-sim-'));
  const socket = join(folder, 'sim.sock');
  const runtime = createSimulatedRuntime({
    clock,
    random,
    flavour,
    images: [{ reference: image }],
    files: realFiles(),
  });
  let server = await runtime.serve(socket);
  const cri = createCriClient({ transport: wireTransport({ endpoint: socket, clock, random }), clock });
  return {
    name: `the simulator over its socket (${flavour})`,
    flavour,
    cri,
    image,
    logRoot: join(folder, 'logs'),
    cgroupParent: '/contract',
    nowNs: () => BigInt(Date.now()) * 1_000_000n + 999_999n,
    until: poll,
    readLog,
    renameLog: rename,
    async kill() {
      runtime.goDown({ state: 'kept' });
      await server.close();
    },
    async revive() {
      runtime.comeUp();
      server = await runtime.serve(socket);
    },
    async [Symbol.asyncDispose]() {
      cri.close();
      await server.close();
      runtime.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
