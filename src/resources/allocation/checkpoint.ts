import type { ResourceRequirements } from '../../kinds/index.ts';
import { describeError, fnv1a32, tryParseQuantity } from '../../lib/index.ts';
import { mayBePodUid, type PodAllocation, type PodUid } from '../../pods/index.ts';

export type Allocations = ReadonlyMap<PodUid, PodAllocation>;

/** The content of a checkpoint file, or why it cannot be used. */
export type ReadCheckpoint =
  | { readonly ok: true; readonly entries: Allocations }
  | { readonly ok: false; readonly why: string };

/**
 * Encodes the checkpoint like the Go kubelet: a JSON string inside JSON, with a checksum of the
 * inner JSON.
 */
export function encodeAllocations(entries: Allocations): {
  readonly text: string;
  readonly checksum: number;
} {
  const data = JSON.stringify(entries.size === 0 ? {} : { entries: Object.fromEntries(written(entries)) });
  const checksum = checksumOf(data);
  return { text: JSON.stringify({ data, checksum }), checksum };
}

function* written(entries: Allocations): Iterable<[string, object]> {
  const byUid = [...entries].toSorted(([a], [b]) => (a < b ? -1 : 1));
  for (const [uid, { containers, pod }] of byUid)
    yield [uid, { ContainerResources: containers, PodLevelResources: pod ?? null }];
}

/**
 * One invalid entry invalidates the file, because resources computed from incomplete allocations
 * would be wrong.
 */
export function decodeAllocations(text: string): ReadCheckpoint {
  try {
    const outer: unknown = JSON.parse(text);
    if (!isRecord(outer) || typeof outer['data'] !== 'string') return bad('it has no data');
    const { data, checksum } = outer;
    if (checksum !== checksumOf(data)) return bad(`its checksum must be ${checksumOf(data)}`);
    const inner: unknown = JSON.parse(data);
    if (!isRecord(inner)) return bad('its data is not an object');
    const { entries = {} } = inner;
    if (!isRecord(entries)) return bad('its entries are not an object');
    const found = new Map<PodUid, PodAllocation>();
    for (const [uid, entry] of Object.entries(entries)) {
      const allocation = mayBePodUid(uid) ? allocationIn(entry) : undefined;
      if (allocation === undefined) return bad(`its entry of the pod ${uid} is invalid`);
      found.set(uid as PodUid, allocation);
    }
    return { ok: true, entries: found };
  } catch (error) {
    return bad(describeError(error));
  }
}

/** The Go type name is part of the text that the checksum covers. */
function checksumOf(data: string): number {
  return fnv1a32(`(string)${data}`);
}

function bad(why: string): ReadCheckpoint {
  return { ok: false, why };
}

function allocationIn(entry: unknown): PodAllocation | undefined {
  if (!isRecord(entry)) return undefined;
  const containers = entry['ContainerResources'] ?? {};
  const pod = entry['PodLevelResources'] ?? undefined;
  if (!isRecord(containers) || !Object.values(containers).every(areResources)) return undefined;
  if (pod !== undefined && !areResources(pod)) return undefined;
  return { containers: containers as PodAllocation['containers'], pod };
}

function areResources(value: unknown): value is ResourceRequirements {
  if (!isRecord(value)) return false;
  const { limits = {}, requests = {}, claims = [] } = value;
  return areAmounts(limits) && areAmounts(requests) && Array.isArray(claims);
}

function areAmounts(value: unknown): boolean {
  return (
    isRecord(value) &&
    Object.values(value).every((text) => typeof text === 'string' && tryParseQuantity(text) !== undefined)
  );
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
