import { apiResources, sameValue } from '../../../api/index.ts';
import { parseQuantity, quantityMilliValue, quantityValue } from '../../../lib/index.ts';
import { memoryOf, milliCpuOf, type Pod, podRequests } from '../../../pods/index.ts';
import type { StoredObject, WriteContext } from '../../core/index.ts';
import { typed } from '../pod-object.ts';
import { refusedPod } from './refuse-pod.ts';

/** A pod cannot grow beyond the node it is on. For one that is sound; throws a StatusError. */
export function checkCapacity(pod: StoredObject, { before, objects }: WriteContext): void {
  const { nodeName } = typed(pod).spec;
  if (!nodeName || sameValue(before?.spec, pod.spec)) return;
  const node = objects.get(apiResources.nodes, undefined, nodeName);
  if (node === undefined) throw refusedPod(pod, `node "${nodeName}" not found`);
  const wrong = beyond(pod, (node.status?.['allocatable'] ?? {}) as Readonly<Record<string, string>>);
  if (wrong.length === 0) return;
  throw refusedPod(pod, `node didn't have enough allocatable resources: ${wrong.join('; ')}`, [
    { reason: 'NodeCapacity', message: '' },
  ]);
}

function beyond(pod: StoredObject, allocatable: Readonly<Record<string, string>>): readonly string[] {
  const requests = podRequests(pod as unknown as Pod);
  const cpu = quantityMilliValue(parseQuantity(allocatable['cpu'] ?? '0'));
  const memory = quantityValue(parseQuantity(allocatable['memory'] ?? '0'));
  const told = (name: string, requested: bigint, given: bigint) =>
    requested > given ? [`${name}, requested: ${requested}, allocatable: ${given}`] : [];
  return [...told('cpu', milliCpuOf(requests), cpu), ...told('memory', memoryOf(requests), memory)];
}
