import { fnv1a32, KubelingError } from '../../lib/index.ts';
import type { PodUid } from '../../pods/index.ts';
import type { RuntimeFiles } from '../../runtime/index.ts';
import type { DeviceAllocation } from './pod-devices.ts';

/** The checkpoint file in the device plugin directory; the Go kubelet uses the same file. */
export const checkpointName = 'kubelet_internal_checkpoint';

/** The content of the device checkpoint. */
export interface DeviceCheckpointData {
  readonly allocations: readonly DeviceAllocation[];
  /** The healthy devices of each registered resource. */
  readonly registered: ReadonlyMap<string, readonly string[]>;
}

interface Entry {
  readonly PodUID: string;
  readonly ContainerName: string;
  readonly ResourceName: string;
  readonly DeviceIDs: Readonly<Record<string, readonly string[]>> | null;
  /** The Allocate response of the plugin, as Protobuf in base64. */
  readonly AllocResp: string | null;
}

interface Data {
  readonly PodDeviceEntries: readonly Entry[] | null;
  readonly RegisteredDevices: Readonly<Record<string, readonly string[] | null>> | null;
}

export function encodeCheckpoint({ allocations, registered }: DeviceCheckpointData): string {
  const entries = allocations.map(
    ({ uid, container, resource, devices, response }): Entry => ({
      PodUID: uid,
      ContainerName: container,
      ResourceName: resource,
      DeviceIDs: Object.fromEntries(devices),
      AllocResp: Buffer.from(response).toString('base64'),
    }),
  );
  const data: Data = {
    PodDeviceEntries: entries.length === 0 ? null : entries,
    RegisteredDevices: Object.fromEntries(registered),
  };
  return JSON.stringify({ Data: data, Checksum: checksum(data) });
}

/** Decodes the device checkpoint; throws DEVICE_CHECKPOINT if it is damaged. */
export function decodeCheckpoint(text: string): DeviceCheckpointData {
  try {
    const { Data: data, Checksum: expected } = JSON.parse(text) as { Data: Data; Checksum: number };
    const found = checksum(data);
    if (found !== expected)
      throw new Error(`the checksum of the checkpoint is ${found} and should be ${expected}`);
    return {
      allocations: (data.PodDeviceEntries ?? []).map(readEntry),
      registered: new Map(
        Object.entries(data.RegisteredDevices ?? {}).map(([name, ids]) => [name, ids ?? []]),
      ),
    };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new KubelingError('DEVICE_CHECKPOINT', `Cannot use the device checkpoint: ${why}`, { cause });
  }
}

function readEntry({ PodUID, ContainerName, ResourceName, DeviceIDs, AllocResp }: Entry): DeviceAllocation {
  const devices = new Map(Object.entries(DeviceIDs ?? {}).map(([node, ids]) => [Number(node), ids]));
  return {
    uid: PodUID as PodUid,
    container: ContainerName,
    resource: ResourceName,
    devices,
    response: Buffer.from(AllocResp ?? '', 'base64'),
  };
}

/**
 * Returns the checksum over Go's dump of the data, so that this kubelet and the Go kubelet can read
 * each other's file.
 */
function checksum({ PodDeviceEntries: entries, RegisteredDevices: registered }: Data): number {
  const list = entries === null ? '<nil>' : `[${entries.map(entryText).join(' ')}]`;
  const fields = [
    `PodDeviceEntries:([]checkpoint.PodDevicesEntry)${list}`,
    `RegisteredDevices:(map[string][]string)${mapText(registered, byBytes)}`,
  ];
  return fnv1a32(`(checkpoint.checkpointData){${fields.join(' ')}}`);
}

function entryText(entry: Entry): string {
  const response = entry.AllocResp === null ? '<nil>' : `[${bytesOf(entry.AllocResp).join(' ')}]`;
  const fields = [
    `PodUID:(string)${entry.PodUID}`,
    `ContainerName:(string)${entry.ContainerName}`,
    `ResourceName:(string)${entry.ResourceName}`,
    `DeviceIDs:(checkpoint.DevicesPerNUMA)${mapText(entry.DeviceIDs, (a, b) => Number(a) - Number(b))}`,
    `AllocResp:([]uint8)${response}`,
  ];
  return `{${fields.join(' ')}}`;
}

function mapText(
  map: Readonly<Record<string, readonly string[] | null>> | null,
  compare: (one: string, other: string) => number,
): string {
  if (map === null) return '<nil>';
  const parts = Object.keys(map)
    .toSorted(compare)
    .map((key) => `${key}:${map[key] === null ? '<nil>' : `[${(map[key] ?? []).join(' ')}]`}`);
  return `map[${parts.join(' ')}]`;
}

function bytesOf(base64: string): readonly number[] {
  return [...Buffer.from(base64, 'base64')];
}

function byBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

const fileMode = 0o600;
/** The maximum size of the checkpoint, far above the size for all devices of a machine. */
const largestFile = 64 << 20;

/** Reads and writes the device checkpoint kubelet_internal_checkpoint. */
export class DeviceCheckpoint {
  readonly #path: string;
  readonly #files: Pick<RuntimeFiles, 'readEnd' | 'replace'>;
  readonly #record: () => DeviceCheckpointData;
  #isThere = false;
  #written = '';
  #writing: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(
    path: string,
    files: Pick<RuntimeFiles, 'readEnd' | 'replace'>,
    record: () => DeviceCheckpointData,
  ) {
    this.#path = path;
    this.#files = files;
    this.#record = record;
  }

  /** Whether a checkpoint exists, including a damaged one. */
  get exists(): boolean {
    return this.#isThere;
  }

  /**
   * Reads the checkpoint; undefined if there is none. Throws DEVICE_CHECKPOINT if it is damaged.
   */
  async read(): Promise<DeviceCheckpointData | undefined> {
    const bytes = await this.#files.readEnd(this.#path, largestFile);
    this.#isThere = bytes !== undefined;
    return bytes && decodeCheckpoint(bytes.toString());
  }

  /** Resolves when the current device allocations are written to the checkpoint. */
  save(): Promise<void> {
    // A write in progress may have started before the latest change, so another write follows it.
    this.#next ??= this.#writing.then(() => {
      this.#next = undefined;
      const write = this.#write();
      this.#writing = write.catch(() => {});
      return write;
    });
    return this.#next;
  }

  /** Resolves when no checkpoint write is in progress. */
  async flushed(): Promise<void> {
    await this.#next?.catch(() => {});
    await this.#writing;
  }

  async #write(): Promise<void> {
    const text = encodeCheckpoint(this.#record());
    if (text === this.#written) return;
    try {
      await this.#files.replace(this.#path, text, { mode: fileMode });
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new KubelingError('DEVICE_CHECKPOINT', `failed to write checkpoint file: ${why}`, { cause });
    }
    this.#written = text;
    this.#isThere = true;
  }
}
