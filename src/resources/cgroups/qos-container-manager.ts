import { type Clock, KeyedMutex, KubelingError, type Logger, minShares } from '../../lib/index.ts';
import { milliCpuOf, type Pod, podRequests, type QosClass, cpuShares as sharesOf } from '../../pods/index.ts';
import type { CgroupManager } from './cgroup-manager.ts';
import { type CgroupName, cgroupName, kubepodsName } from './cgroup-name.ts';
import type { CgroupValues } from './cgroup-values.ts';

export interface QosContainerManagerDeps {
  readonly cgroups: CgroupManager;
  /** The cgroup under which everything lies; it must be there. */
  readonly cgroupRoot: CgroupName;
  /** Of the cgroup of all pods. */
  readonly kubepods: CgroupValues;
  /** Told how it went with the cgroup of all pods; it is only logged unless given. */
  readonly enforcement?: EnforcementObserver | undefined;
  /** Whether pods are said to have every processor, so that systemd keeps the controller; nothing is unless given. */
  readonly cpuset?: 'all' | 'unsaid' | undefined;
  /** All the machine has: classes do not limit them, the cgroup of all pods and each pod do. */
  readonly hugePageSizes: readonly string[];
  /** Pods that run or are about to. */
  readonly activePods: (quality: QosClass) => readonly Pod[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Told once that pods are held to what they may have, and each time that they cannot be. Never throws. */
export interface EnforcementObserver {
  enforced(): void;
  failed(cgroup: string, error: unknown): void;
}

const upkeepMs = 60_000;
const unboundPages = 2 ** 62;

/**
 * The cgroups between the root and the pods: kubepods for all, and below it one for Burstable and one for BestEffort
 * pods. Guaranteed pods lie in kubepods itself.
 */
export class QosContainerManager {
  readonly #deps: QosContainerManagerDeps;
  readonly #names: Readonly<Record<QosClass, CgroupName>>;
  /** What was last written, so that a pod more or less costs nothing where it changes nothing. */
  #burstableShares: number | undefined;
  /** Whether all pods together have had their limits since they last could not be set. */
  #enforced = false;
  readonly #lock = new KeyedMutex<'burstable'>();

  constructor(deps: QosContainerManagerDeps) {
    const kubepods = kubepodsName(deps.cgroupRoot);
    this.#deps = deps;
    this.#names = {
      Guaranteed: kubepods,
      Burstable: cgroupName(kubepods, 'burstable'),
      BestEffort: cgroupName(kubepods, 'besteffort'),
    };
  }

  /** The cgroup in which pods of the class lie. */
  nameOf(quality: QosClass): CgroupName {
    return this.#names[quality];
  }

  /**
   * Makes what is missing and sets all values. Throws CGROUP_ROOT, CGROUP_CREATE or CGROUP_UPDATE. The limits of all
   * pods together may fail for now: pods may have more than they are to have, and nobody is kept from ending them.
   */
  async start(signal: AbortSignal): Promise<void> {
    const { cgroups, cgroupRoot } = this.#deps;
    const missing = await cgroups.missing(cgroupRoot);
    if (missing.length > 0) throw noRoot(cgroups.path(cgroupRoot), missing);
    await this.#enforceAllocatable(signal);
    const hugePages = new Map(this.#deps.hugePageSizes.map((size) => [size, unboundPages] as const));
    await this.#ensure(this.#names.BestEffort, { cpuShares: minShares, hugePages }, signal);
    await this.#exclusively(
      (cpuShares) => this.#ensure(this.#names.Burstable, { cpuShares, hugePages }, signal),
      signal,
    );
  }

  /** To be called before each new pod cgroup: gives Burstable pods as a whole the weight they ask for in sum. */
  async update(signal: AbortSignal): Promise<void> {
    await this.#exclusively(async (shares) => {
      if (shares !== this.#burstableShares)
        await this.#ensure(this.#names.Burstable, { cpuShares: shares }, signal);
    }, signal);
  }

  /** Restores once a minute what somebody else may have changed or removed. Ends with the signal, without an error. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#deps.clock.sleep(upkeepMs, signal);
        await this.start(signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#deps.logger.error('Cannot keep up the cgroups of the quality-of-service classes', error);
      }
    }
  }

  /** Pods start side by side: who writes last must have counted last. */
  async #exclusively(write: (shares: number) => Promise<void>, signal: AbortSignal): Promise<void> {
    using _held = await this.#lock.acquire('burstable', signal);
    const shares = this.#desiredShares();
    await write(shares);
    this.#burstableShares = shares;
  }

  #desiredShares(): number {
    const burstable = this.#deps.activePods('Burstable');
    return Number(sharesOf(burstable.reduce((milli, pod) => milli + milliCpuOf(podRequests(pod)), 0n)));
  }

  async #enforceAllocatable(signal: AbortSignal): Promise<void> {
    const { cgroups, kubepods, cpuset, logger } = this.#deps;
    const { enforcement = loggedEnforcement(logger) } = this.#deps;
    const name = this.#names.Guaranteed;
    try {
      if (!(await cgroups.exists(name))) await cgroups.create(name, {}, signal);
      const cpus = cpuset === 'all' ? await cgroups.allCpus() : undefined;
      await cgroups.update(name, { ...kubepods, cpus }, signal);
    } catch (error) {
      if (!(error instanceof KubelingError) || error.code !== 'CGROUP_UPDATE') throw error;
      this.#enforced = false;
      return enforcement.failed(cgroups.path(name), error);
    }
    if (!this.#enforced) enforcement.enforced();
    this.#enforced = true;
  }

  async #ensure(name: CgroupName, values: CgroupValues, signal: AbortSignal): Promise<void> {
    const { cgroups, logger } = this.#deps;
    if (await cgroups.exists(name)) return await cgroups.update(name, values, signal);
    const failures = await cgroups.create(name, values, signal);
    for (const failure of failures) {
      logger.error('A cgroup was made without one of its values', failure, { cgroup: cgroups.path(name) });
    }
  }
}

function loggedEnforcement(logger: Logger): EnforcementObserver {
  return {
    enforced: () => {},
    failed: (cgroup, error) => logger.error('Pods are not held to what they may have', error, { cgroup }),
  };
}

function noRoot(path: string, missing: readonly string[]): KubelingError {
  return new KubelingError(
    'CGROUP_ROOT',
    `Cannot put pods below the cgroup ${path} as cgroupRoot must name one that is there: missing are ${missing.join(', ')}`,
  );
}
