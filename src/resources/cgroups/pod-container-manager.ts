import { describeError, KeyedMutex, type Logger, minShares } from '../../lib/index.ts';
import {
  describePod,
  type Pod,
  type PodJournal,
  type PodUid,
  podUid,
  type QosClass,
  qosClass,
} from '../../pods/index.ts';
import type { CgroupManager } from './cgroup-manager.ts';
import { type CgroupName, cgroupName } from './cgroup-name.ts';
import type { CgroupLimits, CgroupValues } from './cgroup-values.ts';
import { type PodCgroupSettings, podCgroupValues } from './pod-cgroup-values.ts';
import type { QosContainerManager } from './qos-container-manager.ts';

export interface PodContainerManagerDeps {
  readonly cgroups: CgroupManager;
  readonly qos: QosContainerManager;
  readonly settings: PodCgroupSettings;
  /** Whether the pod has exclusive CPUs; such a pod has no CPU quota. */
  readonly hasExclusiveCpus?: ((pod: Pod) => boolean) | undefined;
  readonly journal: PodJournal;
  readonly logger: Logger;
}

const classes: readonly QosClass[] = ['BestEffort', 'Burstable', 'Guaranteed'];
const podPrefix = 'pod';

/** Manages the pod cgroups, in which the runtime creates the container cgroups. */
export class PodContainerManager implements PodCgroups {
  readonly #deps: PodContainerManagerDeps;
  /**
   * Serializes the operations of one pod: a pod with the same UID may be created while its previous
   * cgroup is being removed.
   */
  readonly #lock = new KeyedMutex<PodUid>();

  constructor(deps: PodContainerManagerDeps) {
    this.#deps = deps;
  }

  nameOf(pod: Pod): CgroupName {
    const parent = this.#deps.qos.nameOf(qosClass(pod));
    return cgroupName(parent, `${podPrefix}${pod.metadata.uid}`);
  }

  /**
   * Returns the cgroup parent of the sandbox and the containers: a path relative to the root of
   * each controller tree.
   */
  cgroupParent(pod: Pod): string {
    return this.#deps.cgroups.path(this.nameOf(pod));
  }

  async exists(pod: Pod): Promise<boolean> {
    return await this.#deps.cgroups.exists(this.nameOf(pod));
  }

  /**
   * Creates the pod cgroup if it is missing; called at each sync before the sandbox is created.
   * Idempotent. Reports a failure as pod event and throws it.
   */
  async ensureExists(pod: Pod, signal: AbortSignal): Promise<'created' | 'there'> {
    const make = async () => ((await this.exists(pod)) ? 'there' : await this.#create(pod, signal));
    try {
      return await this.#lock.run(pod.metadata.uid, make, signal);
    } catch (error) {
      if (!signal.aborted) this.#reportFailure(pod, error);
      throw error;
    }
  }

  /** Returns the limits for the resources of this pod; -1 for no limit. */
  wanted(pod: Pod): CgroupLimits {
    const { cgroups, settings } = this.#deps;
    const { cpuShares = minShares, cpuQuotaUs = -1, memoryBytes = -1 } = this.#valuesOf(pod);
    const cpuPeriodUs = settings.cpuCfsQuotaPeriodUs;
    return cgroups.kept({ cpuShares, cpuQuotaUs, cpuPeriodUs, memoryBytes });
  }

  /** Reads the current limits of the pod cgroup from the kernel. */
  async current(pod: Pod): Promise<CgroupLimits> {
    return await this.#deps.cgroups.limits(this.nameOf(pod));
  }

  /** Sets some of the limits on the existing pod cgroup. Throws CGROUP_UPDATE. */
  async set(pod: Pod, limits: Partial<CgroupLimits>, signal: AbortSignal): Promise<void> {
    await this.#deps.cgroups.update(this.nameOf(pod), limits, signal);
  }

  async memoryUsage(pod: Pod): Promise<number> {
    return await this.#deps.cgroups.memoryUsage(this.nameOf(pod));
  }

  /**
   * Called when the CPU shares of a pod have changed, because the CPU shares of its QoS class
   * depend on the shares of its pods.
   */
  async changed(signal: AbortSignal): Promise<void> {
    await this.#deps.qos.update(signal);
  }

  /**
   * Kills all processes in the pod cgroup and removes it. A missing cgroup counts as success.
   * Throws CGROUP_BUSY.
   */
  async destroy(pod: Pod, signal: AbortSignal): Promise<void> {
    const destroy = () => this.#deps.cgroups.destroy(this.nameOf(pod), signal);
    await this.#lock.run(pod.metadata.uid, destroy, signal);
  }

  /**
   * Returns the pods with a cgroup in any tree; a pod may have several cgroups while its QoS class
   * changes.
   */
  async list(): Promise<ReadonlyMap<PodUid, readonly CgroupName[]>> {
    const { cgroups, qos } = this.#deps;
    const found = new Map<PodUid, CgroupName[]>();
    for (const quality of classes) {
      for (const name of await cgroups.children(qos.nameOf(quality))) {
        const uid = podOf(name);
        if (uid !== undefined) found.set(uid, [...(found.get(uid) ?? []), name]);
      }
    }
    return found;
  }

  /** Removes the cgroups of orphaned pods. Failures are logged and retried in the next round. */
  async removeOrphans(rules: OrphanRules, signal: AbortSignal): Promise<readonly PodUid[]> {
    const orphans = [...(await this.list())].filter(([uid]) => !rules.mayRun(uid));
    const gone = await Promise.all(
      orphans.map(async ([uid, names]) => {
        for (const name of names) if (!(await this.#removeOrphan(uid, name, rules, signal))) return [];
        return [uid];
      }),
    );
    return gone.flat();
  }

  async #create(pod: Pod, signal: AbortSignal): Promise<'created'> {
    const { cgroups, qos, journal, logger } = this.#deps;
    const name = this.nameOf(pod);
    // A failed update of the CPU weight of the QoS class does not prevent the creation of the pod
    // cgroup: the weight is corrected within a minute.
    await qos.update(signal).catch((error: unknown) => {
      signal.throwIfAborted();
      logger.error('Failed to update the CPU weight of Burstable pods', error);
    });
    const failures = await cgroups.create(name, this.#valuesOf(pod), signal);
    // A pod whose cgroup lacks a limit starts nevertheless, as with the Go kubelet; the missing
    // limit is reported.
    for (const failure of failures) {
      logger.error('Failed to set a value of the pod cgroup', failure, { pod: describePod(pod) });
      const message = `The pod runs without one of its limits: ${describeError(failure)}`;
      journal.step(pod.metadata.uid, { stage: 'cgroup', outcome: 'failed', message });
    }
    return 'created';
  }

  #valuesOf(pod: Pod): CgroupValues {
    const { settings, hasExclusiveCpus = () => false } = this.#deps;
    return podCgroupValues(pod, { ...settings, cpuCfsQuota: settings.cpuCfsQuota && !hasExclusiveCpus(pod) });
  }

  #reportFailure(pod: Pod, error: unknown): void {
    const message = `Cannot create the cgroup of the pod: ${describeError(error)}`;
    this.#deps.journal.event(pod, { type: 'Warning', reason: 'FailedCreatePodContainer', message });
  }

  /** Removes the cgroup of an orphaned pod; returns whether it was removed. */
  async #removeOrphan(
    uid: PodUid,
    name: CgroupName,
    rules: OrphanRules,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { cgroups, logger } = this.#deps;
    try {
      using _held = await this.#lock.acquire(uid, signal);
      // The pod may have been created again after the list of orphaned pods was read.
      if (rules.mayRun(uid)) return false;
      if (!(await rules.hasVolumes(uid))) return await cgroups.destroy(name, signal).then(() => true);
      await cgroups.setMinimumCpu(name, signal);
    } catch (error) {
      signal.throwIfAborted();
      logger.error('Failed to remove the cgroup of an orphaned pod', error, {
        podUid: uid,
        cgroup: cgroups.path(name),
      });
    }
    return false;
  }
}

function podOf(name: CgroupName): PodUid | undefined {
  const last = name.at(-1) ?? '';
  return last.startsWith(podPrefix) && last.length > podPrefix.length
    ? podUid(last.slice(podPrefix.length))
    : undefined;
}

/**
 * The state of the pods that own the found pod cgroups; it decides whether a cgroup is orphaned.
 */
export interface OrphanRules {
  mayRun(uid: PodUid): boolean;
  /**
   * Whether the pod still has mounted volumes. Its cgroup is then kept, because the memory of a
   * tmpfs would otherwise be charged to kubepods.
   */
  hasVolumes(uid: PodUid): boolean | Promise<boolean>;
}

/** The operations on pod cgroups that the pod sync uses. */
export interface PodCgroups {
  /**
   * Returns the cgroup parent of the sandbox and the containers, a path relative to the root of
   * each controller tree; empty if pod cgroups are disabled.
   */
  cgroupParent(pod: Pod): string;
  /** Creates the pod cgroup if it does not exist. Idempotent. */
  ensureExists(pod: Pod, signal: AbortSignal): Promise<'created' | 'there'>;
  destroy(pod: Pod, signal: AbortSignal): Promise<void>;
  /** Returns all pods that have a cgroup. */
  list(): Promise<ReadonlyMap<PodUid, unknown>>;
  removeOrphans(rules: OrphanRules, signal: AbortSignal): Promise<readonly PodUid[]>;
}

/** Used if pod cgroups are disabled: the runtime chooses the cgroup of each container. */
export const noPodCgroups: PodCgroups = {
  cgroupParent: () => '',
  ensureExists: async () => 'there',
  destroy: async () => {},
  list: async () => new Map(),
  removeOrphans: async () => [],
};
