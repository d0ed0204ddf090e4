import type { ValueType } from './fields.ts';
import { effectiveName } from './fields.ts';
import type { Origin } from './findings.ts';

/** A type-checked value of one configuration layer, with its origin. */
export type RawValue =
  | { readonly kind: 'value'; readonly value: unknown; readonly origin: Origin }
  | { readonly kind: 'list'; readonly items: readonly RawValue[]; readonly origin: Origin }
  /** A JSON object or a map. */
  | RawMap
  /** An explicit null, which restores the default. */
  | { readonly kind: 'nothing'; readonly origin: Origin };

export interface RawMap {
  readonly kind: 'map';
  readonly entries: ReadonlyMap<string, RawValue>;
  readonly origin: Origin;
}

export function emptyRawMap(origin: Origin): RawMap {
  return { kind: 'map', entries: new Map(), origin };
}

/**
 * Merges a later layer over an earlier one as in RFC 7396: maps are merged, other values are
 * replaced, null removes a value.
 */
export function mergeRawValues(base: RawMap, later: RawMap): RawMap {
  const entries = new Map(base.entries);
  for (const [key, node] of later.entries) {
    if (node.kind === 'nothing') {
      entries.delete(key);
      continue;
    }
    const before = entries.get(key);
    entries.set(
      key,
      node.kind === 'map'
        ? mergeRawValues(before?.kind === 'map' ? before : emptyRawMap(node.origin), node)
        : node,
    );
  }
  return { kind: 'map', entries, origin: later.origin };
}

/** Sets the value at a path of names, replacing any previous value. */
export function replaceRawValue(tree: RawMap, path: readonly string[], node: RawValue): RawMap {
  const [name, ...rest] = path;
  if (name === undefined) return tree;
  const before = tree.entries.get(name);
  const inner = before?.kind === 'map' ? before : emptyRawMap(node.origin);
  const entries = new Map(tree.entries).set(
    name,
    rest.length === 0 ? node : replaceRawValue(inner, rest, node),
  );
  return { ...tree, entries };
}

/** Converts a value of the given type to a layer in which all values have the same origin. */
export function toRawValue(type: ValueType, value: unknown, origin: Origin): RawValue {
  if (type.kind === 'list') {
    return {
      kind: 'list',
      items: (value as readonly unknown[]).map((item) => toRawValue(type.item, item, origin)),
      origin,
    };
  }
  if (type.kind !== 'map' && type.kind !== 'object') return { kind: 'value', value, origin };
  const entries = new Map<string, RawValue>();
  const source = value as Readonly<Record<string, unknown>>;
  if (type.kind === 'map') {
    for (const [key, item] of Object.entries(source)) entries.set(key, toRawValue(type.item, item, origin));
  } else {
    for (const [name, field] of Object.entries(type.fields)) {
      const item = source[effectiveName(name, field.type)];
      if (item !== undefined) entries.set(name, toRawValue(field.type, item, origin));
    }
  }
  return { kind: 'map', entries, origin };
}
