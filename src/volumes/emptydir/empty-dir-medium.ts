import {
  compareQuantities,
  formatQuantity,
  type Quantity,
  quantityOf,
  quantityValue,
  tryParseQuantity,
} from '../../lib/index.ts';
import {
  hasPodLevelResources,
  initContainersOf,
  isHugePages,
  isPositive,
  type Pod,
} from '../../pods/index.ts';
import { roomFor } from '../manager/prepare-volume.ts';
import { unusable } from '../projected/payload.ts';

/** The medium of an emptyDir that is not disk-backed. */
export type MemoryMedium =
  | { readonly kind: 'memory' }
  /** Without a page size in the medium, the page size requested by the pod is used. */
  | { readonly kind: 'huge-pages'; readonly called: string; readonly pageSize: Quantity | undefined };

const anyHugePages = 'HugePages';
const resourcePrefix = 'hugepages-';
/** The upstream message for a quantity that cannot be parsed. */
const noQuantity =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

export function readMedium(medium: string): MemoryMedium {
  if (medium === 'Memory') return { kind: 'memory' };
  if (medium === anyHugePages) return { kind: 'huge-pages', called: medium, pageSize: undefined };
  const [prefix, size] = [`${anyHugePages}-`, medium.slice(anyHugePages.length + 1)];
  if (!medium.startsWith(prefix)) throw unusable(`unknown storage medium ${JSON.stringify(medium)}`);
  return { kind: 'huge-pages', called: medium, pageSize: readPageSize(size) };
}

/** Returns the page size to mount; a container or the pod must request huge pages of that size. */
export function pageSizeFor(
  { called, pageSize }: Extract<MemoryMedium, { readonly kind: 'huge-pages' }>,
  pod: Pod,
): Quantity {
  const asked = askedPageSizes(pod);
  const [found, ...others] =
    pageSize === undefined ? asked : asked.filter((size) => isSame(size, pageSize)).slice(0, 1);
  if (found === undefined) {
    const message = 'hugePages storage requested, but there is no resource request for huge pages';
    throw unusable(`medium ${called}: ${message}`);
  }
  if (others.some((other) => !isSame(found, other))) {
    throw unusable(`medium: ${called} can't be used if container requests multiple huge page sizes`);
  }
  return found;
}

/** An existing mount is accepted only if it has the requested page size. */
export function checkPageSize(
  mounted: { readonly directory: string; readonly pageBytes: bigint | undefined },
  { pageSize }: Extract<MemoryMedium, { readonly kind: 'huge-pages' }>,
  pod: Pod,
): void {
  if (pageSize === undefined) return;
  const { directory, pageBytes } = mounted;
  const where = `pod ${pod.metadata.uid}: mounted dir ${directory} pagesize`;
  if (pageBytes === undefined) throw unusable(`${where} is not determined`);
  const found = quantityOf(pageBytes, 'BinarySI');
  if (isSame(found, pageSize)) return;
  const sizes = `'${formatQuantity(found)}' and requested medium size '${formatQuantity(pageSize)}'`;
  throw unusable(`${where} ${sizes} differ`);
}

/**
 * Computes the size of a memory-backed emptyDir: its sizeLimit applies only if it is the minimum.
 */
export function sizeInMemory(
  pod: Pod,
  sizeLimit: string | undefined,
  allocatable: Parameters<typeof roomFor>[1],
): bigint | undefined {
  const room = roomFor(pod, allocatable);
  if (sizeLimit === undefined) return room;
  const limit = tryParseQuantity(sizeLimit);
  if (limit === undefined) throw unusable(noQuantity);
  if (!isPositive(limit)) return room;
  const bytes = quantityValue(limit);
  return room === undefined || bytes < room ? bytes : room;
}

function askedPageSizes(pod: Pod): readonly Quantity[] {
  const wholes = hasPodLevelResources(pod) ? [pod.spec.resources] : [];
  const parts = [...pod.spec.containers, ...initContainersOf(pod)].map(({ resources }) => resources);
  const names = [...wholes, ...parts].flatMap((resources) => Object.keys(resources?.requests ?? {}));
  return names.filter(isHugePages).map((name) => readPageSize(name.slice(resourcePrefix.length)));
}

function readPageSize(text: string): Quantity {
  const size = tryParseQuantity(text);
  if (size === undefined) throw unusable(noQuantity);
  return size;
}

function isSame(a: Quantity, b: Quantity): boolean {
  return compareQuantities(a, b) === 0;
}
