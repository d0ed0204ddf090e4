import type { PodCondition, PodStatus } from '../kinds/index.ts';
import { isTerminalPhase, type Pod } from '../pods/index.ts';

/**
 * The final status of a pod that this node killed. Only this node has it until the API server has
 * received it.
 */
export interface PodEnd {
  readonly phase: string;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  /** The DisruptionTarget condition of the pod. */
  readonly disruption?: PodCondition | undefined;
}

const disruptionTarget = 'DisruptionTarget';

/** Returns the final status of a pod; undefined if it has not finished. */
export function podEnd({ phase, reason, message, conditions = [] }: PodStatus): PodEnd | undefined {
  if (phase === undefined || !isTerminalPhase(phase)) return undefined;
  const disruption = conditions.find(({ type, status }) => type === disruptionTarget && status === 'True');
  return { phase, reason, message, ...(disruption && { disruption }) };
}

/** Returns the pod with its recorded final status instead of the status of the API object. */
export function withPodEnd(pod: Pod, { disruption, ...end }: PodEnd): Pod {
  const { conditions = [] } = pod.status;
  const others = conditions.filter(({ type }) => type !== disruptionTarget);
  return {
    ...pod,
    status: {
      ...pod.status,
      ...end,
      conditions: disruption === undefined ? conditions : [...others, disruption],
    },
  };
}

export function isPodEnd(value: unknown): value is PodEnd {
  if (!isRecord(value)) return false;
  const { phase, reason, message, disruption } = value;
  if (phase !== 'Succeeded' && phase !== 'Failed') return false;
  if (![reason, message].every(isTextOrNothing)) return false;
  return disruption === undefined || isDisruption(disruption);
}

function isDisruption(value: unknown): boolean {
  if (!isRecord(value) || value['type'] !== disruptionTarget || value['status'] !== 'True') return false;
  const { reason, message, lastTransitionTime, observedGeneration } = value;
  return (
    [reason, message, lastTransitionTime].every(isTextOrNothing) &&
    (observedGeneration === undefined || typeof observedGeneration === 'number')
  );
}

function isTextOrNothing(value: unknown): boolean {
  return value === undefined || typeof value === 'string';
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
