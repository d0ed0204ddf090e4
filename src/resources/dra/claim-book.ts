import { crc32 } from 'node:zlib';

/** A device as its driver made it ready for a claim. */
export interface ClaimDevice {
  readonly poolName: string;
  readonly deviceName: string;
  /** Undefined for one that is not shared. */
  readonly shareId: string | undefined;
  /** Of the claim; for all of them when empty. */
  readonly requestNames: readonly string[];
  readonly cdiDeviceIds: readonly string[];
}

/** What is known of a claim that pods here use. */
export interface KnownClaim {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  /** The UIDs of pods that use it. */
  readonly pods: ReadonlySet<string>;
  /** All drivers that have something for it, with what they made ready so far. */
  readonly drivers: ReadonlyMap<string, readonly ClaimDevice[]>;
}

export class CheckpointError extends Error {}

/** As the Go kubelet writes it, so that either can go on with what the other has left. */
export function encodeClaims(claims: readonly KnownClaim[]): string {
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

/** Throws CheckpointError for what is none, or not whole. */
export function decodeClaims(text: string): readonly KnownClaim[] {
  try {
    const { Data, Checksum } = JSON.parse(text) as { Data: string; Checksum: number };
    if (crc32(Data) !== Checksum) throw new Error('its checksum is another');
    const { ClaimInfoStateList: list } = JSON.parse(Data) as { ClaimInfoStateList: readonly Stored[] | null };
    return (list ?? []).map(readClaim);
  } catch (error) {
    throw new CheckpointError(`Cannot read the claims that were noted: ${(error as Error).message}`);
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

function readClaim(stored: Stored): KnownClaim {
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
