import type { Clock, Logger } from '../lib/index.ts';
import type { ObservedPod, PodJournal, PodUid } from '../pods/index.ts';
import { decideSandbox } from '../runtime/index.ts';
import type { KeptPods } from './kept-pods.ts';
import type { NodeAllocation } from './make-allocation.ts';
import type { PodFacts } from './pod-facts.ts';
import { PodResizes, type PodResizesDeps } from './pod-resizes.ts';
import { KubeletPodSyncer, type SyncerDeps } from './pod-syncer.ts';
import type { RuntimeState } from './runtime-state.ts';

/** What of the kubelet a worker's steps depend on. */
export interface PodSyncerParts
  extends Pick<
    SyncerDeps,
    'statuses' | 'cgroups' | 'probes' | 'nodeIps' | 'rejected' | 'claims' | 'cluster' | 'deviceStatus'
  > {
  readonly journal: PodJournal;
  readonly runtime: SyncerDeps['runtime'] & PodResizesDeps['runtime'];
  readonly kept: Pick<KeptPods, 'directories' | 'volumes' | 'users' | 'notes'>;
  readonly facts: Pick<PodFacts, 'wanted' | 'isTerminationRequested'>;
  readonly pleg: {
    readonly cache: { lastSeen(uid: PodUid): ObservedPod | undefined };
    runningUnder(name: string, namespace: string): readonly PodUid[];
    requestReinspect(uid: PodUid): void;
  };
  readonly allocation: Pick<NodeAllocation, 'manager' | 'conditions'>;
  readonly runtimeState: Pick<RuntimeState, 'problems' | 'abilities'>;
}

/** What the workers of this node do in each state of a pod. */
export function makePodSyncer(
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
  parts: PodSyncerParts,
): KubeletPodSyncer {
  const { journal, runtime, statuses, cgroups, probes, kept, facts, pleg, runtimeState, nodeIps, cluster } =
    parts;
  const { directories, volumes, users, notes } = kept;
  return new KubeletPodSyncer({
    clock,
    logger,
    journal,
    runtime,
    statuses,
    cgroups,
    directories,
    volumes,
    users,
    notes,
    probes,
    isTerminationRequested: (uid) => facts.isTerminationRequested(uid),
    isWanted: (uid) => facts.wanted(uid) !== undefined,
    unwantedUnderNameOf: ({ metadata: { uid, name, namespace } }) =>
      pleg.runningUnder(name, namespace).find((other) => other !== uid && facts.wanted(other) === undefined),
    networkProblems: () => runtimeState.problems().network,
    nodeIps,
    rejected: parts.rejected,
    claims: parts.claims,
    deviceStatus: parts.deviceStatus,
    cluster,
    lastSeen: (uid) => pleg.cache.lastSeen(uid),
    resizes: new PodResizes({
      manager: parts.allocation.manager,
      conditions: parts.allocation.conditions,
      runtime,
      reinspect: (uid) => pleg.requestReinspect(uid),
    }),
    supportsRecursiveReadOnly: (handler) =>
      runtimeState.abilities.handlers.get(handler)?.recursiveReadOnly === true,
    hasUsableSandbox: (pod, observed) => decideSandbox(pod, observed).kind === 'keep',
  });
}
