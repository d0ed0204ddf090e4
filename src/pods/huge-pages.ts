import { quantityValue, tryParseQuantity } from '../lib/index.ts';
import { isHugePages, type ResourceList } from './resources.ts';

/** Bytes by the size of a page as the files of cgroups spell it; only sizes that are named in the list. */
export function hugePageAmounts(list: ResourceList): ReadonlyMap<string, bigint> {
  return new Map(
    [...list].flatMap(([name, amount]): [string, bigint][] => {
      const size = isHugePages(name) ? tryParseQuantity(name.slice('hugepages-'.length)) : undefined;
      return size === undefined ? [] : [[hugePageSizeName(quantityValue(size)), quantityValue(amount)]];
    }),
  );
}

const units = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'] as const;

/** As the files of cgroups spell it: 2097152 is 2MB. */
export function hugePageSizeName(bytes: bigint): string {
  let [size, unit] = [bytes, 0];
  while (size > 0n && size % 1024n === 0n && unit < units.length - 1) {
    size /= 1024n;
    unit++;
  }
  return `${size}${units[unit]}`;
}

/** The files of cgroups say 2MB where the API says hugepages-2Mi; they mean the same. */
export function hugePageResource(size: string): string {
  return `hugepages-${size.replace(/B$/, '').replace(/[KMGTP]$/, '$&i')}`;
}
