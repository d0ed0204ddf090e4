import { type JsonObject, sameValue } from '../../api/index.ts';
import { computeQosClass, type Pod } from '../../pods/index.ts';
import type { ApiUser } from './request.ts';
import type { StoredMeta, StoredObject } from './stored-object.ts';

/** What a resource does differently from the others. */
export interface Strategy {
  /** Whether the status is written by itself only. */
  readonly status: 'apart' | 'along';
  /** Whether changes of the spec are counted. */
  readonly generation: 'counted' | 'none';
  readonly updateWithoutVersion: 'allowed' | 'refused';
  readonly createByUpdate: 'allowed' | 'refused';
  /** What the server makes of a new object. */
  readonly begin: (object: StoredObject, user: ApiUser) => StoredObject;
}

const usual: Strategy = {
  status: 'along',
  generation: 'none',
  updateWithoutVersion: 'allowed',
  createByUpdate: 'refused',
  begin: (object) => object,
};

const strategies: Readonly<Record<string, Partial<Strategy>>> = {
  pods: { status: 'apart', generation: 'counted', begin: beginPod },
  // A node registers with its status.
  nodes: { status: 'apart' },
  services: { status: 'apart', createByUpdate: 'allowed' },
  persistentvolumes: { status: 'apart', begin: pending },
  persistentvolumeclaims: { status: 'apart', begin: pending },
  volumeattachments: { status: 'apart', begin: (object) => ({ ...object, status: { attached: false } }) },
  certificatesigningrequests: { status: 'apart', begin: beginSigningRequest },
  events: { createByUpdate: 'allowed' },
  leases: { updateWithoutVersion: 'refused', createByUpdate: 'allowed' },
  csinodes: { updateWithoutVersion: 'refused' },
  csidrivers: { generation: 'counted' },
};

export function strategyOf(plural: string): Strategy {
  return { ...usual, ...strategies[plural] };
}

function pending(object: StoredObject): StoredObject {
  return { ...object, status: { phase: 'Pending' } };
}

function beginPod(object: StoredObject): StoredObject {
  const spec: JsonObject = {
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    dnsPolicy: 'ClusterFirst',
    enableServiceLinks: true,
    containers: [],
    ...object.spec,
  };
  const pod = { ...object, spec, status: { phase: 'Pending' } };
  return { ...pod, status: { ...pod.status, qosClass: computeQosClass(pod as unknown as Pod) } };
}

/** Who asked is what the signer decides by, so that it cannot be claimed. */
function beginSigningRequest(object: StoredObject, { name, groups }: ApiUser): StoredObject {
  return { ...object, spec: { ...object.spec, username: name, groups }, status: {} };
}

/** Fields of the metadata that only the server writes. */
const serversOwn = [
  'name',
  'namespace',
  'generateName',
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'generation',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
] as const;

/** The metadata after a change: what is the caller's from the wanted object, the rest as it was. */
export function changedMeta(before: StoredMeta, wanted: JsonObject): StoredMeta {
  const own = serversOwn.flatMap((name) => (before[name] === undefined ? [] : [[name, before[name]]]));
  const others = Object.entries(wanted).filter(([name]) => !(serversOwn as readonly string[]).includes(name));
  return Object.fromEntries([...own, ...others]) as StoredMeta;
}

/** What a change makes of an object, by the part of it that was written to. */
export function changed(
  strategy: Strategy,
  before: StoredObject,
  wanted: JsonObject,
  subresource: string | undefined,
): StoredObject {
  const metadata = changedMeta(before.metadata, (wanted['metadata'] ?? {}) as JsonObject);
  if (subresource !== undefined) return changedPart(before, metadata, wanted, subresource);
  const { apiVersion, kind } = before;
  const { status: _, ...rest } = wanted;
  const next = strategy.status === 'apart' ? withStatus(rest, before.status) : wanted;
  const whole = { ...next, apiVersion, kind, metadata } as StoredObject;
  return strategy.generation === 'counted' ? counted(before, whole) : whole;
}

function changedPart(
  before: StoredObject,
  metadata: StoredMeta,
  wanted: JsonObject,
  subresource: string,
): StoredObject {
  const status = wanted['status'] as JsonObject | undefined;
  if (subresource === 'approval') {
    const conditions = status?.['conditions'];
    return { ...before, metadata, status: { ...before.status, ...(conditions ? { conditions } : {}) } };
  }
  return { ...(withStatus(before, status) as StoredObject), metadata: keptOwners(before, metadata) };
}

/** Writing the status of a pod never changes who owns it. */
function keptOwners({ kind, metadata: { ownerReferences } }: StoredObject, metadata: StoredMeta): StoredMeta {
  if (kind !== 'Pod') return metadata;
  const { ownerReferences: _, ...rest } = metadata;
  return (ownerReferences === undefined ? rest : { ...rest, ownerReferences }) as StoredMeta;
}

function withStatus(object: JsonObject, status: JsonObject | undefined): JsonObject {
  const { status: _, ...rest } = object;
  return status === undefined ? rest : { ...rest, status };
}

function counted(before: StoredObject, after: StoredObject): StoredObject {
  if (sameValue(before.spec, after.spec)) return after;
  const generation = (before.metadata.generation ?? 0) + 1;
  return { ...after, metadata: { ...after.metadata, generation } };
}
