import type { Node } from '../kinds/index.ts';
import { hugePageResource, type Pod, type PodJournal, type PodUid } from '../pods/index.ts';
import type { Allotter } from '../resources/index.ts';
import type { PodWorkers } from '../workers/index.ts';
import { nodeAdmission, type PodStanding } from './admission.ts';
import { AdmissionDesk, type AdmissionDeskDeps } from './admission-desk.ts';
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
  readonly isShuttingDown: () => boolean;
  /** Nothing comes by the piece unless given. */
  readonly allotter?: Allotter | undefined;
  /** Told of each pod that lives here since before this kubelet: it keeps what it has for itself. */
  readonly adopt?: ((pod: Pod) => void) | undefined;
  /** The node as the pod may see it, by what it has got already. */
  readonly nodeFor?: ((pod: Pod, node: Node) => Node) | undefined;
  /** Also by an earlier kubelet. */
  readonly wasAdmitted: (uid: PodUid) => boolean;
  /** What the node is short of. */
  readonly pressures: () => readonly string[];
}

/** A node that is alone takes what its owner gives it; one of a cluster looks at all a scheduler may have missed. */
export function makeAdmission(
  settings: KubeletSettings,
  deps: Pick<KubeletDeps, 'clock' | 'logger' | 'metrics' | 'cluster'>,
  parts: AdmissionParts,
): AdmissionDesk {
  const { clock, logger, cluster } = deps;
  if (cluster === undefined) return admissionAlone(settings, deps, parts);
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
    judge: adopting(parts, (pod) => admitter.judge(pod)),
    settle: (pod, judgement, signal) => admitter.settle(pod, judgement, signal),
    judgeResize: (pod) => admitter.judgeResize(pod),
  });
  return desk;
}

function admissionAlone(
  settings: KubeletSettings,
  { clock, logger }: Pick<KubeletDeps, 'clock' | 'logger'>,
  parts: AdmissionParts,
): AdmissionDesk {
  const { active, standing, allotter } = parts;
  const judge = nodeAdmission(settings, parts);
  return new AdmissionDesk({
    clock,
    logger,
    judge: adopting(parts, (pod, others, is) =>
      judge(pod, others, is, allotter?.isAskedBy(pod) === true ? 'awaited' : undefined),
    ),
    settle: async (pod, _judgement, signal) => {
      const refusal = await allotter?.allot(pod, signal);
      const others = () => active().filter(({ metadata: { uid } }) => uid !== pod.metadata.uid);
      const judgement = judge(pod, others, standing(pod), refusal);
      return judgement.kind === 'refuse' ? { admit: false, ...judgement.refusal } : { admit: true };
    },
  });
}

function adopting({ adopt }: AdmissionParts, judge: AdmissionDeskDeps['judge']): AdmissionDeskDeps['judge'] {
  return (pod, others, standing) => {
    if (standing === 'lives-here') adopt?.(pod);
    return judge(pod, others, standing);
  };
}

/** More than any disk has. */
const anyDisk = `${Number.MAX_SAFE_INTEGER}`;

/**
 * What can be said of the node before the API has told, which the pods that serve that API have to be admitted by. How
 * large its disk is, is not known here: nobody is refused for it.
 */
function describedNode(settings: KubeletSettings): Node {
  const { nodeName: name, capacity, reserved, withheld = reserved, maxPods } = settings;
  const labels = { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux' };
  const pages = [...(capacity.hugePages ?? [])].map(([size, bytes]) => [hugePageResource(size), `${bytes}`]);
  const allocatable = {
    cpu: `${Math.max(0, capacity.milliCpu - withheld.milliCpu)}m`,
    memory: `${Math.max(0, capacity.memoryBytes - withheld.memoryBytes)}`,
    pods: `${maxPods}`,
    'ephemeral-storage': anyDisk,
    ...Object.fromEntries(pages),
  };
  return { metadata: { name, labels }, status: { allocatable } };
}
