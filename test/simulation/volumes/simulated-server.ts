import { type Clock, KubelingError, type Random } from '../../../src/lib/index.ts';
import type { NetworkMount, NetworkMounts, Unmounting } from '../../../src/volumes/index.ts';
import type { MemoryNetworkMounts } from '../../fakes/memory-network-mounts.ts';

export interface SimulatedServerOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly mounts: MemoryNetworkMounts;
  readonly note: (what: string) => void;
  /** Called right before a mount is changed. */
  readonly changing: (method: string, path: string) => void;
}

/** How long programs wait for the server before they are killed. */
const limitsMs = { mount: 120_000, plain: 60_000, force: 30_000, look: 30_000 } as const;
/** The probability that a killed program does not exit. */
const stuckRate = 0.3;
/** The probability that even a forced unmount waits for the server. */
const stubbornRate = 0.2;

/**
 * A simulated NFS server that can become unresponsive; programs of the machine then wait for it,
 * also across kubelet restarts.
 */
export class SimulatedServer implements NetworkMounts {
  readonly #options: SimulatedServerOptions;
  #isSilent = false;
  /** Callbacks of the programs that wait for the server. */
  readonly #waiting = new Set<() => void>();
  /** Directories with programs that the current kubelet could not kill. */
  readonly #stuck = new Set<string>();

  constructor(options: SimulatedServerOptions) {
    this.#options = options;
  }

  /**
   * Clears the programs that could not be killed, because a restarted kubelet does not know them.
   */
  forgetStuck(): void {
    this.#stuck.clear();
  }

  fallSilent(): void {
    this.#isSilent = true;
  }

  answer(): void {
    this.#isSilent = false;
    for (const go of [...this.#waiting]) go();
  }

  /** Makes existing mounts invalid, as a server that has lost their state. */
  lose(directories: readonly string[]): void {
    for (const directory of directories) this.#options.mounts.broken.add(directory);
  }

  isMounted(directory: string): Promise<boolean> {
    return this.#options.mounts.isMounted(directory);
  }

  async mount(mount: NetworkMount, signal: AbortSignal): Promise<void> {
    const { mounts } = this.#options;
    await this.#run('mount', mount.directory, () => mounts.mount(mount), signal);
  }

  async unmount(directory: string, how: Unmounting, signal: AbortSignal): Promise<'done' | 'busy'> {
    const { mounts, random, changing } = this.#options;
    const act = () => {
      changing('unmount', directory);
      return mounts.unmount(directory);
    };
    // A lazy unmount does not contact the server.
    if (how === 'lazy') return await act();
    if (how === 'force' && this.#isSilent && random.next() >= stubbornRate) return await act();
    return await this.#run(how, directory, act, signal);
  }

  async check(directory: string, signal: AbortSignal): Promise<'answers' | 'broken'> {
    const { mounts } = this.#options;
    return await this.#run('look', directory, () => mounts.check(directory), signal);
  }

  async #run<T>(
    what: keyof typeof limitsMs,
    directory: string,
    act: () => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const late = () => new KubelingError('DEADLINE_EXCEEDED', `${what} at ${directory} waits for its server`);
    if (what !== 'force' && this.#stuck.has(directory)) throw late();
    if (!this.#isSilent) return await act();
    const { clock, random, note } = this.#options;
    note(`${what} at ${directory} waits`);
    return await new Promise<T>((resolve, reject) => {
      const go = () => {
        leave();
        if (isGivenUp) this.#stuck.delete(directory);
        act().then(resolve, reject);
      };
      const leave = () => {
        this.#waiting.delete(go);
        timer.cancel();
        signal.removeEventListener('abort', giveUp);
      };
      let isGivenUp = false;
      const giveUp = () => {
        reject(signal.aborted ? signal.reason : late());
        isGivenUp = random.next() < stuckRate;
        if (!isGivenUp) return leave();
        timer.cancel();
        this.#stuck.add(directory);
      };
      const timer = clock.timer(limitsMs[what], giveUp);
      this.#waiting.add(go);
      signal.addEventListener('abort', giveUp, { once: true });
      if (signal.aborted) giveUp();
    });
  }
}
