import { readlink } from 'node:fs/promises';
import { type Clock, errnoOf, type Logger } from '../../lib/index.ts';
import type { CgroupManager } from './cgroup-manager.ts';
import type { CgroupName } from './cgroup-name.ts';

/** The properties of a process that decide whether it may be moved to another cgroup. */
export interface ProcessFacts {
  readonly ownPid: number;
  /** Whether the process is a kernel thread; such a process has no executable. */
  isKernelThread(pid: number): Promise<boolean>;
  /** Whether the process is in the PID namespace of PID 1; a container process is not. */
  isOfHost(pid: number): Promise<boolean>;
}

export interface SystemCgroupsDeps {
  readonly cgroups: CgroupManager;
  readonly processes: ProcessFacts;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The configured cgroup of the kubelet; if undefined, the kubelet is not moved. */
  readonly own?: string | undefined;
  /** The configured cgroup for processes in the root cgroup; if undefined, they are not moved. */
  readonly system?: string | undefined;
  /** The cgroup whose processes are moved to `system`; the root cgroup if undefined. */
  readonly root?: CgroupName;
}

const upkeepMs = 60_000;
/**
 * How many times the list of processes is read again, because processes fork while they are moved.
 */
const rounds = 10;

/** Moves the kubelet and the system processes to their configured cgroups every minute. */
export class SystemCgroups {
  readonly #deps: SystemCgroupsDeps;

  constructor(deps: SystemCgroupsDeps) {
    this.#deps = deps;
  }

  /** Moves processes every minute until the signal is aborted; failed moves are retried. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#deps;
    while (!signal.aborted) {
      try {
        await this.move(signal);
      } catch (error) {
        logger.error('Failed to move processes to their cgroups', error);
      }
      await clock.sleep(upkeepMs, signal).catch(() => {});
    }
  }

  /** Moves the kubelet and the system processes once. Throws CGROUP_CREATE or CGROUP_UPDATE. */
  async move(signal: AbortSignal): Promise<void> {
    const { own, system } = this.#deps;
    if (own !== undefined) await this.#moveOwn(own, signal);
    if (system !== undefined) await this.#moveSystem(system, signal);
  }

  async #moveOwn(path: string, signal: AbortSignal): Promise<void> {
    const { cgroups, processes } = this.#deps;
    const { ownPid } = processes;
    if (!(await processes.isOfHost(ownPid))) return;
    const name = await this.#made(path, signal);
    if (!(await cgroups.members(name)).includes(ownPid)) await cgroups.attach(name, ownPid);
  }

  async #moveSystem(path: string, signal: AbortSignal): Promise<void> {
    const { cgroups } = this.#deps;
    const name = await this.#made(path, signal);
    let failure: unknown;
    for (let round = 0; round <= rounds; round++) {
      const pids = await this.#movable();
      if (pids.length === 0) return;
      failure = undefined;
      for (const pid of pids) {
        await cgroups.attach(name, pid).catch((error: unknown) => {
          // ESRCH: the process has exited since it was listed.
          if (errnoOf((error as Error).cause) !== 'ESRCH') failure = error;
        });
      }
    }
    if (failure !== undefined) throw failure;
  }

  async #movable(): Promise<readonly number[]> {
    const { cgroups, processes, root = [] } = this.#deps;
    const pids = (await cgroups.members(root)).filter((pid) => pid > 1);
    const kept = await Promise.all(
      pids.map(async (pid) => (await processes.isKernelThread(pid)) || !(await processes.isOfHost(pid))),
    );
    return pids.filter((_, index) => kept[index] !== true);
  }

  async #made(path: string, signal: AbortSignal): Promise<CgroupName> {
    const { cgroups } = this.#deps;
    const name = cgroups.parse(path);
    if (!(await cgroups.exists(name))) await cgroups.create(name, {}, signal);
    return name;
  }
}

export function hostProcesses(procDir = '/proc'): ProcessFacts {
  const namespace = (pid: number) => readlink(`${procDir}/${pid}/ns/pid`);
  return {
    ownPid: process.pid,
    isKernelThread: (pid) =>
      readlink(`${procDir}/${pid}/exe`).then(
        () => false,
        (error: unknown) => errnoOf(error) === 'ENOENT',
      ),
    // A process whose namespace cannot be read is treated as a container process.
    isOfHost: (pid) =>
      Promise.all([namespace(1), namespace(pid)]).then(
        ([first, own]) => first === own,
        () => false,
      ),
  };
}
