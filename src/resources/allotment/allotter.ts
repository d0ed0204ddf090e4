import type { Clock, Logger } from '../../lib/index.ts';
import { describePod, type Pod, type PodUid } from '../../pods/index.ts';
import type { Allotter, Refusal } from '../admission/index.ts';
import type { CpuManager } from '../cpu/cpu-manager.ts';
import type { HintProvider } from '../topology/hint-provider.ts';
import type { TopologyManager } from '../topology/topology-manager.ts';

/** What a container is made with. */
export interface PlacementGrants {
  readonly exclusiveCpus?: boolean;
  readonly cpusetCpus?: string;
  readonly cpusetMems?: string;
}

/** Who gives pods their places on the machine, as the kubelet sees it. */
export interface Allotments extends Allotter {
  /** Goes on from what an earlier kubelet has noted; before anything else is asked. */
  open(signal: AbortSignal): Promise<void>;
  /** One that lives here since before this kubelet has its share, or gets one where that can be; it is not refused. */
  adopt(pod: Pod): void;
  /** For a container that is about to be made. */
  grantsFor(uid: PodUid, container: string): PlacementGrants;
  hasExclusiveCpus(pod: Pod): boolean;
  /** Loops to be run beside, by name. */
  loops(): Readonly<Record<string, { run(signal: AbortSignal): Promise<void> }>>;
}

export interface MachineAllotterDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly topology: TopologyManager;
  readonly providers: readonly HintProvider[];
  readonly cpu: CpuManager | undefined;
  /** Whether any other pod that has something is about to end. */
  readonly isAnyEnding: (besides: Pod) => boolean;
}

/** How long a pod waits for what others that are ending will give back. */
const patienceMs = 30_000;
const lookAgainMs = 1_000;

/** What a pod got stays its own until it is inactive. */
export class MachineAllotter implements Allotments {
  readonly #deps: MachineAllotterDeps;
  /** Whose adoption is under way. */
  readonly #adopting = new Map<PodUid, Promise<void>>();
  readonly #ended = new AbortController();

  constructor(deps: MachineAllotterDeps) {
    this.#deps = deps;
  }

  async open(signal: AbortSignal): Promise<void> {
    await this.#deps.cpu?.open(signal);
  }

  isAskedBy(pod: Pod): boolean {
    return this.#deps.providers.some(({ concerns }) => concerns?.(pod) ?? true);
  }

  async allot(pod: Pod, signal: AbortSignal): Promise<Refusal | undefined> {
    const { clock, topology, isAnyEnding } = this.#deps;
    const untilMs = clock.monotonicMs() + patienceMs;
    for (;;) {
      const refusal = await topology.admit(pod, signal);
      if (refusal === undefined || !isAnyEnding(pod) || clock.monotonicMs() >= untilMs) return refusal;
      await clock.sleep(lookAgainMs, signal);
    }
  }

  adopt(pod: Pod): void {
    const { uid } = pod.metadata;
    if (!this.isAskedBy(pod) || this.#adopting.has(uid)) return;
    const work = this.#adopt(pod).finally(() => this.#adopting.delete(uid));
    this.#adopting.set(uid, work);
  }

  grantsFor(uid: PodUid, container: string): PlacementGrants {
    const { cpu } = this.#deps;
    if (cpu === undefined) return {};
    return {
      exclusiveCpus: cpu.exclusiveCpus(uid, container).size > 0,
      cpusetCpus: cpu.cpusetFor(uid, container),
    };
  }

  hasExclusiveCpus({ metadata: { uid }, spec }: Pod): boolean {
    const { cpu } = this.#deps;
    const containers = [...(spec.initContainers ?? []), ...spec.containers];
    return cpu !== undefined && containers.some(({ name }) => cpu.exclusiveCpus(uid, name).size > 0);
  }

  loops(): ReturnType<Allotments['loops']> {
    const { cpu } = this.#deps;
    return cpu === undefined ? {} : { 'CPU manager': cpu };
  }

  async #adopt(pod: Pod): Promise<void> {
    const { topology, logger } = this.#deps;
    try {
      const refusal = await topology.admit(pod, this.#ended.signal);
      if (refusal === undefined) return;
      const fields = { pod: describePod(pod), why: refusal.message };
      logger.warn('A pod that runs cannot have what it asks for to itself: it goes on as it is', fields);
    } catch (error) {
      logger.error('Cannot give a pod that runs what it asks for to itself', error, {
        pod: describePod(pod),
      });
    }
  }
}
