import { createHash } from 'node:crypto';
import type { EvictionThreshold } from '../../../src/config/index.ts';
import { quantityOf } from '../../../src/lib/index.ts';
import type { PodUid } from '../../../src/pods/index.ts';
import type {
  EvictionSettings,
  EvictionStats,
  PodResourceUsage,
  SignalObservation,
} from '../../../src/resources/index.ts';
import type { VirtualClock } from '../../fakes/virtual-clock.ts';
import type { SimulatedRuntime } from '../../simulator/index.ts';

export type Scarce = 'memory' | 'disk' | 'pids';

/**
 * Simulates a process outside of all pods that leaves only this amount of a resource for the pods.
 */
export interface PressureStep {
  readonly resource: Scarce;
  readonly room: number;
}

const capacity = 10_000;

function below(
  signal: EvictionThreshold['signal'],
  amount: number,
  more: Partial<EvictionThreshold> = {},
): EvictionThreshold {
  const value = { quantity: quantityOf(amount) };
  return { signal, kind: 'hard', value, gracePeriodMs: 0, minimumReclaim: undefined, ...more };
}

export const evictionSettings: EvictionSettings = {
  thresholds: [
    below('memory.available', 100),
    below('memory.available', 300, { kind: 'soft', gracePeriodMs: 20_000 }),
    below('nodefs.available', 100, { minimumReclaim: { quantity: quantityOf(50) } }),
    below('pid.available', 100),
  ],
  transitionMs: 30_000,
  maxPodGraceSeconds: 8,
  localStorage: 'limited',
  memoryGuard: 'off',
};

/** Simulated resource usage of pods, which depends only on their UID and whether they run. */
export class PressureWorld implements EvictionStats {
  readonly #clock: VirtualClock;
  readonly #runtime: SimulatedRuntime;
  readonly #room = new Map<Scarce, number>();

  constructor(clock: VirtualClock, runtime: SimulatedRuntime) {
    this.#clock = clock;
    this.#runtime = runtime;
  }

  take({ resource, room }: PressureStep): void {
    this.#room.set(resource, room);
  }

  heal(): void {
    this.#room.clear();
  }

  async layout() {
    return 'single' as const;
  }

  async node() {
    const disk = { bytes: this.#left('disk'), inodes: undefined };
    return { memory: this.#left('memory'), nodefs: disk, imagefs: disk, pids: this.#left('pids') };
  }

  async pods(pods: Parameters<EvictionStats['pods']>[0]): Promise<ReadonlyMap<PodUid, PodResourceUsage>> {
    const running = this.#running();
    const known = pods.filter(({ metadata }) => running.has(metadata.uid));
    return new Map(known.map(({ metadata: { uid } }) => [uid, measuresOf(uid)]));
  }

  #left(resource: Scarce): SignalObservation {
    const used = [...this.#running()].reduce((sum, uid) => sum + usageOf(uid, resource), 0);
    const available = Math.max(0, (this.#room.get(resource) ?? capacity) - used);
    return { atMs: this.#clock.now(), available, capacity };
  }

  #running(): ReadonlySet<string> {
    return new Set(this.#runtime.runningContainers().map(({ podUid }) => podUid));
  }
}

function measuresOf(uid: string): PodResourceUsage {
  const bytes = usageOf(uid, 'disk');
  return {
    memoryBytes: usageOf(uid, 'memory'),
    processes: usageOf(uid, 'pids'),
    containers: [
      {
        name: 'c0',
        memoryBytes: usageOf(uid, 'memory'),
        rootfs: { bytes, inodes: 1 },
        logs: { bytes: 0, inodes: 0 },
      },
    ],
    volumes: new Map(),
  };
}

/** The usage of a pod, which is constant. */
function usageOf(uid: string, resource: Scarce): number {
  return 20 + (createHash('md5').update(`${uid} ${resource}`).digest().readUInt16BE() % 400);
}
