import type { ContainerImage } from '../kinds/index.ts';
import type { Pod } from '../pods/index.ts';
import { problemsOfPod, type SourceProblem } from '../sources/index.ts';
import type { Background } from './background.ts';
import { livenessChecks, readinessChecks } from './health.ts';
import type { ConnectedNode } from './kubelet-deps.ts';
import type { KubeletControl, KubeletParts } from './stages/control.ts';

/** The state of a kubelet that its servers and the commands read. */
export class KubeletEndpoints {
  /** The liveness and readiness checks. */
  readonly health;
  readonly flights;
  readonly node;
  readonly running;
  readonly streams;
  readonly probes;
  readonly logFollowers;
  readonly statistics;
  readonly nodeIps;
  readonly #parts: KubeletParts;
  readonly #control: KubeletControl;
  readonly #connectedNode: ConnectedNode | undefined;

  constructor(
    parts: KubeletParts,
    control: KubeletControl,
    node: ConnectedNode | undefined,
    background: Background,
  ) {
    const { state, runtime } = parts;
    const source = {
      clock: state.deps.clock,
      syncFrequencyMs: state.settings.syncFrequencyMs,
      loop: control.loop,
      sources: state.config,
      runtime: state.runtimeState,
      pleg: runtime.pleg,
      background,
    };
    this.health = { live: livenessChecks(source), ready: readinessChecks(source) };
    this.flights = state.flights;
    this.node = state.node;
    this.running = runtime.running;
    this.streams = runtime.streams;
    this.probes = runtime.probes;
    this.logFollowers = runtime.logFollowers;
    this.statistics = runtime.statistics;
    this.nodeIps = state.nodeIps;
    this.#parts = parts;
    this.#control = control;
    this.#connectedNode = node;
  }

  /**
   * All images of the node, also those that the Node object leaves out; empty on a node without a
   * cluster.
   */
  images(): readonly ContainerImage[] {
    return this.#connectedNode?.images ?? [];
  }

  /** The desired pods with their current status. */
  podsWithStatus(): readonly Pod[] {
    return this.#parts.state.facts.podsWithStatus();
  }

  /**
   * The desired pods with a status that is persisted: resolves after the checkpoints are written,
   * so that a status which a client has read survives a crash.
   */
  async podsToReport(): Promise<readonly Pod[]> {
    const pods = this.podsWithStatus();
    await this.#parts.state.checkpoints.flushed();
    return pods;
  }

  sourceProblems(): readonly SourceProblem[] {
    return [...this.#parts.state.sources.values()].flatMap((source) => source.problems());
  }

  /** The problems of the manifests that define this pod, searched by any of its names. */
  sourceProblemsOf(key: string): readonly SourceProblem[] {
    const stories = this.flights.find(key);
    const names = new Set(stories.map(({ fullName }) => fullName));
    const isCalled = (fullName: string) => names.has(fullName) || this.flights.isCalled(fullName, key);
    return problemsOfPod(this.sourceProblems(), { isCalled, isKnown: stories.length > 0 });
  }

  /** The path of a pod's cgroup below each cgroup hierarchy; empty if the pod has no cgroup. */
  cgroupOf(pod: Pod): string {
    return this.#parts.resources.podCgroups.cgroupParent(pod);
  }

  /** Counts the entries kept in memory for pods: all zero on an idle node without pods. */
  entryCounts(): Readonly<Record<string, number>> {
    const { state, resources, volumes, runtime } = this.#parts;
    const { workers, held } = this.#control;
    const { pendingResizes, orphanDirectories } = held();
    return {
      ...prefixed('workers', workers.sizes),
      ...prefixed('pleg', runtime.pleg.remembered),
      ...prefixed('runtime', runtime.runtime.pending()),
      ...prefixed('probes', runtime.probes.held()),
      ...prefixed('resources', { ...state.allocated.held(), pending: pendingResizes }),
      statuses: state.statuses.size,
      directories: orphanDirectories,
      notes: state.checkpoints.size,
      users: runtime.users.size,
      claims: state.deps.cluster?.claims.size ?? 0,
      drivers: volumes.csi?.size ?? 0,
      ...resources.held(),
      pods: state.pods.getPods().length,
    };
  }
}

function prefixed(part: string, counts: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(counts).map(([what, count]) => [`${part}.${what}`, count]));
}
