/** Every choice of NUMA nodes, fewest first. There are twice as many with each node: only for machines that have few. */
export function* numaChoices(numaNodes: readonly number[]): Generator<readonly number[]> {
  for (let size = 1; size <= numaNodes.length; size++) yield* choices(numaNodes, size);
}

/** Every choice of that many, each in the order of the list. */
export function* choices<T>(items: readonly T[], size: number, from = 0): Generator<readonly T[]> {
  if (size === 0) {
    yield [];
    return;
  }
  for (let at = from; at <= items.length - size; at++) {
    const first = items[at] as T;
    for (const rest of choices(items, size - 1, at + 1)) yield [first, ...rest];
  }
}
