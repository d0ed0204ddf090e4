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
  /** Pods with processors of their own are not slowed down by a quota. */
  readonly hasExclusiveCpus?: ((pod: Pod) => boolean) | undefined;
  readonly journal: PodJournal;
  readonly logger: Logger;
}

const classes: readonly QosClass[] = ['BestEffort', 'Burstable', 'Guaranteed'];
const podPrefix = 'pod';

/** The cgroup of each pod, in which the runtime puts those of its containers. */
export class PodContainerManager implements PodCgroups {
  readonly #deps: PodContainerManagerDeps;
  /** A pod of the same id may come again while the last one's cgroup is being removed. */
  readonly #lock = new KeyedMutex<PodUid>();

  constructor(deps: PodContainerManagerDeps) {
    this.#deps = deps;
  }

  nameOf(pod: Pod): CgroupName {
    const parent = this.#deps.qos.nameOf(qosClass(pod));
    return cgroupName(parent, `${podPrefix}${pod.metadata.uid}`);
  }

  /** The parent for the pod's sandbox and containers: the path below each tree of cgroups. */
  cgroupParent(pod: Pod): string {
    return this.#deps.cgroups.path(this.nameOf(pod));
  }

  async exists(pod: Pod): Promise<boolean> {
    return await this.#deps.cgroups.exists(this.nameOf(pod));
  }

  /**
   * Makes the pod's cgroup unless it is there; to be called in each sync before anything of the pod is made. May be
   * called again at any time. Reports a failure as the pod's event and throws it.
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

  /** What the pod with these resources is to be held to; -1 for no limit. */
  wanted(pod: Pod): CgroupLimits {
    const { cgroups, settings } = this.#deps;
    const { cpuShares = minShares, cpuQuotaUs = -1, memoryBytes = -1 } = this.#valuesOf(pod);
    const cpuPeriodUs = settings.cpuCfsQuotaPeriodUs;
    return cgroups.kept({ cpuShares, cpuQuotaUs, cpuPeriodUs, memoryBytes });
  }

  /** What it is held to now. */
  async current(pod: Pod): Promise<CgroupLimits> {
    return await this.#deps.cgroups.limits(this.nameOf(pod));
  }

  /** Sets some of them on the cgroup that is there. Throws CGROUP_UPDATE. */
  async set(pod: Pod, limits: Partial<CgroupLimits>, signal: AbortSignal): Promise<void> {
    await this.#deps.cgroups.update(this.nameOf(pod), limits, signal);
  }

  async memoryUsage(pod: Pod): Promise<number> {
    return await this.#deps.cgroups.memoryUsage(this.nameOf(pod));
  }

  /** A pod has other shares than before: so has its class as a whole. */
  async changed(signal: AbortSignal): Promise<void> {
    await this.#deps.qos.update(signal);
  }

  /** Kills whatever is left in the pod's cgroup and removes it. Not there is done. Throws CGROUP_BUSY. */
  async destroy(pod: Pod, signal: AbortSignal): Promise<void> {
    const destroy = () => this.#deps.cgroups.destroy(this.nameOf(pod), signal);
    await this.#lock.run(pod.metadata.uid, destroy, signal);
  }

  /** Every pod that has a cgroup in any tree. A pod may have several while it changes its class. */
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

  /** Removes the cgroups of pods that are gone. What fails is logged; the next round tries again. */
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
    // A wrong weight of the whole class is mended within a minute; it is no reason to keep the pod waiting.
    await qos.update(signal).catch((error: unknown) => {
      signal.throwIfAborted();
      logger.error('Cannot give Burstable pods the weight they ask for', error);
    });
    const failures = await cgroups.create(name, this.#valuesOf(pod), signal);
    // A pod without one of its limits runs, as it would under any kubelet; but nobody should have to guess it.
    for (const failure of failures) {
      logger.error('The cgroup of a pod lacks one of its values', failure, { pod: describePod(pod) });
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
    const message = `Cannot make the cgroup of the pod: ${describeError(error)}`;
    this.#deps.journal.event(pod, { type: 'Warning', reason: 'FailedCreatePodContainer', message });
  }

  /** Answers whether it is gone. */
  async #removeOrphan(
    uid: PodUid,
    name: CgroupName,
    rules: OrphanRules,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { cgroups, logger } = this.#deps;
    try {
      using _held = await this.#lock.acquire(uid, signal);
      // It may have come again since the list was read.
      if (rules.mayRun(uid)) return false;
      if (!(await rules.hasVolumes(uid))) return await cgroups.destroy(name, signal).then(() => true);
      await cgroups.setMinimumCpu(name, signal);
    } catch (error) {
      signal.throwIfAborted();
      logger.error('Cannot remove the cgroup of a pod that is gone', error, {
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

/** What housekeeping knows about the pods behind the cgroups it finds. */
export interface OrphanRules {
  mayRun(uid: PodUid): boolean;
  /** While volumes are mounted the cgroup stays: what a tmpfs holds would else be charged to all other pods. */
  hasVolumes(uid: PodUid): boolean | Promise<boolean>;
}

/** The cgroups of pods, as whoever runs pods needs them. */
export interface PodCgroups {
  /** The parent for the pod's sandbox and containers: the path below each tree of cgroups; empty for none. */
  cgroupParent(pod: Pod): string;
  /** May be called again at any time. */
  ensureExists(pod: Pod, signal: AbortSignal): Promise<'created' | 'there'>;
  destroy(pod: Pod, signal: AbortSignal): Promise<void>;
  /** Every pod that has a cgroup. */
  list(): Promise<ReadonlyMap<PodUid, unknown>>;
  removeOrphans(rules: OrphanRules, signal: AbortSignal): Promise<readonly PodUid[]>;
}

/** For a node that is told to make none: containers go where the runtime puts them. */
export const noPodCgroups: PodCgroups = {
  cgroupParent: () => '',
  ensureExists: async () => 'there',
  destroy: async () => {},
  list: async () => new Map(),
  removeOrphans: async () => [],
};
