import type { PodStatus } from '../../kinds/index.ts';
import { formatQuantity, tryParseQuantity } from '../../lib/index.ts';

/**
 * The status in the one form in which equal statuses look equal. An API gives back what it was given in its own words: with
 * null for times nobody set, with empty objects and texts for what is not there, and amounts as it would write them.
 */
export function plainStatus(status: PodStatus): PodStatus {
  return plainFields(status);
}

/**
 * What says something also when it is empty: a container is in a state of which nothing more is known, and one that asked
 * for nothing was given just that.
 */
const tellingWhenEmpty: ReadonlySet<string> = new Set(['waiting', 'running', 'terminated', 'resources']);
const amounts: ReadonlySet<string> = new Set(['requests', 'limits', 'allocatedResources']);

function plainFields<T extends object>(fields: T): T {
  const plain: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields)) {
    const kept = plainValue(key, value);
    if (!isNothing(key, kept)) plain[key] = kept;
  }
  return plain as T;
}

function plainValue(key: string, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => plainValue('', one));
  if (typeof value !== 'object' || value === null) return value;
  return amounts.has(key) ? plainAmounts(value) : plainFields(value);
}

function plainAmounts(list: object): object {
  const plain = Object.entries(list).map(([name, text]) => {
    const amount = tryParseQuantity(String(text));
    return [name, amount === undefined ? text : formatQuantity(amount)];
  });
  return Object.fromEntries(plain);
}

function isNothing(key: string, value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true;
  if (typeof value !== 'object' || tellingWhenEmpty.has(key)) return false;
  return (Array.isArray(value) ? value : Object.keys(value)).length === 0;
}
