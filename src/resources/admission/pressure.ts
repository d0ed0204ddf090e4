import { isCriticalPod, type Pod, qosClass } from '../../pods/index.ts';
import { evictedReason } from '../eviction/eviction-message.ts';
import type { Evaluation, Rejection } from './evaluation.ts';
import { isTolerated, type TolerationRules } from './taints.ts';

const memoryTaint = { key: 'node.kubernetes.io/memory-pressure', effect: 'NoSchedule' };

/**
 * Why a node under pressure rejects the pod. Under memory pressure alone, pods with memory requests
 * are admitted.
 */
export function pressureRejection(
  pod: Pod,
  pressures: readonly string[],
  rules: TolerationRules,
): Rejection | undefined {
  if (pressures.length === 0 || isCriticalPod(pod)) return undefined;
  const isMemoryOnly = pressures.every((one) => one === 'MemoryPressure');
  const mayCome = qosClass(pod) !== 'BestEffort' || isTolerated(memoryTaint, pod.spec.tolerations, rules);
  if (isMemoryOnly && mayCome) return undefined;
  return { reason: evictedReason, message: `The node had condition: [${pressures.join(' ')}]. ` };
}

/** Whether the pod is rejected only for node pressure, which is temporary. */
export function isPressureRejection(
  evaluation: Evaluation,
): evaluation is Extract<Evaluation, { readonly kind: 'reject' }> {
  return evaluation.kind === 'reject' && evaluation.rejection.reason === evictedReason;
}
