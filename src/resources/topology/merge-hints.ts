import type { TopologyHint, TopologyHints } from './hint-provider.ts';

export type TopologyPolicy = 'best-effort' | 'restricted' | 'single-numa-node';

export interface MergeRules {
  readonly policy: TopologyPolicy;
  /** The NUMA nodes of the machine, ascending. */
  readonly numaNodes: readonly number[];
  /**
   * Returns the distance between two NUMA nodes. Defined only if the closest set of NUMA nodes is
   * preferred; otherwise the lowest set is preferred.
   */
  readonly distance?: ((from: number, to: number) => number) | undefined;
}

export interface MergedHint {
  readonly hint: TopologyHint;
  readonly admit: boolean;
}

/** A set of NUMA nodes as bits, by their index in the machine's list. */
type Mask = number;

/** One hint of a resource; if the mask is undefined, the hint allows any NUMA node. */
interface Way {
  readonly mask: Mask | undefined;
  readonly preferred: boolean;
}

/**
 * The combination of one hint per resource. If all preferred hints name the same set of NUMA nodes,
 * `agreed` is this set.
 */
interface Together {
  readonly mask: Mask;
  readonly agreed: Mask | undefined;
  readonly preferred: boolean;
}

/**
 * Returns the best combination of one hint per resource: a preferred one if possible, then the one
 * with the smallest or closest set of NUMA nodes. If no combination is preferred, the best one has
 * as many NUMA nodes as the most demanding resource needs at least.
 */
export function mergeHints(provided: readonly (TopologyHints | undefined)[], rules: MergeRules): MergedHint {
  const masks = new Masks(rules.numaNodes);
  const every = provided.flatMap((hints) => waysOf(hints, masks));
  const lists = rules.policy === 'single-numa-node' ? every.map(onSingleNodes) : every;
  const best = bestOf(combine(lists, masks.all), lists, masks, rules) ?? {
    mask: masks.all,
    preferred: false,
  };
  const isAnywhere = rules.policy === 'single-numa-node' && best.mask === masks.all;
  const hint = {
    numaNodes: isAnywhere ? undefined : masks.nodesIn(best.mask),
    preferred: best.preferred,
  };
  return { hint, admit: rules.policy === 'best-effort' || best.preferred };
}

class Masks {
  readonly all: Mask;
  readonly #numaNodes: readonly number[];
  readonly #bits: ReadonlyMap<number, Mask>;

  constructor(numaNodes: readonly number[]) {
    this.#numaNodes = numaNodes;
    this.#bits = new Map(numaNodes.map((id, place) => [id, 2 ** place]));
    this.all = 2 ** numaNodes.length - 1;
  }

  of(ids: readonly number[]): Mask {
    return ids.reduce((mask, id) => mask | (this.#bits.get(id) ?? 0), 0);
  }

  nodesIn(mask: Mask): readonly number[] {
    return this.#numaNodes.filter((_, place) => (mask & (2 ** place)) !== 0);
  }
}

/** Returns the hints of each resource; a provider without hints accepts any NUMA node. */
function waysOf(hints: TopologyHints | undefined, masks: Masks): readonly (readonly Way[])[] {
  if (hints === undefined || hints.size === 0) return [[{ mask: undefined, preferred: true }]];
  return [...hints.values()].map((ways) => {
    if (ways === undefined) return [{ mask: undefined, preferred: true }];
    if (ways.length === 0) return [{ mask: undefined, preferred: false }];
    return ways.map(({ numaNodes, preferred }) => ({ mask: numaNodes && masks.of(numaNodes), preferred }));
  });
}

function onSingleNodes(ways: readonly Way[]): readonly Way[] {
  return ways.filter(({ mask, preferred }) => preferred && (mask === undefined || bitCount(mask) === 1));
}

/**
 * Intersects one hint per resource, in all combinations. Returns only distinct results, which are
 * far fewer than the combinations, and no empty intersections.
 */
function combine(lists: readonly (readonly Way[])[], all: Mask): readonly Together[] {
  let outcomes: readonly Together[] = [{ mask: all, agreed: undefined, preferred: true }];
  for (const ways of lists) {
    const next = new Map<number, Together>();
    for (const before of outcomes) {
      for (const way of ways) {
        const together = joined(before, way);
        if (together.mask !== 0) next.set(keyOf(together), together);
      }
    }
    outcomes = [...next.values()];
  }
  return outcomes;
}

function joined(before: Together, way: Way): Together {
  const agreed = before.agreed ?? way.mask;
  const agrees = way.mask === undefined || way.mask === agreed;
  const mask = way.mask === undefined ? before.mask : before.mask & way.mask;
  const preferred = before.preferred && way.preferred && agrees;
  return { mask, agreed: preferred ? agreed : 0, preferred };
}

function keyOf({ mask, agreed, preferred }: Together): number {
  return mask * 4 + (preferred ? 2 : 0) + (agreed === undefined ? 1 : 0);
}

type Outcome = Pick<Together, 'mask' | 'preferred'>;

function bestOf(
  outcomes: readonly Together[],
  lists: readonly (readonly Way[])[],
  masks: Masks,
  rules: MergeRules,
): Outcome | undefined {
  const requested = Math.max(0, ...lists.map(narrowest));
  const far = spread(masks, rules);
  const isBetter = (one: Outcome, other: Outcome) => {
    if (one.preferred !== other.preferred) return one.preferred;
    const [width, otherWidth] = [bitCount(one.mask), bitCount(other.mask)];
    if (width !== otherWidth)
      return one.preferred
        ? width < otherWidth
        : shortfall(width, requested) < shortfall(otherWidth, requested);
    const [own, others] = [far(one.mask), far(other.mask)];
    return own === others ? one.mask < other.mask : own < others;
  };
  let best: Outcome | undefined;
  for (const outcome of outcomes) if (best === undefined || isBetter(outcome, best)) best = outcome;
  return best;
}

/**
 * Returns the minimum number of NUMA nodes that the resource needs; 0 if it has no hint with
 * specific NUMA nodes.
 */
function narrowest(ways: readonly Way[]): number {
  const widths = ways.flatMap(({ mask }) => (mask === undefined ? [] : [bitCount(mask)]));
  return widths.length === 0 ? 0 : Math.min(...widths);
}

const widestMachine = 64;

/**
 * Compares sizes of NUMA node sets: the requested size is best, then the nearest smaller one; every
 * larger size is worse than any smaller one.
 */
function shortfall(width: number, requested: number): number {
  return width <= requested ? requested - width : widestMachine + width;
}

/** Returns the average distance of the NUMA nodes, including the distance of a node to itself. */
function spread(masks: Masks, { policy, distance }: MergeRules): (mask: Mask) => number {
  if (distance === undefined || policy === 'single-numa-node') return () => 0;
  return (mask) => {
    const nodes = masks.nodesIn(mask);
    const sum = nodes.reduce((all, from) => nodes.reduce((part, to) => part + distance(from, to), all), 0);
    return sum / nodes.length ** 2;
  };
}

function bitCount(mask: Mask): number {
  let count = 0;
  for (let left = mask; left !== 0; left &= left - 1) count++;
  return count;
}
