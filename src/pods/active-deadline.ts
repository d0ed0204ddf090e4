import type { PodStatus } from '../kinds/index.ts';
import { type Clock, type Instant, KubelingError, LinkedController } from '../lib/index.ts';
import type { Pod } from './pod.ts';

/**
 * Whether the active deadline of the pod has passed. It is counted from the pod's start on this
 * node; a pod that has not started has no deadline yet.
 */
export function isPastDeadline(pod: Pod, status: PodStatus | undefined, now: Instant): boolean {
  return (msToDeadline(pod, status, now) ?? Number.POSITIVE_INFINITY) <= 0;
}

/** The time until the active deadline of the pod; undefined without activeDeadlineSeconds. */
function msToDeadline(
  { spec: { activeDeadlineSeconds } }: Pod,
  status: PodStatus | undefined,
  now: Instant,
): number | undefined {
  if (activeDeadlineSeconds === undefined || status?.startTime === undefined) return undefined;
  return Date.parse(status.startTime) + activeDeadlineSeconds * 1_000 - now;
}

/**
 * Aborts an operation at the pod's deadline: a hanging hook must not keep the pod running. Settles
 * when the operation has ended, so the operation must respect its signal.
 */
export async function beforeDeadline<T>(
  clock: Clock,
  pod: Pod,
  status: PodStatus,
  work: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const ms = msToDeadline(pod, status, clock.now());
  if (ms === undefined) return await work(signal);
  using controller = new LinkedController(signal);
  using _timer = clock.timer(Math.max(0, ms), () => {
    const details = { retryAtMs: clock.monotonicMs() };
    controller.abort(
      new KubelingError('CANCELLED', 'The active deadline of the pod has passed', { details }),
    );
  });
  return await work(controller.signal);
}
