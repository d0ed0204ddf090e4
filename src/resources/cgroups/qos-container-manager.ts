import { type Clock, KeyedMutex, KubelingError, type Logger, minShares } from '../../lib/index.ts';
import { milliCpuOf, type Pod, podRequests, type QosClass, cpuShares as sharesOf } from '../../pods/index.ts';
import type { CgroupManager } from './cgroup-manager.ts';
import { type CgroupName, cgroupName, kubepodsName } from './cgroup-name.ts';
import type { CgroupValues } from './cgroup-values.ts';

export interface QosContainerManagerDeps {
  readonly cgroups: CgroupManager;
  /** The existing parent cgroup of kubepods. */
  readonly cgroupRoot: CgroupName;
  /** The cgroup values of kubepods. */
  readonly kubepods: CgroupValues;
  /**
   * Reports as event whether the limits of node allocatable were set; if undefined, the result is
   * only logged.
   */
  readonly enforcement?: EnforcementObserver | undefined;
  /**
   * `all` writes all CPUs to the cpuset of kubepods, so that systemd keeps the cpuset controller
   * enabled; with `unset` or undefined, no cpuset is written.
   */
  readonly cpuset?: 'all' | 'unset' | undefined;
  /**
   * All huge page sizes of the machine; kubepods and pods get a limit for each, QoS classes do not.
   */
  readonly hugePageSizes: readonly string[];
  /** Returns the running and starting pods of the QoS class. */
  readonly activePods: (quality: QosClass) => readonly Pod[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * `enforced` is called once when the limits of kubepods are set, and `failed` whenever setting
 * these limits fails. Neither function throws.
 */
export interface EnforcementObserver {
  enforced(): void;
  failed(cgroup: string, error: unknown): void;
}

const upkeepMs = 60_000;
const unboundPages = 2 ** 62;

/**
 * Manages the cgroups above the pods: kubepods, and below it burstable and besteffort. Guaranteed
 * pods are directly in kubepods.
 */
export class QosContainerManager {
  readonly #deps: QosContainerManagerDeps;
  readonly #names: Readonly<Record<QosClass, CgroupName>>;
  /** The shares last written to the burstable cgroup; an unchanged value is not written again. */
  #burstableShares: number | undefined;
  /** Whether the limits of kubepods have been set since the last failure to set them. */
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

  /** Returns the cgroup of the pods of a QoS class. */
  nameOf(quality: QosClass): CgroupName {
    return this.#names[quality];
  }

  /**
   * Creates the missing cgroups and sets all values. Throws CGROUP_ROOT, CGROUP_CREATE or
   * CGROUP_UPDATE. A failure to set the limits of kubepods is tolerated: the running pods may
   * already exceed them, and the kubelet must still be able to stop pods.
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

  /**
   * Call before a pod cgroup is created: sets the CPU weight of the burstable cgroup to the sum of
   * the requests of its pods.
   */
  async update(signal: AbortSignal): Promise<void> {
    await this.#exclusively(async (shares) => {
      if (shares !== this.#burstableShares)
        await this.#ensure(this.#names.Burstable, { cpuShares: shares }, signal);
    }, signal);
  }

  /**
   * Every minute restores the cgroups and values that other processes changed or removed. Resolves
   * when the signal is aborted.
   */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#deps.clock.sleep(upkeepMs, signal);
        await this.start(signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#deps.logger.error('Failed to update the QoS cgroups', error);
      }
    }
  }

  /**
   * Pods start concurrently, so the weights are computed and written one at a time: the last write
   * includes the newest pods.
   */
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
      logger.error('Failed to set a value of a new cgroup', failure, { cgroup: cgroups.path(name) });
    }
  }
}

function loggedEnforcement(logger: Logger): EnforcementObserver {
  return {
    enforced: () => {},
    failed: (cgroup, error) => logger.error('Failed to enforce node allocatable', error, { cgroup }),
  };
}

function noRoot(path: string, missing: readonly string[]): KubelingError {
  return new KubelingError(
    'CGROUP_ROOT',
    `Cannot put pods below the cgroup ${path} as cgroupRoot must name an existing one: missing are ${missing.join(', ')}`,
  );
}
