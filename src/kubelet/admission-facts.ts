import type { PodStanding } from '../checkpoints/index.ts';
import type { Node } from '../kinds/index.ts';
import { hugePageResource, type Pod, type PodUid } from '../pods/index.ts';
import {
  type AdmissionFacts,
  type AdmissionOperation,
  declaredFeatures,
  nodePortRequested,
  type PendingAdmissions,
} from '../resources/index.ts';
import { appArmorProblem, type RuntimeAbilities, sysctlProblem } from '../runtime/index.ts';
import type { KubeletSettings } from './settings.ts';

export interface AdmissionSources {
  readonly pending: Pick<PendingAdmissions, 'after'>;
  readonly standing: (pod: Pod) => PodStanding;
  /** The pods that use, or will use, resources of the node. */
  readonly active: () => readonly Pod[];
  readonly isTerminating: (uid: PodUid) => boolean;
  /**
   * The newest Node object that this kubelet has read; undefined until one was read, and on a node
   * without a cluster.
   */
  readonly node: () => Node | undefined;
  /**
   * Returns the Node object. If the pod already has devices, allocatable includes at least these
   * devices.
   */
  readonly nodeFor: (pod: Pod, node: Node) => Node;
  readonly abilities: () => RuntimeAbilities;
  readonly pressures: () => readonly string[];
  readonly isShuttingDown: () => boolean;
}

/** Collects the current facts on which the admission of a pod depends. */
export function admissionFacts(
  settings: KubeletSettings,
  sources: AdmissionSources,
): (pod: Pod, operation: AdmissionOperation) => AdmissionFacts {
  const { isGateEnabled } = settings;
  const declared = declaredFeatures(isGateEnabled);
  return (pod, operation) => {
    // A resize of a restored pod has to pass admission like the resources of a new pod.
    const standing = operation === 'resize' ? 'new' : sources.standing(pod);
    const node = sources.node() ?? configuredNode(settings);
    // A restored pod is admitted regardless of other pods, because its containers may already run.
    const others = standing === 'restored' ? [] : competitorsOf(pod, sources);
    const ending = others.filter(
      ({ metadata }) => metadata.deletionTimestamp !== undefined || sources.isTerminating(metadata.uid),
    );
    return {
      standing,
      node: sources.nodeFor(pod, node),
      others,
      ending: new Set(ending.map(({ metadata }) => metadata.uid)),
      pressures: sources.pressures(),
      isShuttingDown: sources.isShuttingDown(),
      strictGroups: sources.abilities().strictGroups,
      tolerationRules: isGateEnabled('TaintTolerationComparisonOperators') ? 'with-comparisons' : 'plain',
      podLevelResources: isGateEnabled('PodLevelResources'),
      declaredFeatures: declared && new Set(declared),
      nodePortProblem: nodePortProblem(pod, settings.nodePorts?.()),
      ...kernelProblems(pod, settings),
    };
  };
}

/**
 * The active pods that compete with this pod for resources. The pod itself and pending pods whose
 * admission began later are excluded.
 */
function competitorsOf({ metadata: { uid } }: Pod, { pending, active }: AdmissionSources): readonly Pod[] {
  const later = pending.after(uid);
  return active().filter(({ metadata: other }) => other.uid !== uid && !later.has(other.uid));
}

/** Sysctls and AppArmor profiles of the pod that this node does not allow. */
function kernelProblems(pod: Pod, { kernel }: Pick<KubeletSettings, 'kernel'>) {
  if (kernel === undefined) return {};
  return {
    sysctlProblem: sysctlProblem(pod, kernel.sysctls),
    appArmorProblem: appArmorProblem(pod, kernel.appArmor),
  };
}

function nodePortProblem(pod: Pod, nodePorts: ReadonlySet<number> = new Set()): string | undefined {
  const port = nodePortRequested(pod, nodePorts);
  return port === undefined ? undefined : `host port ${port} is used by the node itself`;
}

/** The ephemeral storage of a node whose disk size is unknown: larger than any disk. */
const anyDisk = `${Number.MAX_SAFE_INTEGER}`;

/**
 * The Node object as this kubelet would register it. Admission uses it until the API server has
 * returned the Node object, because static pods that run this API server must be admitted before
 * that. The size of the disk is not known here, so no pod is rejected for it.
 */
export function configuredNode(settings: KubeletSettings): Node {
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
