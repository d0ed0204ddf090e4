import { type Clock, KubelingError, type Random } from '../../../src/lib/index.ts';
import { draw } from '../../../src/simulator/fault-rules.ts';
import type { VolumeFiles } from '../../../src/volumes/index.ts';

/** How likely what is done to the files of volumes goes wrong. */
export interface FileRates {
  readonly slow?: number;
  /** Nothing happens. */
  readonly refused?: number;
  /** It happens, and is said to have failed. */
  readonly denied?: number;
  /** No end before the deadline, and nobody knows whether it happens. */
  readonly hung?: number;
}

type Fault = 'slow' | 'refused' | 'denied' | 'hung';

/** How long a program that mounts may take. */
const deadlineMs = 30_000;
const slowMs = 3_000;

/** What changes the machine; what only looks never fails here. */
const changes: ReadonlySet<string> = new Set([
  ...(['makeDirectory', 'writeFile', 'replaceFile', 'link', 'rename', 'unlink'] as const),
  ...(['removeTree', 'removeEmptyDirectory', 'giveToGroup'] as const),
  ...(['mountMemory', 'bind', 'remount', 'unbind', 'unmount'] as const),
] satisfies readonly (keyof VolumeFiles)[]);
const mounts: ReadonlySet<string> = new Set([
  ...(['mountMemory', 'bind', 'remount', 'unbind', 'unmount'] as const),
] satisfies readonly (keyof VolumeFiles)[]);

export interface TroubledFilesOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Told right before anything changes. */
  readonly changing: (method: string, path: string) => void;
}

/** The files of volumes on a machine with troubles. */
export class FileTroubles {
  readonly #options: TroubledFilesOptions;
  #rates: FileRates = {};

  constructor(options: TroubledFilesOptions) {
    this.#options = options;
  }

  set(rates: FileRates): void {
    this.#rates = rates;
  }

  around(files: VolumeFiles): VolumeFiles {
    return new Proxy(files, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function' || typeof name !== 'string') return value;
        const act = (...args: readonly unknown[]): unknown => Reflect.apply(value, target, args);
        if (!changes.has(name)) return act;
        return (...args: readonly unknown[]) => this.#change(name, args, act);
      },
    });
  }

  async #change(
    method: string,
    args: readonly unknown[],
    act: (...args: readonly unknown[]) => unknown,
  ): Promise<unknown> {
    const fault = this.#draw(mounts.has(method) ? 'mount' : 'file');
    const path = pathOf(method, args);
    const told = () => {
      this.#options.changing(method, path);
      return act(...args);
    };
    if (fault === undefined) return await told();
    const signal = args.findLast((arg) => arg instanceof AbortSignal) ?? new AbortController().signal;
    const { clock, random } = this.#options;
    await clock.sleep(fault === 'hung' ? deadlineMs : random.next() * slowMs, signal);
    if (fault === 'slow') return await told();
    const isDone = fault === 'denied' || (fault === 'hung' && random.next() < 0.5);
    if (isDone) await told();
    throw new KubelingError('FILE_WRITE', `Cannot ${method} ${path}: the machine is in trouble (${fault})`);
  }

  #draw(what: 'mount' | 'file'): Fault | undefined {
    const { slow = 0, refused = 0, denied = 0, hung = 0 } = this.#rates;
    if (slow + refused + denied + hung === 0) return undefined;
    return draw<Fault>(this.#options.random, [
      [slow, () => 'slow'],
      [refused, () => 'refused'],
      [denied, () => 'denied'],
      [what === 'mount' ? hung : 0, () => 'hung'],
    ]);
  }
}

/** Of what is changed. */
function pathOf(method: string, args: readonly unknown[]): string {
  return String(args[['bind', 'link', 'rename'].includes(method) ? 1 : 0]);
}
