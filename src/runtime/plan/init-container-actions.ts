import type { Container } from '../../kinds/index.ts';
import {
  effectiveRestartPolicy,
  initContainersOf,
  isSidecar,
  mayRun,
  newestInstance,
  type ObservedContainer,
  type ObservedPod,
  type Pod,
  shouldContainerStart,
} from '../../pods/index.ts';
import { specHash } from '../containers/spec-hash.ts';
import { restartsForResize } from '../resize/resize-plan.ts';
import { decideSandbox } from '../sandbox/sandbox-decision.ts';
import type { ContainerToKill, PlanContext } from './pod-actions.ts';
import { resizeKill } from './regular-container-actions.ts';

export interface InitContainerActions {
  /**
   * - ready: regular containers may start;
   * - waiting: init containers must run first, or a sidecar must be restarted first;
   * - failed: an init container failed permanently.
   */
  readonly progress: 'ready' | 'waiting' | 'failed';
  /** Indexes of init containers in the pod's spec, in ascending order. */
  readonly toStart: readonly number[];
  readonly toKill: readonly ContainerToKill[];
}

/** Actions for one init container. */
interface Step {
  readonly start?: readonly number[];
  readonly kill?: ContainerToKill;
  /**
   * True when the last init container has finished or, if it is a sidecar, has started; regular
   * containers may then start.
   */
  readonly initialized?: true;
  readonly failed?: true;
}

interface Place {
  readonly index: number;
  readonly isLast: boolean;
  /**
   * Whether a later init container or a regular container was observed, which proves that this init
   * container has finished.
   */
  readonly passed: boolean;
}

/**
 * Computes the next init container to start and the sidecars to restart. Iterates from the last
 * init container to the first: finished init containers may have been removed from the runtime, so
 * the last one that remains shows the progress.
 */
export function initContainerActions(
  pod: Pod,
  everything: ObservedPod,
  context: PlanContext,
): InitContainerActions {
  const observed = ofThisSandbox(everything);
  const containers = initContainersOf(pod);
  const last = containers.at(-1);
  if (last === undefined) return { progress: 'ready', toStart: [], toKill: [] };
  const runningRegular = hasLiveRegularContainer(pod, observed);
  let passed = runningRegular || passedInitialization(pod, observed, context);
  let initialized = runningRegular || (passed && !isSidecar(last));
  const toStart = new Set<number>();
  const toKill: ContainerToKill[] = [];
  for (const [index, container] of [...containers.entries()].reverse()) {
    const newest = newestInstance(observed, container.name);
    const place = { index, isLast: container === last, passed };
    const step =
      newest === undefined ? unobserved(container, place) : seen(pod, container, newest, place, context);
    if (step.failed === true) return { progress: 'failed', toStart: [], toKill };
    for (const start of step.start ?? []) toStart.add(start);
    if (step.kill !== undefined) toKill.push(step.kill);
    initialized ||= step.initialized === true;
    passed ||= newest !== undefined;
  }
  if (!passed) toStart.add(0);
  return {
    progress: initialized ? 'ready' : 'waiting',
    toStart: [...toStart].sort((a, b) => a - b),
    toKill,
  };
}

/** Ignores containers that exited or were created in an earlier sandbox. */
function ofThisSandbox(observed: ObservedPod): ObservedPod {
  const sandbox = observed.sandboxes[0]?.id;
  const containers = observed.containers.filter((one) => one.sandboxId === sandbox || mayRun(one));
  return { ...observed, containers };
}

function hasLiveRegularContainer(pod: Pod, observed: ObservedPod): boolean {
  return pod.spec.containers.some(({ name }) => {
    const state = newestInstance(observed, name)?.state;
    return state === 'created' || state === 'running';
  });
}

/**
 * Whether initialization finished in the current sandbox. Containers of an earlier sandbox are
 * ignored: after a reboot all init containers run again.
 */
export function passedInitialization(pod: Pod, observed: ObservedPod, context: PlanContext): boolean {
  const sandbox = observed.sandboxes[0]?.id;
  if (sandbox === undefined) return false;
  if (context.initializedSandboxId === sandbox) return true;
  const regular = new Set(pod.spec.containers.map(({ name }) => name));
  return observed.containers.some(({ name, sandboxId }) => sandboxId === sandbox && regular.has(name));
}

/**
 * The current sandbox if all regular init containers have finished in it, to be persisted for later
 * plans.
 */
export function initializedSandbox(
  pod: Pod,
  observed: ObservedPod,
  context: PlanContext,
): string | undefined {
  const { kind, sandboxId } = decideSandbox(pod, observed);
  if (kind !== 'keep' || initContainersOf(pod).every(isSidecar)) return undefined;
  const containers = observed.containers.filter((one) => one.sandboxId === sandboxId);
  const { progress } = initContainerActions(pod, { ...observed, containers }, context);
  return progress === 'ready' ? sandboxId : undefined;
}

function unobserved(container: Container, { index, passed }: Place): Step {
  return passed && isSidecar(container) ? { start: [index] } : {};
}

function seen(
  pod: Pod,
  container: Container,
  newest: ObservedContainer,
  place: Place,
  context: PlanContext,
): Step {
  const sidecar = isSidecar(container);
  if (place.passed && !sidecar) return {};
  switch (newest.state) {
    case 'created':
      // The container was created but not started: an earlier start was interrupted.
      return { start: [place.index] };
    case 'running':
      return sidecar ? runningSidecar(pod, container, newest, place, context) : {};
    case 'exited':
      return sidecar ? { start: [place.index] } : exitedPlain(pod, container, newest, place);
    case 'unknown':
      return lostSight(pod, container, newest, place);
  }
}

function runningSidecar(
  pod: Pod,
  container: Container,
  newest: ObservedContainer,
  { index, isLast, passed }: Place,
  context: PlanContext,
): Step {
  const { name } = container;
  const startup = container.startupProbe === undefined ? 'success' : context.startup(newest.id);
  if (startup === 'failure') {
    return {
      start: [index],
      kill: kill(container, newest, `Init container ${name} failed startup probe`, 'StartupProbe'),
    };
  }
  if (startup !== 'success') return {};
  const next = isLast || passed ? [] : [index + 1];
  const done = isLast ? ({ initialized: true } as const) : {};
  const restart = whyRestart(pod, container, newest, context);
  return restart === undefined
    ? { ...done, start: next }
    : { ...done, start: [index, ...next], kill: restart };
}

/** A sidecar is always restarted, regardless of the pod's restart policy. */
function whyRestart(
  pod: Pod,
  container: Container,
  newest: ObservedContainer,
  context: PlanContext,
): ContainerToKill | undefined {
  const { name } = container;
  if (newest.hash !== specHash(container)) {
    return kill(container, newest, `Init container ${name} definition changed`, 'SpecChanged');
  }
  if (container.livenessProbe !== undefined && context.liveness(newest.id) === 'failure') {
    return kill(container, newest, `Init container ${name} failed liveness probe`, 'LivenessProbe');
  }
  return restartsForResize(pod, container, context.actuated) ? resizeKill(container, newest) : undefined;
}

function exitedPlain(pod: Pod, container: Container, newest: ObservedContainer, place: Place): Step {
  // An exit with reason OOMKilled is a failure even with exit code 0: the kernel may kill only a
  // child process.
  const failed = newest.exitCode !== 0 || newest.reason === 'OOMKilled';
  if (failed) {
    return shouldContainerStart(pod, container, newest) ? { start: [place.index] } : { failed: true };
  }
  return place.isLast ? { initialized: true } : { start: [place.index + 1] };
}

/** An instance in unknown state may still run, so it is stopped before its replacement starts. */
function lostSight(pod: Pod, container: Container, newest: ObservedContainer, { index }: Place): Step {
  // The exit code is unknown and restart rules need one, so only the restart policy applies.
  if (effectiveRestartPolicy(pod, container) === 'Never') return { failed: true };
  const message = 'Init container is in "unknown" state, try killing it before restart';
  return { start: [index], kill: kill(container, newest, message, 'Unknown') };
}

function kill(
  container: Container,
  newest: ObservedContainer,
  message: string,
  reason: ContainerToKill['reason'],
): ContainerToKill {
  return { id: newest.id, name: container.name, container, message, reason };
}
