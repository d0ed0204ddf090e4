import type { Clock } from '../../lib/index.ts';
import type { PodManager } from '../../pods/index.ts';
import { type MirrorPods, mirrorNames } from './mirror-pods.ts';

const readyPollMs = 100;
const reconcileAllMs = 10_000;

/** Reconciles all mirror pods once all sources are ready, and periodically after that. */
export async function followMirrors(
  clock: Clock,
  { config, pods }: { readonly config: { allReady(): boolean }; readonly pods: PodManager },
  mirrors: Pick<MirrorPods, 'reconcile'>,
  signal: AbortSignal,
): Promise<void> {
  while (!config.allReady()) await clock.sleep(readyPollMs, signal);
  for (;;) {
    for (const name of mirrorNames(pods.getPodsAndMirrorPods())) mirrors.reconcile(name);
    await clock.sleep(reconcileAllMs, signal);
  }
}
