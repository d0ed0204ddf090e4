import type { PodJournal, PodUid } from '../pods/index.ts';
import { type HookRunner, hookMetrics, LifecycleHooks } from '../runtime/index.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import type { KubeletSettings } from './settings.ts';

export interface HooksDeps extends Pick<KubeletDeps, 'cri' | 'clock' | 'logger' | 'metrics' | 'machine'> {
  readonly journal: PodJournal;
  readonly nodeIps: () => readonly string[];
  /** What the runtime says now; none for a pod on the network of the node. */
  readonly podIps: (uid: PodUid, signal: AbortSignal) => Promise<readonly string[]>;
}

/** The hooks of this node's containers. */
export function makeHooks({ hookLimitMs }: KubeletSettings, deps: HooksDeps): HookRunner {
  const { podIps, nodeIps, machine } = deps;
  return new LifecycleHooks({
    ...deps,
    dial: machine.dialHttp,
    limitMs: hookLimitMs,
    observer: hookMetrics(deps.metrics),
    podIps: async ({ metadata, spec }, signal) =>
      spec.hostNetwork === true ? nodeIps() : await podIps(metadata.uid, signal),
  });
}
