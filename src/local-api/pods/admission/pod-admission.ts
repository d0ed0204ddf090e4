import { apiResources, sameValue } from '../../../api/index.ts';
import type { Toleration } from '../../../kinds/index.ts';
import { parseQuantity, quantityMilliValue, quantityValue } from '../../../lib/index.ts';
import { memoryOf, milliCpuOf, type Pod, podRequests } from '../../../pods/index.ts';
import type { ObjectReader, StoredObject, WriteContext } from '../../api/index.ts';
import { podForbidden, typed, withSpec } from '../pod-object.ts';
import { admitPriority } from './priority.ts';
import { admitRuntimeClass } from './runtime-class.ts';
import { admitServiceAccount } from './service-account.ts';

/**
 * Runs the admission plugins in a fixed order, because later plugins depend on the results of
 * earlier ones. NodeRestriction runs separately.
 */
export function admitPod(pod: StoredObject, write: WriteContext): StoredObject {
  const { verb, subresource } = write;
  if (verb === 'create') return admitNewPod(pod, write);
  if (verb === 'delete') return pod;
  return subresource === undefined ? admitTolerations(admitPriority(pod, write)) : pod;
}

function admitNewPod(pod: StoredObject, write: WriteContext): StoredObject {
  const identified = admitServiceAccount(pod, write);
  const ranked = admitPriority(identified, write);
  return admitTopology(admitRuntimeClass(admitTolerations(ranked), write), write.objects);
}

export { checkOverheadOwner } from './runtime-class.ts';

/**
 * Rejects a resize beyond the allocatable resources of the node. Requires a valid pod; throws a
 * StatusError.
 */
export function checkCapacity(pod: StoredObject, { before, objects }: WriteContext): void {
  const { nodeName } = typed(pod).spec;
  if (!nodeName || sameValue(before?.spec, pod.spec)) return;
  const node = objects.get(apiResources.nodes, undefined, nodeName);
  if (node === undefined) throw podForbidden(pod, `node "${nodeName}" not found`);
  const violations = exceeded(pod, (node.status?.['allocatable'] ?? {}) as Readonly<Record<string, string>>);
  if (violations.length === 0) return;
  throw podForbidden(pod, `node didn't have enough allocatable resources: ${violations.join('; ')}`, [
    { reason: 'NodeCapacity', message: '' },
  ]);
}

function exceeded(pod: StoredObject, allocatable: Readonly<Record<string, string>>): readonly string[] {
  const requests = podRequests(pod as unknown as Pod);
  const cpu = quantityMilliValue(parseQuantity(allocatable['cpu'] ?? '0'));
  const memory = quantityValue(parseQuantity(allocatable['memory'] ?? '0'));
  const describe = (name: string, requested: bigint, given: bigint) =>
    requested > given ? [`${name}, requested: ${requested}, allocatable: ${given}`] : [];
  return [...describe('cpu', milliCpuOf(requests), cpu), ...describe('memory', memoryOf(requests), memory)];
}

/**
 * Rejects pods with resource claims, after all other checks: there is no DRA scheduler, so such a
 * pod would stay pending.
 */
export function checkResourceClaims(pod: StoredObject): void {
  if ((typed(pod).spec.resourceClaims ?? []).length > 0)
    throw podForbidden(
      pod,
      'pod rejected: resource claims are for clusters, and this API has no resource.k8s.io',
    );
}

const tolerationSeconds = 300;

/** Adds the default tolerations for not-ready and unreachable nodes. */
function admitTolerations(pod: StoredObject): StoredObject {
  const { spec } = typed(pod);
  const given = spec.tolerations ?? [];
  const added = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']
    .filter((key) => !given.some((one) => toleratesTaint(one, key)))
    .map((key) => ({
      key,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds,
    }));
  return added.length === 0 ? pod : withSpec(pod, { ...spec, tolerations: [...given, ...added] });
}

function toleratesTaint({ key, effect }: Toleration, taintKey: string): boolean {
  return (!key || key === taintKey) && (!effect || effect === 'NoExecute');
}

const copied = ['topology.kubernetes.io/zone', 'topology.kubernetes.io/region'];

/** The topology labels of a node, which its pods inherit. */
export function topologyLabels(objects: ObjectReader, node: string): Readonly<Record<string, string>> {
  const labels = objects.get(apiResources.nodes, undefined, node)?.metadata.labels ?? {};
  return Object.fromEntries(
    copied.flatMap((key) => (labels[key] === undefined ? [] : [[key, labels[key]] as const])),
  );
}

/**
 * A pod created with a nodeName gets the topology labels of its node at creation; other pods get
 * them at binding.
 */
function admitTopology(pod: StoredObject, objects: ObjectReader): StoredObject {
  const { nodeName } = typed(pod).spec;
  const labels = nodeName ? topologyLabels(objects, nodeName) : {};
  if (Object.keys(labels).length === 0) return pod;
  return { ...pod, metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, ...labels } } };
}
