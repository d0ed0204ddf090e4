import type { ValueType } from './fields.ts';
import { effectiveName } from './fields.ts';
import type { Origin } from './findings.ts';

/** What somebody wrote: values that have passed their type, each with its origin. */
export type Written =
  | { readonly kind: 'value'; readonly value: unknown; readonly origin: Origin }
  | { readonly kind: 'list'; readonly items: readonly Written[]; readonly origin: Origin }
  /** An object or a map. */
  | WrittenMap
  /** A written null: back to the default. */
  | { readonly kind: 'nothing'; readonly origin: Origin };

export interface WrittenMap {
  readonly kind: 'map';
  readonly entries: ReadonlyMap<string, Written>;
  readonly origin: Origin;
}

export function emptyWritten(origin: Origin): WrittenMap {
  return { kind: 'map', entries: new Map(), origin };
}

/** A later layer over an earlier one, as RFC 7396: maps are merged, everything else is replaced, null removes. */
export function mergeWritten(earlier: WrittenMap, later: WrittenMap): WrittenMap {
  const entries = new Map(earlier.entries);
  for (const [key, node] of later.entries) {
    if (node.kind === 'nothing') {
      entries.delete(key);
      continue;
    }
    const before = entries.get(key);
    entries.set(
      key,
      node.kind === 'map'
        ? mergeWritten(before?.kind === 'map' ? before : emptyWritten(node.origin), node)
        : node,
    );
  }
  return { kind: 'map', entries, origin: later.origin };
}

/** Puts one value at a path of names, over whatever stood there. */
export function replaceWritten(tree: WrittenMap, path: readonly string[], node: Written): WrittenMap {
  const [name, ...rest] = path;
  if (name === undefined) return tree;
  const before = tree.entries.get(name);
  const inner = before?.kind === 'map' ? before : emptyWritten(node.origin);
  const entries = new Map(tree.entries).set(
    name,
    rest.length === 0 ? node : replaceWritten(inner, rest, node),
  );
  return { ...tree, entries };
}

/** A finished value of a type as if it had been written, all of it with the same origin. */
export function asWritten(type: ValueType, value: unknown, origin: Origin): Written {
  if (type.kind === 'list') {
    return {
      kind: 'list',
      items: (value as readonly unknown[]).map((item) => asWritten(type.item, item, origin)),
      origin,
    };
  }
  if (type.kind !== 'map' && type.kind !== 'object') return { kind: 'value', value, origin };
  const entries = new Map<string, Written>();
  const source = value as Readonly<Record<string, unknown>>;
  if (type.kind === 'map') {
    for (const [key, item] of Object.entries(source)) entries.set(key, asWritten(type.item, item, origin));
  } else {
    for (const [name, field] of Object.entries(type.fields)) {
      const item = source[effectiveName(name, field.type)];
      if (item !== undefined) entries.set(name, asWritten(field.type, item, origin));
    }
  }
  return { kind: 'map', entries, origin };
}
