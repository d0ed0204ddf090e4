import { crc32 } from 'node:zlib';
import type { Container } from '../../kinds/index.ts';
import { tryParseQuantity } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';

/** A prepared device of a claim. */
export interface ClaimDevice {
  readonly poolName: string;
  readonly deviceName: string;
  /** The share ID of the device; undefined if the device is not shared. */
  readonly shareId: string | undefined;
  /** The requests of the claim that the device satisfies; empty for all requests. */
  readonly requestNames: readonly string[];
  readonly cdiDeviceIds: readonly string[];
}

/** The state of a resource claim that pods of this node use. */
export interface ClaimInfo {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  /** The UIDs of the pods that use the claim. */
  readonly pods: ReadonlySet<string>;
  /** For each driver of the claim's allocation, the devices that the driver has prepared so far. */
  readonly drivers: ReadonlyMap<string, readonly ClaimDevice[]>;
}

class CheckpointError extends Error {}

/** Encodes the claims as checkpoint of the Go kubelet, so that either kubelet can read it. */
export function encodeClaims(claims: readonly ClaimInfo[]): string {
  const Data = JSON.stringify({
    kind: 'DRACheckpoint',
    apiVersion: 'checkpoint.dra.kubelet.k8s.io/v1',
    ClaimInfoStateList: claims.map((claim) => ({
      ClaimUID: claim.uid,
      ClaimName: claim.name,
      Namespace: claim.namespace,
      PodUIDs: Object.fromEntries([...claim.pods].toSorted().map((uid) => [uid, {}])),
      DriverState: Object.fromEntries(
        [...claim.drivers].toSorted().map(([driver, devices]) => [driver, { Devices: devices.map(written) }]),
      ),
    })),
  });
  return JSON.stringify({ Data, Checksum: crc32(Data) });
}

function written(device: ClaimDevice) {
  return {
    PoolName: device.poolName,
    DeviceName: device.deviceName,
    ShareID: device.shareId ?? null,
    RequestNames: device.requestNames,
    CDIDeviceIDs: device.cdiDeviceIds,
  };
}

/** Decodes a claim checkpoint; throws CheckpointError if it is damaged. */
export function decodeClaims(text: string): readonly ClaimInfo[] {
  try {
    const { Data, Checksum } = JSON.parse(text) as { Data: string; Checksum: number };
    if (crc32(Data) !== Checksum)
      throw new Error('the checksum does not match the content of the checkpoint');
    const { ClaimInfoStateList: list } = JSON.parse(Data) as { ClaimInfoStateList: readonly Stored[] | null };
    return (list ?? []).map(readClaim);
  } catch (error) {
    throw new CheckpointError(`Cannot read the claim checkpoint: ${(error as Error).message}`);
  }
}

interface Stored {
  readonly ClaimUID: string;
  readonly ClaimName: string;
  readonly Namespace: string;
  readonly PodUIDs: Readonly<Record<string, unknown>> | null;
  readonly DriverState: Readonly<Record<string, { readonly Devices: readonly StoredDevice[] | null }>> | null;
}

interface StoredDevice {
  readonly PoolName: string;
  readonly DeviceName: string;
  readonly ShareID: string | null;
  readonly RequestNames: readonly string[] | null;
  readonly CDIDeviceIDs: readonly string[] | null;
}

function readClaim(stored: Stored): ClaimInfo {
  const drivers = Object.entries(stored.DriverState ?? {}).map(
    ([driver, { Devices }]) => [driver, (Devices ?? []).map(readDevice)] as const,
  );
  return {
    uid: stored.ClaimUID,
    name: stored.ClaimName,
    namespace: stored.Namespace,
    pods: new Set(Object.keys(stored.PodUIDs ?? {})),
    drivers: new Map(drivers),
  };
}

function readDevice(stored: StoredDevice): ClaimDevice {
  return {
    poolName: stored.PoolName,
    deviceName: stored.DeviceName,
    shareId: stored.ShareID ?? undefined,
    requestNames: stored.RequestNames ?? [],
    cdiDeviceIds: stored.CDIDeviceIDs ?? [],
  };
}

/** The fields of a ResourceClaim (resource.k8s.io/v1) that are used. */
export interface ResourceClaim {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly ownerReferences?: readonly { readonly uid: string; readonly controller?: boolean }[];
  };
  readonly status?: {
    readonly reservedFor?: readonly { readonly uid: string }[];
    readonly allocation?: {
      readonly devices?: { readonly results?: readonly { readonly driver: string }[] };
    };
  };
}

/** A resource claim of a pod, with the name by which the containers of the pod refer to it. */
export interface PodClaim {
  /**
   * The name of the claim in the pod spec; undefined for the claim that the scheduler creates for
   * extended resources.
   */
  readonly podClaimName: string | undefined;
  readonly name: string;
  /** Whether the claim was created for this pod from a template. */
  readonly isFromTemplate: boolean;
}

/**
 * Returns the resource claims of the pod; a template may need no claim. Throws if a claim has not
 * been created yet.
 */
export function claimsOf({ metadata, spec, status }: Pod): readonly PodClaim[] {
  const named = (spec.resourceClaims ?? []).flatMap((claim): readonly PodClaim[] => {
    const { name: podClaimName, resourceClaimName: name } = claim;
    if (name !== undefined) return [{ podClaimName, name, isFromTemplate: false }];
    const made = (status.resourceClaimStatuses ?? []).find((one) => one.name === podClaimName);
    if (made === undefined)
      throw new Error(`pod "${metadata.namespace}/${metadata.name}": ResourceClaim not created yet`);
    return made.resourceClaimName === undefined
      ? []
      : [{ podClaimName, name: made.resourceClaimName, isFromTemplate: true }];
  });
  const { resourceClaimName: name } = status.extendedResourceClaimStatus ?? {};
  return name === undefined ? named : [...named, { podClaimName: undefined, name, isFromTemplate: false }];
}

/**
 * The reference of a container to a request of a claim; an empty request means all requests of the
 * claim.
 */
export interface ClaimRequest {
  readonly claim: string;
  readonly request: string;
}

export function requestsOf(
  pod: Pod,
  container: Pick<Container, 'name' | 'resources'>,
): readonly ClaimRequest[] {
  return [...namedRequests(pod, container), ...resourceRequests(pod, container)];
}

function namedRequests(pod: Pod, { resources }: Pick<Container, 'resources'>): readonly ClaimRequest[] {
  const asked = resources?.claims ?? [];
  if (asked.length === 0) return [];
  const names = new Map(claimsOf(pod).map((claim) => [claim.podClaimName, claim.name]));
  return asked.flatMap(({ name, request = '' }) => {
    const claim = names.get(name);
    return claim === undefined ? [] : [{ claim, request }];
  });
}

/**
 * Returns the claim requests for the container's extended resources, which the scheduler maps to
 * requests of one claim.
 */
function resourceRequests(
  { status }: Pod,
  { name, resources }: Pick<Container, 'name' | 'resources'>,
): readonly ClaimRequest[] {
  const { requestMappings = [], resourceClaimName: claim = '' } = status.extendedResourceClaimStatus ?? {};
  const isRequested = (resource: string) => {
    const { nanos = 0n } = tryParseQuantity(resources?.requests?.[resource] ?? '') ?? {};
    return nanos > 0n;
  };
  return requestMappings
    .filter(({ containerName, resourceName }) => containerName === name && isRequested(resourceName))
    .map(({ requestName: request }) => ({ claim, request }));
}

/** Throws if the claim is not reserved for this pod. */
export function checkClaim(pod: Pod, { isFromTemplate }: PodClaim, claim: ResourceClaim): void {
  const { uid, name, namespace } = pod.metadata;
  const { metadata, status } = claim;
  const isController = (metadata.ownerReferences ?? []).some(
    (owner) => owner.controller === true && owner.uid === uid,
  );
  if (isFromTemplate && !isController) {
    const which = `${metadata.namespace}/${metadata.name}`;
    throw new Error(`ResourceClaim ${which} was not created for Pod ${namespace}/${name} (Pod is not owner)`);
  }
  if ((status?.reservedFor ?? []).some((user) => user.uid === uid)) return;
  throw new Error(
    `pod ${name} (${uid}) is not allowed to use ResourceClaim ${metadata.name} (${metadata.uid})`,
  );
}

/** Returns all drivers of the claim's allocation. Throws if the claim is not allocated. */
export function driversOf({ metadata, status }: ResourceClaim): readonly string[] {
  if (status?.allocation === undefined) throw new Error(`ResourceClaim ${metadata.name}: not allocated`);
  return [...new Set((status.allocation.devices?.results ?? []).map(({ driver }) => driver))];
}
