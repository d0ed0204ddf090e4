import { formatQuantity, type Quantity, quantityValue, tryParseQuantity } from '../../lib/index.ts';
import { initContainersOf, isPositive, type Pod, podLimits, readResources } from '../../pods/index.ts';
import type { PodResourceUsage } from './eviction-stats.ts';
import { diskUsage } from './rank.ts';

/** The signal names of local storage limits in metrics. */
export type LimitSignal = 'emptydirfs.limit' | 'ephemeralpodfs.limit' | 'ephemeralcontainerfs.limit';

export interface OverLimit {
  readonly signal: LimitSignal;
  /** The eviction message for the exceeded limit; part of the API. */
  readonly message: string;
}

const resource = 'ephemeral-storage';

/** Whether the pod has any local storage limit. */
export function hasStorageLimits(pod: Pod): boolean {
  return emptyDirLimits(pod).length > 0 || podLimits(pod).has(resource) || containerLimits(pod).length > 0;
}

/** Returns the first local storage limit that the pod exceeds. */
export function overStorageLimit(pod: Pod, measures: PodResourceUsage): OverLimit | undefined {
  return overEmptyDir(pod, measures) ?? overPod(pod, measures) ?? overContainer(pod, measures);
}

function overEmptyDir(pod: Pod, { volumes }: PodResourceUsage): OverLimit | undefined {
  const found = emptyDirLimits(pod).find(([name, limit]) => isOver(volumes.get(name)?.bytes, limit));
  if (found === undefined) return undefined;
  const [name, limit] = found;
  return {
    signal: 'emptydirfs.limit',
    message: `Usage of EmptyDir volume ${quoted(name)} exceeds the limit ${quoted(formatQuantity(limit))}. `,
  };
}

function overPod(pod: Pod, measures: PodResourceUsage): OverLimit | undefined {
  const limit = podLimits(pod).get(resource);
  const { bytes } = diskUsage(pod, measures, ['rootfs', 'logs', 'volumes']);
  if (limit === undefined || !isOver(bytes + (measures.others?.bytes ?? 0), limit)) return undefined;
  return {
    signal: 'ephemeralpodfs.limit',
    message: `Pod ephemeral local storage usage exceeds the total limit of containers ${formatQuantity(limit)}. `,
  };
}

/**
 * Returns the first container that exceeds its storage limit; undefined if none does. Writable
 * layers count on any file system.
 */
function overContainer(pod: Pod, { containers }: PodResourceUsage): OverLimit | undefined {
  const used = new Map(
    containers.map(({ name, rootfs, logs }) => [name, (rootfs?.bytes ?? 0) + (logs?.bytes ?? 0)]),
  );
  const found = containerLimits(pod).find(([name, limit]) => isOver(used.get(name), limit));
  if (found === undefined) return undefined;
  const [name, limit] = found;
  return {
    signal: 'ephemeralcontainerfs.limit',
    message: `Container ${name} exceeded its local ephemeral storage limit ${quoted(formatQuantity(limit))}. `,
  };
}

function emptyDirLimits({ spec }: Pod): readonly (readonly [string, Quantity])[] {
  return (spec.volumes ?? []).flatMap(({ name, emptyDir }) => {
    const limit = tryParseQuantity(emptyDir?.sizeLimit ?? '');
    return isPositive(limit) ? [[name, limit] as const] : [];
  });
}

function containerLimits(pod: Pod): readonly (readonly [string, Quantity])[] {
  return [...pod.spec.containers, ...initContainersOf(pod)].flatMap(({ name, resources }) => {
    const limit = readResources(resources?.limits).get(resource);
    return isPositive(limit) ? [[name, limit] as const] : [];
  });
}

function isOver(bytes: number | undefined, limit: Quantity): boolean {
  return bytes !== undefined && BigInt(Math.trunc(bytes)) > quantityValue(limit);
}

/** Quotes like Go's %q; names and amounts contain no characters that need escaping. */
function quoted(text: string): string {
  return `"${text}"`;
}
