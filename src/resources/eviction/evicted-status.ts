import type { PodStatus } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';

/** How a pod ended that was evicted: part of the API. */
export const evictedReason = 'Evicted';

export interface EvictionVerdict {
  readonly message: string;
  /** Told to those who watch for pods that end though nothing is wrong with them; not where a pod broke its own limits. */
  readonly disruption: 'told' | 'not-told';
}

/** What an evicted pod says of itself. */
export function evictedStatus(status: PodStatus, verdict: EvictionVerdict, { metadata }: Pod): PodStatus {
  const { message, disruption } = verdict;
  const ended = { ...status, phase: 'Failed', reason: evictedReason, message };
  if (disruption === 'not-told') return ended;
  const type = 'DisruptionTarget';
  const others = (status.conditions ?? []).filter((condition) => condition.type !== type);
  const condition = {
    type,
    status: 'True',
    reason: 'TerminationByKubelet',
    message,
    observedGeneration: metadata.generation,
  };
  return { ...ended, conditions: [...others, condition] };
}
