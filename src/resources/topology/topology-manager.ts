import type { Container } from '../../kinds/index.ts';
import { type Clock, describeError, KeyedMutex, type Logger } from '../../lib/index.ts';
import { describePod, initContainersOf, type Pod } from '../../pods/index.ts';
import type { Rejection } from '../admission/index.ts';
import { type HintProvider, type TopologyHint, type TopologyHints, unaligned } from './hint-provider.ts';
import type { MergedHint } from './merge-hints.ts';

/** A topology policy: how it merges the hints of all providers, and for which scope. */
export interface Alignment {
  readonly scope: 'container' | 'pod';
  readonly merge: (provided: readonly (TopologyHints | undefined)[]) => MergedHint;
  /** Whether each admitted pod gets all resources from one NUMA node. */
  readonly isGuaranteed: boolean;
}

export interface TopologyManagerDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly providers: () => readonly HintProvider[];
  /** The topology policy; if undefined, no hints are requested. */
  readonly alignment?: Alignment | undefined;
  readonly observer?: TopologyObserver | undefined;
}

/** Observes topology decisions for metrics. Never throws. */
export interface TopologyObserver {
  admitted(durationMs: number): void;
  refused(durationMs: number): void;
  aligned(scope: Alignment['scope'], outcome: 'done' | 'failed'): void;
}

const affinityError: Rejection = {
  reason: 'TopologyAffinityError',
  message: 'Resources cannot be allocated with Topology locality',
};

/**
 * Allocates topology-aware resources of pods; all resources come from the same NUMA nodes if the
 * policy requires that.
 */
export class TopologyManager {
  readonly #deps: TopologyManagerDeps;
  readonly #lock = new KeyedMutex<'allocation'>();

  constructor(deps: TopologyManagerDeps) {
    this.#deps = deps;
  }

  /**
   * Admits one pod at a time in the order of the calls. Returns why the pod is rejected; resources
   * allocated before a rejection stay allocated until the pod is inactive. Idempotent. Throws only
   * when aborted.
   */
  async admit(pod: Pod, signal: AbortSignal): Promise<Rejection | undefined> {
    for (const provider of this.#deps.providers()) await provider.ready?.(pod, signal);
    using _turn = await this.#lock.acquire('allocation', signal);
    const { clock, observer } = this.#deps;
    const before = clock.monotonicMs();
    const rejection = await this.#admit(pod, signal);
    const durationMs = clock.monotonicMs() - before;
    if (rejection === undefined) observer?.admitted(durationMs);
    else observer?.refused(durationMs);
    return rejection;
  }

  async #admit(pod: Pod, signal: AbortSignal): Promise<Rejection | undefined> {
    const { alignment } = this.#deps;
    const containers = [...initContainersOf(pod), ...pod.spec.containers];
    if (alignment === undefined) return await this.#allocateAll(pod, containers, () => unaligned, signal);
    if (alignment.scope === 'pod') return await this.#admitPodScope(pod, containers, alignment, signal);
    return await this.#allocateAll(
      pod,
      containers,
      (container) => this.#decide(alignment, (provider) => provider.getTopologyHints(pod, container)),
      signal,
    );
  }

  async #admitPodScope(
    pod: Pod,
    containers: readonly Container[],
    alignment: Alignment,
    signal: AbortSignal,
  ): Promise<Rejection | undefined> {
    const hint = this.#decide(alignment, (provider) => provider.getPodTopologyHints(pod));
    if (hint === undefined) return affinityError;
    const rejection = await this.#allocateAll(pod, containers, () => hint, signal);
    if (rejection === undefined) this.#count(alignment, 'done');
    return rejection;
  }

  /** Returns the merged hint; undefined if the policy rejects it. */
  #decide(
    alignment: Alignment,
    hintsOf: (provider: HintProvider) => TopologyHints | undefined,
  ): TopologyHint | undefined {
    const { hint, admit } = alignment.merge(this.#deps.providers().map(hintsOf));
    if (admit) return hint;
    this.#count(alignment, 'failed');
    return undefined;
  }

  async #allocateAll(
    pod: Pod,
    containers: readonly Container[],
    affinityOf: (container: Container) => TopologyHint | undefined,
    signal: AbortSignal,
  ): Promise<Rejection | undefined> {
    const { alignment } = this.#deps;
    for (const container of containers) {
      const affinity = affinityOf(container);
      if (affinity === undefined) return affinityError;
      const rejection = await this.#allocate(pod, container, affinity, signal);
      if (rejection !== undefined) return rejection;
      if (alignment?.scope === 'container') this.#count(alignment, 'done');
    }
    return undefined;
  }

  async #allocate(
    pod: Pod,
    container: Container,
    affinity: TopologyHint,
    signal: AbortSignal,
  ): Promise<Rejection | undefined> {
    try {
      for (const provider of this.#deps.providers()) {
        const rejection = await provider.allocate(pod, container, { affinity, signal });
        if (rejection !== undefined) return rejection;
      }
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      const fields = { pod: describePod(pod), container: container.name };
      this.#deps.logger.error('Failed to allocate container resources', error, fields);
      const message = `Allocate failed due to ${describeError(error)}, which is unexpected`;
      return { reason: 'UnexpectedAdmissionError', message };
    }
  }

  #count({ scope, isGuaranteed }: Alignment, outcome: 'done' | 'failed'): void {
    if (isGuaranteed) this.#deps.observer?.aligned(scope, outcome);
  }
}
