import { apiResources } from '../../api/index.ts';
import type { ObjectReader, StoredObject } from '../api/index.ts';
import type { StreamCall } from './deps.ts';
import { addressOf, type KubeletDialer, type KubeletEndpoint } from './kubelet-dialer.ts';
import { badRequest, notFound, unavailable } from './refusals.ts';

interface NamedContainer {
  readonly name: string;
}

/** The pod spec fields that select the container and its kubelet. */
interface PodShape {
  readonly nodeName?: string;
  readonly containers?: readonly NamedContainer[];
  readonly initContainers?: readonly NamedContainer[];
  readonly ephemeralContainers?: readonly NamedContainer[];
}

export function findTargetPod({ namespace, name }: StreamCall, objects: ObjectReader): StoredObject {
  const pod = objects.get(apiResources.pods, namespace, name);
  if (pod === undefined) throw notFound({ kind: 'pods', name });
  return pod;
}

/** The requested container; optional if there is only one. */
export function containerOf(pod: StoredObject, requested: string | null): string {
  const { name } = pod.metadata;
  const { containers = [], initContainers = [], ephemeralContainers = [] } = (pod.spec ?? {}) as PodShape;
  const all = [...initContainers, ...containers, ...ephemeralContainers].map((each) => each.name);
  if (requested !== null && requested !== '') {
    if (!all.includes(requested)) throw badRequest(`container ${requested} is not valid for pod ${name}`);
    return requested;
  }
  const [only] = containers;
  if (only !== undefined && containers.length === 1) return only.name;
  const choice = containers.length === 0 ? '' : `, choose one of: [${all.join(' ')}]`;
  throw badRequest(`a container name must be specified for pod ${name}${choice}`);
}

/** The kubelet of the pod's node; undefined for an unscheduled pod. */
export function assignedNode(pod: StoredObject): string | undefined {
  const { nodeName = '' } = (pod.spec ?? {}) as PodShape;
  return nodeName === '' ? undefined : nodeName;
}

export function kubeletOf(nodeName: string, objects: ObjectReader, dialer: KubeletDialer): KubeletEndpoint {
  const node = objects.get(apiResources.nodes, undefined, nodeName);
  if (node === undefined) throw notFound({ kind: 'nodes', name: nodeName });
  const address = dialer.locate(node) ?? addressOf(node);
  if (address === undefined)
    throw unavailable(`the node ${nodeName} does not report the address of its kubelet`);
  return address;
}
