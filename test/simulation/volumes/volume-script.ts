import { pick, type Random, randomInt } from '../../../src/lib/index.ts';
import type { Step, TimedStep } from '../script.ts';
import type { DriverRates } from './simulated-driver.ts';
import type { FileRates } from './volume-faults.ts';
import type { VolumeStep } from './volume-steps.ts';

const troubles = [
  ...(['driver', 'driver', 'driver', 'driver-ends', 'driver-ends', 'files', 'files'] as const),
  ...(['machine', 'machine', 'server', 'server'] as const),
  ...(['kill', 'kill', 'kill', 'kill', 'kill', 'kill'] as const),
];

/**
 * Calls around which a volume may be mounted but not checkpointed, or checkpointed but not mounted.
 */
const delicateCalls = [
  ...(['csi NodeStageVolume', 'csi NodePublishVolume', 'csi NodeUnpublishVolume'] as const),
  ...(['csi NodeUnstageVolume', 'volume mountMemory', 'volume unmount', 'volume bind'] as const),
  ...(['volume replaceFile', 'volume rename', 'volume removeTree', 'volume unbind'] as const),
  ...(['disk probe', 'disk format', 'disk mount', 'network mount', 'network unmount'] as const),
  ...(['device bind', 'device pin', 'device unpin', 'device unbind', 'volume link'] as const),
];

/** Adds changes and failures of volumes to the actions of a simulated seed. */
export function withVolumeTrouble(random: Random, script: readonly TimedStep[]): readonly TimedStep[] {
  const spanMs = Math.max(60_000, script.at(-1)?.atMs ?? 0);
  const writer = new VolumeScriptWriter(random, spanMs);
  for (let updates = randomInt(random, 8); updates > 0; updates--) writer.update();
  for (let times = randomInt(random, 5); times > 0; times--) writer.trouble();
  return [...script, ...writer.steps()].toSorted((each, other) => each.atMs - other.atMs);
}

class VolumeScriptWriter {
  readonly #random: Random;
  readonly #spanMs: number;
  readonly #steps: TimedStep[] = [];

  constructor(random: Random, spanMs: number) {
    this.#random = random;
    this.#spanMs = spanMs;
  }

  steps(): readonly TimedStep[] {
    return this.#steps;
  }

  update(): void {
    this.#add(this.#below(this.#spanMs), { do: 'update' });
  }

  trouble(): void {
    const atMs = this.#below(this.#spanMs);
    const endMs = atMs + this.#below(this.#of([2_000, 20_000, 150_000]));
    switch (this.#of(troubles)) {
      case 'driver':
        this.#add(atMs, { do: 'driver-faults', rates: this.#driverRates() });
        this.#add(endMs, { do: 'no-faults' });
        break;
      case 'files':
        this.#add(atMs, { do: 'file-faults', rates: this.#fileRates() });
        this.#add(endMs, { do: 'no-faults' });
        break;
      case 'machine':
        this.#add(atMs, { do: 'machine-faults', rates: this.#machineRates() });
        this.#add(endMs, { do: 'no-faults' });
        break;
      case 'server':
        this.#add(atMs, { do: 'server', what: this.#of(['falls-silent', 'falls-silent', 'forgets']) });
        this.#add(endMs, { do: 'server', what: 'answers' });
        break;
      case 'driver-ends': {
        const how = this.#of(['deaf', 'gone'] as const);
        this.#add(atMs, { do: 'driver-ends', choice: this.#random.next(), how });
        this.#add(endMs, { do: 'drivers-come-back' });
        break;
      }
      case 'kill':
        this.#kill(atMs, endMs);
        break;
    }
  }

  #kill(atMs: number, endMs: number): void {
    const method = this.#of(delicateCalls);
    const crossings = 1 + randomInt(this.#random, 4);
    const steps: readonly (readonly [number, Step])[] = [
      [atMs, { do: 'kill-kubelet-at', method, crossings }],
      [endMs, { do: 'start-kubelet' }],
    ];
    for (const [at, step] of steps) this.#steps.push({ atMs: at, step });
  }

  #driverRates(): DriverRates {
    return {
      slow: this.#upTo(0.5),
      refused: this.#upTo(0.2),
      lost: this.#upTo(0.2),
      unanswered: this.#upTo(0.2),
      hung: this.#upTo(0.1),
    };
  }

  #fileRates(): FileRates {
    return {
      slow: this.#upTo(0.1),
      refused: this.#upTo(0.05),
      denied: this.#upTo(0.05),
      hung: this.#upTo(0.05),
      busy: this.#upTo(0.3),
    };
  }

  /** Failure rates for programs are higher than for files, because few programs run. */
  #machineRates(): FileRates {
    return {
      slow: this.#upTo(0.5),
      refused: this.#upTo(0.3),
      denied: this.#upTo(0.3),
      hung: this.#upTo(0.2),
      busy: this.#upTo(0.5),
    };
  }

  #upTo(most: number): number {
    return this.#random.next() < 0.4 ? 0 : this.#random.next() * most;
  }

  #add(atMs: number, what: VolumeStep): void {
    this.#steps.push({ atMs, step: { do: 'volumes', what } });
  }

  #below(bound: number): number {
    return this.#random.next() * bound;
  }

  #of<T>(items: readonly T[]): T {
    return pick(this.#random, items) as T;
  }
}
