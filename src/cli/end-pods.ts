import type { CriClient } from '../cri/index.ts';
import { removeSandbox } from '../kubelet/index.ts';
import { describeError, isKind } from '../lib/index.ts';
import { readContainerAnnotations } from '../runtime/index.ts';

export interface EndedPods {
  /** How many there were. */
  readonly found: number;
  readonly problems: readonly string[];
}

/** What a pod gets that does not say. */
const usualGraceSeconds = 30;

/**
 * Ends and removes all pods the runtime shows, all at once: containers are asked to end, and get the time their pod
 * grants them but no more than given here. Hooks are for the kubelet to run, and none runs by now.
 */
export async function endPods(cri: CriClient, mostGraceMs: number, signal: AbortSignal): Promise<EndedPods> {
  const [{ items }, { containers }] = await Promise.all([
    cri.listPodSandbox({}, signal),
    cri.listContainers({ filter: { state: { state: 'CONTAINER_RUNNING' } } }, signal),
  ]);
  const running = Map.groupBy(containers, ({ podSandboxId }) => podSandboxId);
  const end = async (podSandboxId: string) => {
    const stops = (running.get(podSandboxId) ?? []).map(({ id: containerId, annotations }) =>
      stopContainer(cri, containerId, graceSeconds(annotations, mostGraceMs), signal),
    );
    await Promise.all(stops);
    await removeSandbox(cri, podSandboxId, signal);
  };
  const ends = await Promise.allSettled(items.map(({ id }) => end(id)));
  const failed = ends.filter((one) => one.status === 'rejected');
  return { found: items.length, problems: failed.map(({ reason }) => describeError(reason)) };
}

function graceSeconds(annotations: Readonly<Record<string, string>>, mostMs: number): number {
  const { deletionGraceSeconds, terminationGraceSeconds } = readContainerAnnotations(annotations);
  const own = deletionGraceSeconds ?? terminationGraceSeconds ?? usualGraceSeconds;
  return Math.min(own, Math.ceil(mostMs / 1_000));
}

/** Whatever goes wrong here, the end of its sandbox ends it too. */
async function stopContainer(
  cri: CriClient,
  containerId: string,
  seconds: number,
  signal: AbortSignal,
): Promise<void> {
  await cri.stopContainer({ containerId, timeout: BigInt(seconds) }, signal).catch((error) => {
    if (!isKind(error, 'NotFound')) signal.throwIfAborted();
  });
}
