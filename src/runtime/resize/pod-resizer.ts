import type { CriClient } from '../../cri/index.ts';
import type { ResourceRequirements } from '../../kinds/index.ts';
import { type Clock, describeError, KubelingError, type Logger, LruMap } from '../../lib/index.ts';
import {
  describePod,
  type ObservedPod,
  type Pod,
  type PodAllocation,
  sameResources,
} from '../../pods/index.ts';
import type { PodPlanner } from '../plan/pod-planner.ts';
import type { SyncAction } from '../sync/sync-result.ts';
import { mayHaveTakenEffect } from '../sync/unknown-outcome.ts';
import type { ActuatedResources } from './actuated-resources.ts';
import { isMore, type PodLimits, type PodLimitsAccess, sandboxLimits } from './pod-limits.ts';
import { amountOf, type ContainerUpdate, type ResizedResource, type ResizePlan } from './resize-plan.ts';

export interface PodResizerDeps {
  readonly cri: Pick<CriClient, 'updateContainerResources' | 'updatePodSandboxResources' | 'containerStats'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly planner: Pick<PodPlanner, 'updatedResources' | 'overheadResources'>;
  readonly limits: PodLimitsAccess;
  readonly actuated: ActuatedResources;
  /** Resolves when the pod's allocation is persisted, which must precede the resize. */
  readonly allocationPersisted: () => Promise<void>;
  readonly observe?: ((outcome: { readonly ms: number; readonly success: boolean }) => void) | undefined;
}

export interface ResizeRequest {
  readonly pod: Pod;
  readonly plan: ResizePlan;
  /** Id of the pod's sandbox; empty when a new sandbox is about to be created. */
  readonly sandboxId: string;
  /** Last applied resources, from which the plan was computed. */
  readonly actuated: PodAllocation;
}

/**
 * An update without a response may still take effect within this time, the maximum duration of a
 * runtime call.
 */
const settledAfterMs = 120_000;
const maxUnconfirmed = 1_000;

/**
 * Resizes running pods in place: memory before CPU; the pod's cgroup is raised before its
 * containers and lowered after them. A partly failed resize is completed by the next sync.
 */
export class PodResizer {
  readonly #deps: PodResizerDeps;
  /**
   * Times of updates with unknown outcome, by container id. Such an update may take effect late and
   * undo a newer one.
   */
  readonly #unconfirmed = new LruMap<string, number>({ capacity: maxUnconfirmed });
  /**
   * Containers whose resources this process has applied again after a resize of their pod. That is
   * necessary once, because the outcome of updates by a previous kubelet process is not known.
   */
  readonly #checked = new LruMap<string, true>({ capacity: maxUnconfirmed });
  /** Wall-clock time at which this process started, compared with the runtime's creation times. */
  readonly #beganMs: number;

  constructor(deps: PodResizerDeps) {
    this.#deps = deps;
    this.#beganMs = deps.clock.now();
  }

  /**
   * Reapplies resources that an update with unknown outcome may have undone; undefined when there
   * are none. The next sync retries failures; rejects only when the signal is aborted.
   */
  async reapplyUnconfirmed(
    pod: Pod,
    observed: ObservedPod,
    signal: AbortSignal,
  ): Promise<SyncAction | undefined> {
    this.#markUnconfirmed(pod, observed);
    if (this.#unconfirmed.size === 0) return undefined;
    let isDone = false;
    const { clock, logger } = this.#deps;
    for (const { id, name } of observed.containers.filter(
      ({ id, state }) => state === 'running' && this.#isDue(id),
    )) {
      this.#unconfirmed.delete(id);
      try {
        await this.#reapply(pod, id, name, signal);
        isDone = true;
      } catch (error) {
        this.#unconfirmed.set(id, clock.monotonicMs());
        signal.throwIfAborted();
        const because = describeError(error);
        const fields = { pod: describePod(pod), container: name, because };
        logger.v(2)?.info('Failed to reapply container resources', fields);
      }
    }
    return isDone ? { action: 'ResizePodInPlace', target: describePod(pod) } : undefined;
  }

  #markUnconfirmed({ metadata: { generation = 1 } }: Pod, { containers }: ObservedPod): void {
    if (generation <= 1) return;
    for (const { id, state, createdAtNs } of containers) {
      const isOwn = Number(createdAtNs / 1_000_000n) > this.#beganMs;
      if (state !== 'running' || isOwn || this.#checked.has(id)) continue;
      this.#checked.set(id, true);
      this.#unconfirmed.set(id, this.#deps.clock.monotonicMs());
    }
  }

  async #reapply(pod: Pod, containerId: string, name: string, signal: AbortSignal): Promise<void> {
    const { planner, actuated, cri } = this.#deps;
    const all = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
    const container = all.find((each) => each.name === name);
    const resources = actuated.get(pod.metadata.uid)?.containers[name];
    if (container === undefined || resources === undefined) return;
    // The update with unknown outcome may have set a limit again that was removed.
    const isFree = (resource: ResizedResource) => amountOf(resources, 'limits', resource) === 0n;
    const lifted = { cpu: isFree('cpu'), memory: isFree('memory') };
    const linux = planner.updatedResources(pod, { ...container, resources }, lifted);
    await cri.updateContainerResources({ containerId, linux }, signal);
  }

  #isDue(containerId: string): boolean {
    const sinceMs = this.#unconfirmed.peek(containerId);
    return sinceMs !== undefined && this.#deps.clock.monotonicMs() - sinceMs >= settledAfterMs;
  }

  /** Resizes the pod. Returns failures in the result; rejects only when the signal is aborted. */
  async resize(request: ResizeRequest, signal: AbortSignal): Promise<SyncAction> {
    const { clock, observe, logger } = this.#deps;
    const { pod } = request;
    const startMs = clock.monotonicMs();
    const action: SyncAction = { action: 'ResizePodInPlace', target: describePod(pod) };
    const tell = (success: boolean) => observe?.({ ms: clock.monotonicMs() - startMs, success });
    try {
      await this.#resize(request, signal);
      tell(true);
      return action;
    } catch (error) {
      signal.throwIfAborted();
      tell(false);
      const message = describeError(error);
      logger.warn('Failed to resize pod, will retry', {
        pod: describePod(pod),
        because: message,
      });
      return { ...action, failure: { reason: 'ResizePodInPlaceError', message } };
    }
  }

  async #resize(request: ResizeRequest, signal: AbortSignal): Promise<void> {
    const { limits, allocationPersisted } = this.#deps;
    const { pod, plan } = request;
    await allocationPersisted();
    const desired = limits.wanted(pod);
    const whole =
      desired === undefined
        ? undefined
        : new PodCgroupResize(this.#deps, request, desired, await limits.current(pod));
    await this.#checkMemoryUsage(pod, plan, whole, signal);
    await whole?.raise('memory', signal);
    for (const update of plan.memory) await this.#update(request, update, 'memory', signal);
    await whole?.lower('memory', signal);
    await whole?.raise('cpu', signal);
    for (const update of plan.cpu) await this.#update(request, update, 'cpu', signal);
    await whole?.lower('cpu', signal);
    await this.#recordPodResources(request);
  }

  /** Rejects a memory limit below the usage, because the kernel would kill processes of the pod. */
  async #checkMemoryUsage(
    pod: Pod,
    { memory }: ResizePlan,
    whole: PodCgroupResize | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const shrinking = memory.flatMap(({ id, container: { name }, before, after }) => {
      const [was, is] = [before, after].map((one) => amountOf(one, 'limits', 'memory')) as [bigint, bigint];
      return is > 0n && (was === 0n || is < was) ? [{ id, name, limit: is }] : [];
    });
    const wholeLimit = whole?.lowerMemory;
    const complaints: string[] = [];
    if (wholeLimit !== undefined) {
      const used = await this.#deps.limits.memoryUsage(pod);
      if (used >= wholeLimit)
        complaints.push(`attempting to set pod memory limit (${wholeLimit}) below current usage (${used})`);
    }
    for (const { id, name, limit } of shrinking) {
      const used = await this.#memoryOf(id, signal);
      if (used === undefined) complaints.push(`missing container "${name}" memory usage`);
      else if (used >= limit)
        complaints.push(
          `attempting to set container "${name}" memory limit (${limit}) below current usage (${used})`,
        );
    }
    if (complaints.length === 0) return;
    const text = complaints.length === 1 ? complaints[0] : `[${complaints.join(', ')}]`;
    throw new KubelingError('POD_RESIZE', `cannot decrease memory limits: ${text}`);
  }

  async #memoryOf(containerId: string, signal: AbortSignal): Promise<bigint | undefined> {
    const { stats } = await this.#deps.cri.containerStats({ containerId }, signal);
    const { usageBytes, workingSetBytes } = stats?.memory ?? {};
    return usageBytes?.value ?? workingSetBytes?.value;
  }

  /**
   * Updates either the CPU or the memory of a container in the runtime and leaves the other
   * resource unchanged.
   */
  async #update(
    { pod, actuated }: ResizeRequest,
    { id: containerId, container, before, after }: ContainerUpdate,
    resource: ResizedResource,
    signal: AbortSignal,
  ): Promise<void> {
    const { uid } = pod.metadata;
    const record = this.#deps.actuated.get(uid) ?? actuated;
    const current = record.containers[container.name] ?? before;
    const resources = withResource(current, after, resource);
    const isLifted = amountOf(current, 'limits', resource) > 0n && amountOf(after, 'limits', resource) === 0n;
    const lifted = { cpu: false, memory: false, [resource]: isLifted };
    const linux = this.#deps.planner.updatedResources(pod, { ...container, resources }, lifted);
    try {
      await this.#deps.cri.updateContainerResources({ containerId, linux }, signal);
    } catch (error) {
      if (signal.aborted || mayHaveTakenEffect(error))
        this.#unconfirmed.set(containerId, this.#deps.clock.monotonicMs());
      throw error;
    }
    const containers = { ...record.containers, [container.name]: resources };
    await this.#deps.actuated.set(uid, { ...record, containers });
  }

  async #recordPodResources({ pod, actuated }: ResizeRequest): Promise<void> {
    const { uid } = pod.metadata;
    const { resources } = pod.spec;
    const record = this.#deps.actuated.get(uid) ?? actuated;
    if (!sameResources(record.pod, resources))
      await this.#deps.actuated.set(uid, { ...record, pod: resources });
  }
}

/** Returns `own` with the request and the limit of one resource replaced by those of `other`. */
function withResource(
  own: ResourceRequirements,
  other: ResourceRequirements,
  resource: ResizedResource,
): ResourceRequirements {
  const side = (name: 'requests' | 'limits') => {
    const { [resource]: _old, ...rest } = own[name] ?? {};
    const amount = other[name]?.[resource];
    return amount === undefined ? rest : { ...rest, [resource]: amount };
  };
  return { ...own, requests: side('requests'), limits: side('limits') };
}

/** Some runtimes report an unknown method only in the error message, not by its code. */
function isUnknownMethod(error: unknown): boolean {
  if (!(error instanceof KubelingError)) return false;
  return (
    error.code === 'CRI_UNSUPPORTED' ||
    (error.code === 'CRI_FAILED' && error.message.includes('not implemented'))
  );
}

/** Changes a pod's cgroup stepwise from its current to its desired limits. */
class PodCgroupResize {
  readonly #deps: PodResizerDeps;
  readonly #request: ResizeRequest;
  readonly #desired: PodLimits;
  #current: PodLimits;

  constructor(deps: PodResizerDeps, request: ResizeRequest, desired: PodLimits, current: PodLimits) {
    this.#deps = deps;
    this.#request = request;
    this.#desired = desired;
    this.#current = current;
  }

  /** The desired memory limit when it is lower than the current one, otherwise undefined. */
  get lowerMemory(): number | undefined {
    const { memoryBytes } = this.#desired;
    return isMore(this.#current.memoryBytes, memoryBytes) ? memoryBytes : undefined;
  }

  /** Raises CPU limits before CPU shares, because a request must not exceed its limit. */
  async raise(resource: ResizedResource, signal: AbortSignal): Promise<void> {
    const [desired, current] = [this.#desired, this.#current];
    if (resource === 'memory') {
      if (isMore(desired.memoryBytes, current.memoryBytes)) await this.#setMemory(signal);
      return;
    }
    if (isMore(desired.cpuQuotaUs, current.cpuQuotaUs)) await this.#setQuota(signal);
    if (desired.cpuShares > current.cpuShares) await this.#setShares(signal);
  }

  async lower(resource: ResizedResource, signal: AbortSignal): Promise<void> {
    const [desired, current] = [this.#desired, this.#current];
    if (resource === 'memory') {
      if (isMore(current.memoryBytes, desired.memoryBytes)) await this.#setMemory(signal);
      return;
    }
    if (desired.cpuShares < current.cpuShares) await this.#setShares(signal);
    if (isMore(current.cpuQuotaUs, desired.cpuQuotaUs)) await this.#setQuota(signal);
  }

  async #setMemory(signal: AbortSignal): Promise<void> {
    await this.#set({ memoryBytes: this.#desired.memoryBytes }, signal);
  }

  async #setQuota(signal: AbortSignal): Promise<void> {
    const { cpuQuotaUs, cpuPeriodUs } = this.#desired;
    await this.#set({ cpuQuotaUs, cpuPeriodUs }, signal);
  }

  async #setShares(signal: AbortSignal): Promise<void> {
    await this.#set({ cpuShares: this.#desired.cpuShares }, signal);
    await this.#deps.limits.changed(signal);
  }

  /**
   * Updates the sandbox's resources in the runtime before the cgroup, because the runtime may
   * reject the change.
   */
  async #set(part: Partial<PodLimits>, signal: AbortSignal): Promise<void> {
    const before = this.#current;
    const next = { ...before, ...part };
    await this.#updateSandbox(next, signal);
    try {
      await this.#deps.limits.set(this.#request.pod, part, signal);
    } catch (error) {
      await this.#updateSandbox(before, signal).catch(() => {});
      throw error;
    }
    this.#current = next;
  }

  /**
   * Ignores a runtime that does not implement UpdatePodSandboxResources, because the call is
   * optional.
   */
  async #updateSandbox(limits: PodLimits, signal: AbortSignal): Promise<void> {
    const { cri, planner } = this.#deps;
    const { pod, sandboxId: podSandboxId } = this.#request;
    if (podSandboxId === '') return;
    const resources = sandboxLimits(pod, limits);
    const overhead = planner.overheadResources(pod);
    try {
      await cri.updatePodSandboxResources({ podSandboxId, overhead, resources }, signal);
    } catch (error) {
      if (!isUnknownMethod(error)) throw error;
    }
  }
}
