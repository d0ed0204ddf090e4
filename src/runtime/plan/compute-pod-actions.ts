import type { Container } from '../../kinds/index.ts';
import {
  allNamed,
  effectiveRestartPolicy,
  ephemeralContainersOf,
  exitRestartsAllContainers,
  initContainersOf,
  lostExitCode,
  mayRun,
  newestInstance,
  type ObservedContainer,
  type ObservedPod,
  type Pod,
  restartsAfterExit,
} from '../../pods/index.ts';
import { restoreContainer } from '../containers/labels.ts';
import { planResize, type ResizePlan } from '../resize/resize-plan.ts';
import { decideSandbox, type SandboxDecision } from '../sandbox/sandbox-decision.ts';
import { initContainerActions, passedInitialization } from './init-container-actions.ts';
import type { ContainerToKill, ContainerToReset, PlanContext, PodActions } from './pod-actions.ts';
import { regularContainerActions } from './regular-container-actions.ts';

/**
 * Computes what one sync must do so that the pod's containers match its spec. Pure: equal inputs
 * give equal plans.
 */
export function computePodActions(pod: Pod, observed: ObservedPod, context: PlanContext): PodActions {
  const sandbox = decideSandbox(pod, observed);
  if (context.restart === 'all-containers') {
    const containersToKill = byId(noLongerInSpec(pod, observed));
    return { ...idle(sandbox), containersToKill, containersToReset: containersToReset(pod, observed) };
  }
  const plan =
    sandbox.kind === 'create'
      ? actionsForNewSandbox(pod, observed, sandbox, context)
      : actionsInSandbox(pod, observed, context, sandbox);
  const resize = resizeOf(pod, observed, context, plan);
  return resize === undefined ? plan : { ...plan, resize };
}

/**
 * Returns the containers to resize. A finished pod is not resized, and a new sandbox has no running
 * containers to resize.
 */
function resizeOf(
  pod: Pod,
  observed: ObservedPod,
  { actuated }: PlanContext,
  plan: PodActions,
): ResizePlan | undefined {
  if (plan.killPod && !plan.createSandbox) return undefined;
  const init = plan.initContainersToStart.map((index) => initContainersOf(pod)[index]);
  const regular = plan.containersToStart.map((index) => pod.spec.containers[index]);
  const starting = new Set([...init, ...regular].flatMap((container) => container?.name ?? []));
  const stopping = new Set(
    plan.killPod ? observed.containers.map(({ id }) => id) : plan.containersToKill.keys(),
  );
  return planResize(pod, observed, actuated, { starting, stopping });
}

function idle(sandbox: SandboxDecision): PodActions {
  const create = sandbox.kind === 'create';
  return {
    killPod: create,
    createSandbox: create,
    sandboxId: sandbox.sandboxId,
    attempt: sandbox.attempt,
    initContainersToStart: [],
    containersToStart: [],
    ephemeralContainersToStart: [],
    containersToKill: new Map(),
    containersToReset: [],
  };
}

/**
 * Stops the remaining containers of the pod; creates a new sandbox only when a container will run
 * in it.
 */
function actionsForNewSandbox(
  pod: Pod,
  observed: ObservedPod,
  sandbox: SandboxDecision,
  context: PlanContext,
): PodActions {
  const plan = idle(sandbox);
  const ran = observed.containers.length > 0;
  // A pod with restartPolicy Never whose containers have run gets no second sandbox.
  if (pod.spec.restartPolicy === 'Never' && sandbox.attempt !== 0 && ran) {
    return { ...plan, createSandbox: false };
  }
  const containersToStart = pod.spec.containers.flatMap((container, index) =>
    restartsInNewSandbox(pod, observed, container, context) ? [index] : [],
  );
  if (containersToStart.length === 0 && pod.spec.containers.length > 0) {
    return { ...plan, createSandbox: false };
  }
  // If the pod has init containers, a later sync decides about the regular containers.
  return initContainersOf(pod).length > 0
    ? { ...plan, initContainersToStart: [0] }
    : { ...plan, containersToStart };
}

/**
 * Whether a regular container runs in a new sandbox. The container's `restartPolicy` decides;
 * without one, the policy of the pod does. A container with its own policy Never that still runs is
 * not started in the new sandbox; its exit decides whether it restarts.
 */
function restartsInNewSandbox(
  pod: Pod,
  observed: ObservedPod,
  container: Container,
  context: PlanContext,
): boolean {
  const newest = newestInstance(observed, container.name);
  if (newest === undefined && context.hasFinalExit?.(container) === true) return false;
  const policy = effectiveRestartPolicy(pod, container);
  const isOwn = container.restartPolicy !== undefined;
  if (newest?.state === 'running') return !isOwn || policy !== 'Never';
  // A container in unknown state is reported as terminated with the exit code `lostExitCode`. If
  // the restart policy forbids a restart after this exit code, the container does not run again,
  // because the API server would reject its status.
  if (newest?.state === 'unknown' && isOwn) return restartsAfterExit(pod, container, lostExitCode);
  if (newest?.state !== 'exited') return true;
  return isOwn
    ? restartsAfterExit(pod, container, newest.exitCode)
    : policy !== 'OnFailure' || newest.exitCode !== 0;
}

function actionsInSandbox(
  pod: Pod,
  observed: ObservedPod,
  context: PlanContext,
  sandbox: SandboxDecision,
): PodActions {
  const init = initContainerActions(pod, observed, context);
  const strangers = noLongerInSpec(pod, observed);
  const ephemeralContainersToStart = [...ephemeralContainersOf(pod).entries()]
    .filter(([, { name }]) => neverRan(newestInstance(observed, name)))
    .map(([index]) => index);
  const plan = {
    ...idle(sandbox),
    ephemeralContainersToStart,
    initContainersToStart: init.toStart,
    containersToKill: byId([...strangers, ...init.toKill]),
  };
  const dead = { ...plan, killPod: true, initContainersToStart: [], ephemeralContainersToStart: [] };
  if (init.progress === 'failed') return dead;
  const regular = regularContainerActions(pod, observed, context);
  const finished = regular.kept === 0 && regular.toStart.length === 0;
  if (init.progress === 'waiting') {
    // A finished pod does not continue to run for a sidecar that must be restarted.
    return finished && passedInitialization(pod, observed, context) ? dead : plan;
  }
  return {
    ...(finished ? dead : plan),
    containersToStart: regular.toStart,
    containersToKill: byId([...strangers, ...init.toKill, ...regular.toKill]),
  };
}

/**
 * Whether the container has not run yet. A container in state created was left by a kubelet that
 * exited before it started the container.
 */
function neverRan(newest: ObservedContainer | undefined): boolean {
  return newest === undefined || newest.state === 'created';
}

/**
 * Returns the containers that are no longer in the spec, which happens for a static pod with a
 * fixed UID.
 */
function noLongerInSpec(pod: Pod, observed: ObservedPod): readonly ContainerToKill[] {
  const all = [...initContainersOf(pod), ...pod.spec.containers, ...ephemeralContainersOf(pod)];
  const names = new Set(all.map(({ name }) => name));
  return observed.containers
    .filter((one) => mayRun(one) && !names.has(one.name))
    .map((one) => ({
      id: one.id,
      name: one.name,
      container: restoreContainer(one),
      message: `Container ${one.name} is no longer part of the pod`,
      reason: 'SpecChanged',
    }));
}

function byId(containers: readonly ContainerToKill[]): ReadonlyMap<string, ContainerToKill> {
  return new Map(containers.map((container) => [container.id, container]));
}

/**
 * Returns every instance of every regular and init container. The instances whose exit triggered
 * the restart are last: if the kubelet restarts before they are reset, the next kubelet repeats the
 * plan.
 */
function containersToReset(pod: Pod, observed: ObservedPod): readonly ContainerToReset[] {
  const [init, regular] = [initContainersOf(pod), pod.spec.containers].map((containers) =>
    containers.flatMap((container) => instancesOf(container, observed)),
  );
  const isTrigger = ({ trigger }: { trigger: boolean }) => trigger;
  const victims = (all: readonly Instance[] = []) => all.filter((instance) => !isTrigger(instance));
  const triggers = (all: readonly Instance[] = []) => all.filter(isTrigger);
  const ordered = [...victims(regular), ...victims(init), ...triggers(regular), ...triggers(init)];
  return ordered.map(({ reset }) => reset);
}

interface Instance {
  readonly trigger: boolean;
  readonly reset: ContainerToReset;
}

function instancesOf(container: Container, observed: ObservedPod): Instance[] {
  return allNamed(observed.containers, container.name).map((instance) => ({
    trigger: exitRestartsAllContainers(container, instance),
    reset: { id: instance.id, container, stopFirst: instance.state !== 'exited' },
  }));
}
