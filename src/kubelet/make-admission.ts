import type { Node } from '../kinds/index.ts';
import type { Pod, PodJournal, PodUid } from '../pods/index.ts';
import type { Allotments } from '../resources/index.ts';
import type { PodWorkers } from '../workers/index.ts';
import { nodeAdmission, type PodStanding } from './admission.ts';
import { AdmissionDesk, type AdmissionDeskDeps } from './admission-desk.ts';
import { clusterAdmission } from './cluster-admission.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import type { RuntimeAbilities } from './runtime-abilities.ts';
import type { KubeletSettings } from './settings.ts';

type Judge = AdmissionDeskDeps['judge'];

export interface AdmissionParts {
  readonly journal: PodJournal;
  readonly workers: () => PodWorkers;
  readonly standing: (pod: Pod) => PodStanding;
  /** Pods that use, or will use, anything of the node. */
  readonly active: () => readonly Pod[];
  readonly abilities: () => RuntimeAbilities;
  readonly allotments: Allotments;
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
    const judge = adopting(nodeAdmission(settings, parts.abilities), parts.allotments);
    return new AdmissionDesk({
      clock,
      logger,
      judge: allotted(judge, parts.allotments),
      settle: async (pod, _judgement, signal) => {
        const refusal = await parts.allotments.allot(pod, signal);
        return refusal === undefined ? { admit: true } : { admit: false, ...refusal };
      },
    });
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
    judge: adopting((pod) => admitter.judge(pod), parts.allotments),
    settle: (pod, judgement, signal) => admitter.settle(pod, judgement, signal),
  });
  return desk;
}

/** A pod that lives here since before this kubelet keeps what it has to itself. */
function adopting(judge: Judge, allotments: Allotments): Judge {
  return (pod, others, standing) => {
    if (standing === 'lives-here') allotments.adopt(pod);
    return judge(pod, others, standing);
  };
}

/** On a node that is alone nothing else has to be settled. */
function allotted(judge: Judge, allotments: Allotments): Judge {
  return (pod, others, standing) => {
    const judgement = judge(pod, others, standing);
    const isNext = judgement.kind === 'admit' && standing !== 'lives-here' && allotments.isAskedBy(pod);
    return isNext ? { kind: 'allot' } : judgement;
  };
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
