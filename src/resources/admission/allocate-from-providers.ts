import { initContainersOf, type Pod } from '../../pods/index.ts';
import { anywhere, type HintProvider } from '../topology/index.ts';
import type { Rejection } from './index.ts';

/**
 * Calls each provider of exclusive resources to allocate for each container, init containers first.
 * Returns why the pod is rejected; its allocations so far are released once the pod is inactive.
 */
export async function allocateFromProviders(
  pod: Pod,
  providers: readonly Pick<HintProvider, 'allocate'>[],
  signal: AbortSignal,
): Promise<Rejection | undefined> {
  try {
    for (const container of [...initContainersOf(pod), ...pod.spec.containers])
      for (const provider of providers) {
        const rejection = await provider.allocate(pod, container, { affinity: anywhere, signal });
        if (rejection !== undefined) return rejection;
      }
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return unexpectedAdmissionError(error);
  }
}

/** The rejection of a pod after an unexpected error of a provider. */
function unexpectedAdmissionError(error: unknown): Rejection {
  const why = error instanceof Error ? error.message : String(error);
  return {
    reason: 'UnexpectedAdmissionError',
    message: `Allocate failed due to ${why}, which is unexpected`,
  };
}
