import type { Node } from '../kinds/index.ts';
import type { Pod, PodJournal, PodUid } from '../pods/index.ts';
import type { PodWorkers } from '../workers/index.ts';
import { nodeAdmission, type PodStanding } from './admission.ts';
import { AdmissionDesk } from './admission-desk.ts';
import { clusterAdmission } from './cluster-admission.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import type { RuntimeAbilities } from './runtime-abilities.ts';
import type { KubeletSettings } from './settings.ts';

export interface AdmissionParts {
  readonly journal: PodJournal;
  readonly workers: () => PodWorkers;
  readonly standing: (pod: Pod) => PodStanding;
  /** Pods that use, or will use, anything of the node. */
  readonly active: () => readonly Pod[];
  readonly abilities: () => RuntimeAbilities;
  /** Also by an earlier kubelet. */
  readonly wasAdmitted: (uid: PodUid) => boolean;
}

/** A node that is alone takes what its owner gives it; one of a cluster looks at all a scheduler may have missed. */
export function makeAdmission(
  settings: KubeletSettings,
  deps: Pick<KubeletDeps, 'clock' | 'logger' | 'metrics' | 'cluster'>,
  parts: AdmissionParts,
): AdmissionDesk {
  const { clock, logger, cluster } = deps;
  if (cluster === undefined) {
    const judge = nodeAdmission(settings, parts.abilities);
    return new AdmissionDesk({ clock, logger, judge, settle: async () => ({ admit: true }) });
  }
  const admitter = clusterAdmission(settings, {
    ...deps,
    ...parts,
    node: () => cluster.node() ?? describedNode(settings),
    fetchNode: cluster.fetchNode,
    beside: ({ metadata: { uid } }) => {
      const later = desk.after(uid);
      return parts.active().filter(({ metadata: other }) => other.uid !== uid && !later.has(other.uid));
    },
  });
  const desk: AdmissionDesk = new AdmissionDesk({
    clock,
    logger,
    judge: (pod) => admitter.judge(pod),
    settle: (pod, judgement, signal) => admitter.settle(pod, judgement, signal),
    judgeResize: (pod) => admitter.judgeResize(pod),
  });
  return desk;
}

/** What can be said of the node before the API has told. */
function describedNode({ nodeName: name, capacity, reserved, maxPods }: KubeletSettings): Node {
  const labels = { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux' };
  const allocatable = {
    cpu: `${Math.max(0, capacity.milliCpu - reserved.milliCpu)}m`,
    memory: `${Math.max(0, capacity.memoryBytes - reserved.memoryBytes)}`,
    pods: `${maxPods}`,
  };
  return { metadata: { name, labels }, status: { allocatable } };
}
