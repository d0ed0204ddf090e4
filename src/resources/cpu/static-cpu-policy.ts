import type { Container } from '../../kinds/index.ts';
import { KubelingError } from '../../lib/index.ts';
import {
  hasPodLevelResources,
  initContainersOf,
  isSidecar,
  milliCpuOf,
  type Pod,
  qosClass,
  readResources,
} from '../../pods/index.ts';
import type { Rejection } from '../admission/index.ts';
import type { TopologyHint, TopologyHints } from '../topology/hint-provider.ts';
import { numaChoices } from '../topology/hint-provider.ts';
import { distributeCpus, type TakeCpusOptions, takeCpus } from './cpu-assignment.ts';
import { type CpuSet, formatCpuSet, noCpus } from './cpu-set.ts';
import { assignedTo, type CpuState, withAssignment } from './cpu-state.ts';
import type { CpuTopology } from './cpu-topology.ts';

/** The options of the static policy, with the names of cpuManagerPolicyOptions. */
export interface CpuPolicyOptions {
  readonly fullPcpusOnly: boolean;
  readonly strictCpuReservation: boolean;
  readonly preferAlignByUncoreCache: boolean;
  readonly distributeAcrossNuma: boolean;
  readonly alignBySocket: boolean;
  readonly distributeAcrossCores: boolean;
}

export interface StaticCpuPolicyDeps {
  readonly groups: CpuTopology;
  /**
   * The number of reserved CPUs and the CPUs themselves; if `cpus` is undefined, CPUs of the first
   * cores are reserved.
   */
  readonly reserved: { readonly count: number; readonly cpus: CpuSet | undefined };
  readonly options: CpuPolicyOptions;
}

export type CpuAllocation =
  | { readonly kind: 'shared' }
  | { readonly kind: 'exclusive'; readonly state: CpuState; readonly cpus: CpuSet }
  | { readonly kind: 'refused'; readonly rejection: Rejection };

/**
 * The static policy: Guaranteed pods get exclusive CPUs for containers with integer requests. Pure.
 */
export class StaticCpuPolicy {
  readonly reserved: CpuSet;
  /** The reserved CPUs together with all other threads of their cores. */
  readonly #reservedCores: CpuSet;
  readonly #groups: CpuTopology;
  readonly #options: CpuPolicyOptions;
  readonly #rules: TakeCpusOptions;

  /**
   * Creates the static policy. Throws ALLOCATION_CONFIG if the machine does not support the
   * options.
   */
  constructor({ groups, reserved, options }: StaticCpuPolicyDeps) {
    this.#groups = groups;
    this.#options = options;
    this.#rules = {
      threads: options.distributeAcrossCores ? 'across-cores' : 'packed',
      uncoreCaches: options.preferAlignByUncoreCache ? 'aligned' : 'ignored',
    };
    rejectImpossible(groups, reserved, options);
    this.reserved = reserved.cpus ?? this.#take(groups.all, reserved.count);
    this.#reservedCores = groups.cpusInAll('core', groups.idsWith('core', this.reserved));
  }

  /** Returns the state in which no CPU is assigned exclusively. */
  get initialState(): CpuState {
    return { defaultCpuSet: this.#pool, assignments: new Map() };
  }

  /** Returns all CPUs that can be assigned exclusively, assigned or not. */
  get allocatable(): CpuSet {
    return this.#groups.all.difference(this.reserved);
  }

  get #pool(): CpuSet {
    return this.#options.strictCpuReservation ? this.allocatable : this.#groups.all;
  }

  /** Returns the CPUs that can be assigned exclusively now. */
  available({ defaultCpuSet }: CpuState): CpuSet {
    return defaultCpuSet.difference(this.reserved);
  }

  /**
   * Returns why restored assignments do not match this machine and these options; undefined if they
   * match.
   */
  problemOf(state: CpuState): string | undefined {
    const { defaultCpuSet, assignments } = state;
    if (defaultCpuSet.size === 0 && assignments.size > 0) return 'default cpuset cannot be empty';
    const reserved = this.#reservationProblem(defaultCpuSet);
    if (reserved !== undefined) return reserved;
    let known = defaultCpuSet;
    for (const [uid, own] of assignments) {
      for (const [name, cpus] of own) {
        if (!defaultCpuSet.isDisjointFrom(cpus))
          return `pod: ${uid}, container: ${name} cpuset: "${formatCpuSet(cpus)}" overlaps with default cpuset "${formatCpuSet(defaultCpuSet)}"`;
        known = known.union(cpus);
      }
    }
    if (known.symmetricDifference(this.#pool).size === 0) return undefined;
    return `current set of available CPUs "${formatCpuSet(this.#pool)}" doesn't match with CPUs in state "${formatCpuSet(known)}"`;
  }

  #reservationProblem(defaultCpuSet: CpuSet): string | undefined {
    const inDefault = this.reserved.intersection(defaultCpuSet);
    if (!this.#options.strictCpuReservation)
      return inDefault.size === this.reserved.size
        ? undefined
        : `not all reserved cpus: "${formatCpuSet(this.reserved)}" are present in defaultCpuSet: "${formatCpuSet(defaultCpuSet)}"`;
    return inDefault.size === 0
      ? undefined
      : `some of strictly reserved cpus: "${formatCpuSet(inDefault)}" are present in defaultCpuSet: "${formatCpuSet(defaultCpuSet)}"`;
  }

  /**
   * Allocates the exclusive CPUs of a container. Throws ALLOCATION_FAILED if there are not enough
   * CPUs.
   */
  allocate(state: CpuState, pod: Pod, container: Container, affinity: TopologyHint): CpuAllocation {
    const count = exclusiveCpuCount(pod, container);
    if (count === 0 || hasPodLevelResources(pod)) return { kind: 'shared' };
    const present = assignedTo(state, pod.metadata.uid, container.name);
    if (present !== undefined) return { kind: 'exclusive', state, cpus: present };
    const rejection = this.#coreRejection(state, count);
    if (rejection !== undefined) return { kind: 'refused', rejection };
    const free = this.available(state).union(reusableCpus(state, pod));
    const cpus = this.#takeNear(free, count, affinity.numaNodes);
    return { kind: 'exclusive', cpus, state: withAssignment(state, pod.metadata.uid, container.name, cpus) };
  }

  hints(state: CpuState, pod: Pod, container: Container): TopologyHints | undefined {
    const count = exclusiveCpuCount(pod, container);
    if (count === 0 || hasPodLevelResources(pod)) return undefined;
    const present = assignedTo(state, pod.metadata.uid, container.name);
    if (present === undefined) return this.#hints(this.available(state), reusableCpus(state, pod), count);
    return present.size === count ? this.#hints(present, noCpus, count) : impossible;
  }

  podHints(state: CpuState, pod: Pod): TopologyHints | undefined {
    const count = podCpuCount(pod);
    if (count === 0 || hasPodLevelResources(pod)) return undefined;
    const { uid } = pod.metadata;
    let assigned: CpuSet = noCpus;
    for (const container of [...initContainersOf(pod), ...pod.spec.containers]) {
      const present = assignedTo(state, uid, container.name);
      if (present === undefined) continue;
      if (present.size !== exclusiveCpuCount(pod, container)) return impossible;
      assigned = assigned.union(present);
    }
    if (assigned.size === count) return this.#hints(assigned, noCpus, count);
    return this.#hints(this.available(state), reusableCpus(state, pod).union(assigned), count);
  }

  /** Returns all sets of NUMA nodes that contain the CPUs to reuse and have enough free CPUs. */
  #hints(available: CpuSet, reusable: CpuSet, count: number): TopologyHints {
    const groups = this.#groups;
    const numaNodes = groups.ids('numaNode');
    const usable = available.union(reusable);
    const found: (readonly number[])[] = [];
    let fewest = numaNodes.length;
    for (const chosen of numaChoices(numaNodes)) {
      const cpus = groups.cpusInAll('numaNode', chosen);
      if (cpus.size >= count) fewest = Math.min(fewest, chosen.length);
      if (reusable.isSubsetOf(cpus) && cpus.intersection(usable).size >= count) found.push(chosen);
    }
    const isPreferred = (chosen: readonly number[]) =>
      chosen.length === fewest || (this.#options.alignBySocket && this.#isOnFewestSockets(chosen, fewest));
    return new Map([['cpu', found.map((chosen) => ({ numaNodes: chosen, preferred: isPreferred(chosen) }))]]);
  }

  #isOnFewestSockets(chosen: readonly number[], fewestNodes: number): boolean {
    const groups = this.#groups;
    const perSocket = Math.floor(groups.count('numaNode') / groups.count('socket'));
    if (perSocket === 0) return false;
    const sockets = groups.idsWith('socket', groups.cpusInAll('numaNode', chosen));
    return sockets.length === Math.ceil(fewestNodes / perSocket);
  }

  #coreRejection(state: CpuState, count: number): Rejection | undefined {
    if (!this.#options.fullPcpusOnly) return undefined;
    const { cpusPerCore } = this.#groups;
    const reason = 'SMTAlignmentError';
    if (count % cpusPerCore !== 0)
      return {
        reason,
        message: `SMT Alignment Error: requested ${count} cpus not multiple cpus per core = ${cpusPerCore}`,
      };
    const free = state.defaultCpuSet.difference(this.#reservedCores).size;
    if (count <= free) return undefined;
    const message = `SMT Alignment Error: not enough free physical CPUs: available physical CPUs = ${free}, requested CPUs = ${count}, CPUs per core = ${cpusPerCore}`;
    return { reason, message };
  }

  /** Takes as many CPUs as possible from the given NUMA nodes, and the rest from any NUMA node. */
  #takeNear(free: CpuSet, count: number, numaNodes: readonly number[] | undefined): CpuSet {
    if (numaNodes === undefined) return this.#take(free, count);
    const near = this.#near(numaNodes).intersection(free);
    const aligned = this.#take(near, Math.min(count, near.size));
    return aligned.union(this.#take(free.difference(aligned), count - aligned.size));
  }

  #near(numaNodes: readonly number[]): CpuSet {
    const groups = this.#groups;
    const cpus = groups.cpusInAll('numaNode', numaNodes);
    if (!this.#options.alignBySocket) return cpus;
    return groups.cpusInAll('socket', groups.idsWith('socket', cpus));
  }

  #take(free: CpuSet, count: number): CpuSet {
    if (!this.#options.distributeAcrossNuma) return takeCpus(this.#groups, free, count, this.#rules);
    const unit = this.#options.fullPcpusOnly ? this.#groups.cpusPerCore : 1;
    return distributeCpus(this.#groups, free, count, unit, this.#rules);
  }
}

const impossible: TopologyHints = new Map([['cpu', []]]);

function rejectImpossible(
  groups: CpuTopology,
  { count, cpus }: StaticCpuPolicyDeps['reserved'],
  { alignBySocket }: CpuPolicyOptions,
): void {
  const fail = (message: string) => {
    throw new KubelingError('ALLOCATION_CONFIG', message);
  };
  if (count <= 0)
    fail(
      'the static CPU manager policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero',
    );
  if (cpus !== undefined && !cpus.isSubsetOf(groups.all))
    fail(
      `Cannot reserve the CPUs ${formatCpuSet(cpus)} as the machine has ${formatCpuSet(groups.all)}: correct reservedSystemCPUs`,
    );
  if (count > groups.all.size)
    fail(`unable to reserve the required amount of CPUs: ${count} of ${groups.all.size}`);
  if (alignBySocket && groups.count('socket') > groups.count('numaNode'))
    fail(
      'Align by socket is not compatible with hardware where number of sockets are more than number of NUMA',
    );
}

/** Returns the number of exclusive CPUs of the container; 0 if it uses the shared pool. */
export function exclusiveCpuCount(pod: Pod, container: Container): number {
  if (qosClass(pod) !== 'Guaranteed') return 0;
  const milli = Number(milliCpuOf(readResources(container.resources?.requests)));
  return milli % 1_000 === 0 ? milli / 1_000 : 0;
}

/**
 * Returns the maximum number of exclusive CPUs that containers of the pod need at the same time.
 */
function podCpuCount(pod: Pod): number {
  let sidecars = 0;
  let initializing = 0;
  for (const container of initContainersOf(pod)) {
    const count = exclusiveCpuCount(pod, container);
    if (isSidecar(container)) sidecars += count;
    else initializing = Math.max(initializing, sidecars + count);
  }
  const running = pod.spec.containers.reduce((sum, container) => sum + exclusiveCpuCount(pod, container), 0);
  return Math.max(initializing, sidecars + running);
}

/**
 * Returns the CPUs of exited init containers, which the next containers can reuse, except those
 * that a sidecar uses.
 */
function reusableCpus(state: CpuState, pod: Pod): CpuSet {
  const own = (container: Container) => assignedTo(state, pod.metadata.uid, container.name) ?? noCpus;
  let reusable: CpuSet = noCpus;
  for (const container of initContainersOf(pod))
    reusable = isSidecar(container) ? reusable.difference(own(container)) : reusable.union(own(container));
  return pod.spec.containers.reduce((left, container) => left.difference(own(container)), reusable);
}
