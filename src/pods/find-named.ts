interface Named {
  readonly name: string;
}

/** Lists with fewer items are searched without an index. */
const minIndexed = 16;
const indexes = new WeakMap<readonly Named[], ReadonlyMap<string, readonly Named[]>>();

/**
 * The first item with this name in a list. A pod may have thousands of containers, so a list is
 * indexed once; lists of specs, statuses and observed pods never change.
 */
export function findNamed<T extends Named>(list: readonly T[] | undefined, name: string): T | undefined {
  if (list === undefined) return undefined;
  if (list.length < minIndexed) return list.find((item) => item.name === name);
  return indexed(list).get(name)?.[0];
}

/** All items with this name in the list, in order. */
export function allNamed<T extends Named>(list: readonly T[], name: string): readonly T[] {
  if (list.length < minIndexed) return list.filter((item) => item.name === name);
  return indexed(list).get(name) ?? [];
}

function indexed<T extends Named>(list: readonly T[]): ReadonlyMap<string, readonly T[]> {
  const known = indexes.get(list);
  if (known !== undefined) return known as ReadonlyMap<string, readonly T[]>;
  const index = Map.groupBy(list, ({ name }) => name);
  indexes.set(list, index);
  return index;
}
