import type { PodStanding } from '../checkpoints/index.ts';
import type { Node } from '../kinds/index.ts';
import { hugePageResource, type Pod, type PodJournal, type PodUid } from '../pods/index.ts';
import type { Allotter } from '../resources/index.ts';
import type { PodWorkers } from '../workers/index.ts';
import { AdmissionDesk, type AdmissionDeskDeps } from './admission-desk.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import { nodeAdmission } from './node-admission.ts';
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

/** A node that is alone goes by what is known of it here, as one of a cluster does that has not reached its API. */
export function makeAdmission(
  settings: KubeletSettings,
  deps: Pick<KubeletDeps, 'clock' | 'logger' | 'metrics' | 'cluster'>,
  parts: AdmissionParts,
): AdmissionDesk {
  const { clock, logger, cluster } = deps;
  const admitter = nodeAdmission(settings, {
    ...deps,
    ...parts,
    node: () => cluster?.node() ?? describedNode(settings),
    fetchNode: cluster?.fetchNode ?? (async () => describedNode(settings)),
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
    released: () => admitter.released(),
    judgeResize: (pod) => admitter.judgeResize(pod),
  });
  return desk;
}

function adopting({ adopt }: AdmissionParts, judge: AdmissionDeskDeps['judge']): AdmissionDeskDeps['judge'] {
  return (pod, standing) => {
    if (standing === 'restored') adopt?.(pod);
    return judge(pod, standing);
  };
}

/** More than any disk has. */
const anyDisk = `${Number.MAX_SAFE_INTEGER}`;

/**
 * What can be said of the node where no API has told, or not yet: the pods that serve that API have to be admitted by it.
 * How large its disk is, is not known here: nobody is refused for it.
 */
function describedNode(settings: KubeletSettings): Node {
  const { nodeName: name, nodeLabels, capacity, reserved, withheld = reserved, maxPods } = settings;
  const labels = { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', ...nodeLabels };
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
