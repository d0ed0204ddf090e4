import { initContainersOf, type Pod } from '../../pods/index.ts';
import { anywhere, type HintProvider } from '../topology/index.ts';
import type { Refusal } from './index.ts';

/**
 * Has each provider give each container its share, init containers first, wherever it comes from. Answers why the pod cannot run;
 * what it was given by then is free again once the pod is inactive.
 */
export async function allotPod(
  pod: Pod,
  providers: readonly Pick<HintProvider, 'allocate'>[],
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  try {
    for (const container of [...initContainersOf(pod), ...pod.spec.containers])
      for (const provider of providers) {
        const refusal = await provider.allocate(pod, container, { affinity: anywhere, signal });
        if (refusal !== undefined) return refusal;
      }
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return unexpected(error);
  }
}

/** Of a provider that cannot give a pod what it asks for. */
export function unexpected(error: unknown): Refusal {
  const why = error instanceof Error ? error.message : String(error);
  return {
    reason: 'UnexpectedAdmissionError',
    message: `Allocate failed due to ${why}, which is unexpected`,
  };
}
