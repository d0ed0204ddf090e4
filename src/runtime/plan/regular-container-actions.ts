import type { Container } from '../../kinds/index.ts';
import {
  effectiveRestartPolicy,
  newestInstance,
  type ObservedContainer,
  type ObservedPod,
  type Pod,
  shouldContainerStart,
} from '../../pods/index.ts';
import { specHash } from '../containers/spec-hash.ts';
import { restartsForResize } from '../resize/resize-plan.ts';
import type { ContainerToKill, PlanContext } from './pod-actions.ts';

export interface RegularContainerActions {
  /** Number of running containers of the pod that this sync neither stops nor restarts. */
  readonly kept: number;
  readonly toStart: readonly number[];
  readonly toKill: readonly ContainerToKill[];
}

type Step =
  | { readonly do: 'keep' }
  | { readonly do: 'leave' }
  | { readonly do: 'start'; readonly kill?: ContainerToKill }
  | { readonly do: 'kill'; readonly kill: ContainerToKill };

export function regularContainerActions(
  pod: Pod,
  observed: ObservedPod,
  context: PlanContext,
): RegularContainerActions {
  const steps = pod.spec.containers.map((container) => {
    const newest = newestInstance(observed, container.name);
    return newest?.state === 'running'
      ? running(pod, container, newest, context)
      : notRunning(pod, container, newest, context);
  });
  return {
    kept: steps.filter((step) => step.do === 'keep').length,
    toStart: steps.flatMap((step, index) => (step.do === 'start' ? [index] : [])),
    toKill: steps.flatMap((step) => ('kill' in step && step.kill !== undefined ? [step.kill] : [])),
  };
}

function notRunning(
  pod: Pod,
  container: Container,
  newest: ObservedContainer | undefined,
  context: PlanContext,
): Step {
  if (newest === undefined && context.hasFinalExit?.(container) === true) return { do: 'leave' };
  if (!shouldContainerStart(pod, container, newest)) return { do: 'leave' };
  if (newest?.state !== 'unknown') return { do: 'start' };
  // An instance in unknown state may still run, so it is stopped before its replacement starts.
  const message = 'Container is in "unknown" state, try killing it before restart';
  return {
    do: 'start',
    kill: { id: newest.id, name: container.name, container, message, reason: 'Unknown' },
  };
}

function running(pod: Pod, container: Container, newest: ObservedContainer, context: PlanContext): Step {
  const why = whyStop(container, newest, context);
  if (why === undefined) return resized(pod, container, newest, context);
  // A changed spec always restarts the container. After a failed probe only the restart policy
  // applies, because restart rules need an exit code.
  const restart = why.reason === 'SpecChanged' || effectiveRestartPolicy(pod, container) !== 'Never';
  const message = restart ? `${why.message}, will be restarted` : why.message;
  const kill = { id: newest.id, name: container.name, container, message, reason: why.reason };
  return restart ? { do: 'start', kill } : { do: 'kill', kill };
}

/**
 * A resize restarts the container regardless of the restart policy, because the container has not
 * exited.
 */
function resized(pod: Pod, container: Container, newest: ObservedContainer, context: PlanContext): Step {
  if (!restartsForResize(pod, container, context.actuated)) return { do: 'keep' };
  return { do: 'start', kill: resizeKill(container, newest) };
}

export function resizeKill(container: Container, { id }: ObservedContainer): ContainerToKill {
  const { name } = container;
  return { id, name, container, message: `Container ${name} resize requires restart`, reason: 'Resize' };
}

function whyStop(
  container: Container,
  newest: ObservedContainer,
  context: PlanContext,
): Pick<ContainerToKill, 'message' | 'reason'> | undefined {
  const { name } = container;
  if (newest.hash !== specHash(container)) {
    return { message: `Container ${name} definition changed`, reason: 'SpecChanged' };
  }
  if (context.liveness(newest.id) === 'failure') {
    return { message: `Container ${name} failed liveness probe`, reason: 'LivenessProbe' };
  }
  if (context.startup(newest.id) === 'failure') {
    return { message: `Container ${name} failed startup probe`, reason: 'StartupProbe' };
  }
  return undefined;
}
