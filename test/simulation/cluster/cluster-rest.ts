import type { PodStatus } from '../../../src/kinds/index.ts';
import type { Kubelet } from '../../../src/kubelet/index.ts';
import type { StoredObject } from '../../../src/local-api/api/stored-object.ts';
import type { PodUid } from '../../../src/pods/index.ts';
import { sameStatus } from '../../../src/status/index.ts';
import { plainStatus } from '../../../src/status/writer/sync-status.ts';
import { outcomeOf } from '../outcome.ts';
import type { PodSketch } from '../sketch.ts';
import { type ClusterWorld, isMirror, isOfSketch, ownUidOf } from './cluster-world.ts';
import { differences } from './differences.ts';

const leaseMs = 40_000;

export interface RestScene {
  readonly cluster: ClusterWorld;
  readonly kubelet: Kubelet | undefined;
  readonly wanted: readonly { readonly uid: string; readonly sketch: PodSketch }[];
  readonly now: number;
  /** The containers that run according to the runtime. */
  readonly running: readonly { readonly podUid: string; readonly name: string; readonly id: string }[];
}

/** Differences between the API objects and the state expected when the node has no pending work. */
export function unlikeTheNode(scene: RestScene): readonly string[] {
  const { cluster, kubelet, wanted } = scene;
  if (kubelet === undefined) return ['no kubelet is running'];
  const uids = new Set(wanted.map(({ uid }) => uid));
  const objects = cluster.pods();
  return [
    ...wanted.flatMap(({ uid, sketch }) => missing(cluster, uid, sketch)),
    ...objects.flatMap((object) => strange(object, uids)),
    ...objects.flatMap((object) => untrue(object, kubelet)),
    ...untold(scene),
    ...nodeProblems(scene),
  ];
}

function missing(cluster: ClusterWorld, uid: string, sketch: PodSketch): readonly string[] {
  const object = sketch.source === 'api' ? cluster.pod(sketch.name) : cluster.mirrorOf(sketch);
  if (object !== undefined && isOfSketch(object, sketch)) return [];
  const found = object === undefined ? 'nothing' : `${object.metadata.uid} of ${ownUidOf(object)}`;
  return [`${uid} of ${sketch.name} is not in the API, which has ${found}`];
}

function strange(object: StoredObject, expected: ReadonlySet<string>): readonly string[] {
  const { name, uid, deletionTimestamp } = object.metadata;
  const kind = isMirror(object) ? 'mirror' : 'pod';
  if (deletionTimestamp !== undefined) return [`the ${kind} ${name} (${uid}) is still being deleted`];
  return expected.has(ownUidOf(object)) ? [] : [`the ${kind} ${name} (${uid}) exists but is not desired`];
}

function untrue(object: StoredObject, kubelet: Kubelet): readonly string[] {
  const uid = ownUidOf(object);
  const own = kubelet.state.statuses.getPodStatus(uid as PodUid);
  const told = (object.status ?? {}) as PodStatus;
  if (own !== undefined && sameStatus(plainStatus(told), plainStatus(own))) return [];
  const where = differences(plainStatus(told), own && plainStatus(own)).join(' ');
  return [`the API tells of ${uid} (${object.metadata.name}) ${where}`];
}

/**
 * Compares with the runtime instead of the kubelet's own state: every running container of a pod
 * that is expected to reach a final state must be reported as running.
 */
function untold({ cluster, wanted, running }: RestScene): readonly string[] {
  const uids = new Set(
    wanted.filter(({ sketch }) => outcomeOf(sketch) !== 'never-settles').map(({ uid }) => uid),
  );
  return cluster.pods().flatMap((object) => {
    const uid = ownUidOf(object);
    const reported = toldContainers((object.status ?? {}) as PodStatus);
    return running
      .filter(({ podUid, id }) => podUid === uid && uids.has(uid) && !reported.has(id))
      .map(({ name, id }) => `the API status of ${uid} does not report that ${name} (${id}) runs`);
  });
}

/** The IDs of the containers reported as running, without the runtime prefix. */
function toldContainers(status: PodStatus): ReadonlySet<string> {
  const { containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] } = status;
  return new Set(
    [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses]
      .filter(({ state }) => state?.running !== undefined)
      .map(({ containerID = '' }) => containerID.slice(containerID.indexOf('://') + 3)),
  );
}

interface Condition {
  readonly type: string;
  readonly status: string;
}

function nodeProblems({ cluster, kubelet, now }: RestScene): readonly string[] {
  const conditions = (cluster.theNode()?.status?.['conditions'] ?? []) as readonly Condition[];
  const ready = conditions.find(({ type }) => type === 'Ready')?.status;
  const pressures = conditions.filter(({ type, status }) => type.endsWith('Pressure') && status === 'True');
  const output = pressures.map(({ type }) => type).toSorted();
  const found = [...(kubelet?.control.pressures() ?? [])].toSorted();
  const renewed = Date.parse(String(cluster.lease()?.spec?.['renewTime'] ?? ''));
  return [
    ...(ready === 'True' ? [] : [`the Node is ${ready === undefined ? 'missing' : 'not ready'}`]),
    ...(output.join() === found.join() ? [] : [`the Node reports ${output}, expected ${found}`]),
    ...(Math.abs(now - renewed) < leaseMs ? [] : [`the lease was renewed at ${renewed}, now is ${now}`]),
  ];
}
