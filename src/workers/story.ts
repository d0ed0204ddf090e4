import type { PodStep } from '../pods/index.ts';
import type { Transition } from './lifecycle.ts';

/** Converts a lifecycle transition to a step of the pod's history. */
export function historyStep({ to, why, lastedMs }: Transition): PodStep {
  if (to === 'terminating')
    return { stage: 'termination', outcome: 'waiting', message: `the pod terminates because ${why}` };
  if (to === 'terminated') return { stage: 'termination', outcome: 'done', message: why, ms: lastedMs };
  return { stage: 'removed', outcome: 'done', message: why, ms: lastedMs };
}
