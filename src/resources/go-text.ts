import { fnv1a32 } from '../lib/index.ts';

/**
 * The checksum that checkpoints of all kubelets carry is one over the text that Go's own kubelet makes of the value in its
 * memory. These are the parts of such a text; types appear only at the fields of the outermost struct.
 */
export function goStruct(
  type: string,
  fields: readonly (readonly [name: string, type: string, text: string])[],
) {
  const told = fields.map(([name, fieldType, text]) => `${name}:(${fieldType})${text}`).join(' ');
  return `(*${type}){${told}}`;
}

/** Keys are texts, or numbers that are written so. */
export function goMap<V>(entries: ReadonlyMap<string | number, V>, textOf: (value: V) => string): string {
  const sorted = [...entries].toSorted(([one], [other]) => compareKeys(one, other));
  return `map[${sorted.map(([key, value]) => `${key}:${textOf(value)}`).join(' ')}]`;
}

export function goChecksum(text: string): number {
  return fnv1a32(text);
}

/** As Go does: numbers by size, texts by their bytes. */
export function compareKeys(one: string | number, other: string | number): number {
  if (typeof one === 'number' && typeof other === 'number') return one - other;
  return Buffer.compare(Buffer.from(`${one}`), Buffer.from(`${other}`));
}
