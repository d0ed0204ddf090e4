import { lastUnit, type ParsedPattern, type PatternNode, parsePattern, type Range } from './syntax.ts';

/** One way to read one character: where from, which characters (as numbers of classes), where to. */
export interface Edge {
  readonly from: number;
  readonly to: number;
  readonly classes: ReadonlySet<number>;
}

/**
 * What a backtracking matcher may do with a text, as a graph: each path is one attempt. Two ways to the same character
 * without reading another one between are two edges.
 */
export interface Automaton {
  readonly states: number;
  readonly start: number;
  readonly edges: readonly (readonly Edge[])[];
  /** States from which the pattern matches whatever follows: no attempt that comes here fails. */
  readonly safe: ReadonlySet<number>;
  /** One character of each class. */
  readonly samples: readonly string[];
}

/** Beyond so many a counted repetition is taken for one without end. */
const mostCopies = 128;
/** From so many on it is judged as one without end as well. */
export const manyCopies = 10;

type Link = { readonly to: number; readonly when?: 'start' | 'other' };
interface CharacterLink {
  readonly ranges: readonly Range[];
  readonly to: number;
}

export interface BuildOptions {
  /** Whether repetitions with a high count become loops. */
  readonly counted: 'copied' | 'looped';
}

export function buildAutomaton(source: string, flags: string, options: BuildOptions): Automaton {
  return new Builder(parsePattern(source, flags), flags, options).build();
}

/** Refused: nothing is known about how long it takes. */
export class UnknownPattern extends Error {}

class Builder {
  readonly #parsed: ParsedPattern;
  readonly #flags: string;
  readonly #options: BuildOptions;
  readonly #links: Link[][] = [];
  readonly #characters: CharacterLink[][] = [];

  constructor(parsed: ParsedPattern, flags: string, options: BuildOptions) {
    this.#parsed = parsed;
    this.#flags = flags;
    this.#options = options;
  }

  build(): Automaton {
    const accept = this.#node();
    // At the start of the text, and at any later place; only the first may stand at a `^`.
    const first = this.#add(this.#parsed.tree, accept);
    const search = this.#node();
    const later = this.#node();
    const start = this.#node();
    this.#link(start, first);
    if (!this.#flags.includes('y')) {
      const any: Range = [0, lastUnit];
      this.#link(start, search);
      this.#character(search, [any], later);
      this.#link(later, search);
      this.#link(later, this.#withoutStart(first, accept));
      if (this.#flags.includes('m')) {
        const lineStart = this.#node();
        this.#character(
          search,
          [
            [10, 10],
            [13, 13],
            [0x2028, 0x2029],
          ],
          lineStart,
        );
        this.#link(lineStart, first);
      }
    }
    return this.#automaton(start, accept);
  }

  /** A copy of a node that reaches what it reaches, but not by way of a `^`. */
  #withoutStart(node: number, accept: number): number {
    const copies = new Map([[accept, accept]]);
    const copy = (from: number): number => {
      const known = copies.get(from);
      if (known !== undefined) return known;
      const created = this.#node();
      copies.set(from, created);
      for (const link of this.#links[from] ?? [])
        if (link.when !== 'start') this.#links[created]?.push({ ...link, to: copy(link.to) });
      const isLineMode = this.#flags.includes('m');
      for (const link of this.#characters[from] ?? [])
        this.#characters[created]?.push({ ...link, to: isLineMode ? link.to : copy(link.to) });
      return created;
    };
    return copy(node);
  }

  /** Adds the nodes of a tree that go on at `next`, and says where they begin. */
  #add(tree: PatternNode, next: number): number {
    switch (tree.kind) {
      case 'set':
        return this.#reading(tree.ranges, next);
      case 'sequence':
        return tree.items.reduceRight((after, item) => this.#add(item, after), next);
      case 'choice':
        return this.#branch(tree.options.map((option) => this.#add(option, next)));
      case 'group':
        return this.#add(tree.item, next);
      case 'repeat':
        return this.#repeat(tree.item, tree.least, tree.most, next);
      case 'assert':
        return this.#assert(tree.what === 'start' ? 'start' : 'other', next);
      case 'look':
        return this.#look(tree.direction, tree.item, next);
      case 'again':
        return this.#again(tree.reference, next);
    }
  }

  #reading(ranges: readonly Range[], next: number): number {
    const node = this.#node();
    this.#character(node, ranges, next);
    return node;
  }

  #branch(ways: readonly number[]): number {
    const node = this.#node();
    for (const way of ways) this.#link(node, way);
    return node;
  }

  #repeat(item: PatternNode, least: number, most: number, next: number): number {
    const isLoop = most > mostCopies || (this.#options.counted === 'looped' && most >= manyCopies);
    if (most >= manyCopies && most !== Number.POSITIVE_INFINITY && shortest(item) === 0)
      throw new UnknownPattern('repeats up to a number of times what may be empty');
    if (isLoop) {
      // Coming into a loop and going around it are two ways, or a loop in a loop would look like one.
      const loop = this.#node();
      const body = this.#add(item, loop);
      this.#link(loop, body);
      this.#link(loop, next);
      // What must come several times is read once at least; more of them change nothing.
      return least === 0 ? this.#branch([body, next]) : this.#branch([body]);
    }
    let at = next;
    for (let copy = most; copy > 0; copy--) {
      const one = this.#add(item, at);
      at = copy > least ? this.#branch([one, next]) : one;
    }
    return at;
  }

  #assert(when: 'start' | 'other', next: number): number {
    const node = this.#node();
    this.#links[node]?.push({ to: next, when });
    return node;
  }

  /** What is looked at is read and given up, and then the rest is tried. */
  #look(direction: 'ahead' | 'behind', item: PatternNode, next: number): number {
    if (direction === 'behind' && longest(item) > 1)
      throw new UnknownPattern('looks behind at more than one character');
    const node = this.#assert('other', next);
    if (direction === 'ahead') this.#link(node, this.#add(item, this.#node()));
    return node;
  }

  /** The text of a group again is one of the texts the group could have. */
  #again(reference: string, next: number): number {
    const group = this.#parsed.groups.get(reference);
    if (group === undefined) throw new UnknownPattern(`refers to a group ${reference}, which is not there`);
    if (longest(group) > manyCopies) throw new UnknownPattern('repeats the text of a group of any length');
    return this.#assert('other', this.#add(group, next));
  }

  #node(): number {
    this.#links.push([]);
    this.#characters.push([]);
    return this.#links.length - 1;
  }

  #link(from: number, to: number): void {
    this.#links[from]?.push({ to });
  }

  #character(from: number, ranges: readonly Range[], to: number): void {
    this.#characters[from]?.push({ ranges, to });
  }

  #automaton(start: number, accept: number): Automaton {
    const alphabet = new Alphabet(this.#characters.flat().map(({ ranges }) => ranges));
    const edges: Edge[][] = [];
    const numbers = new Map([[start, 0]]);
    const order = [start];
    const safe = new Set<number>();
    for (let at = 0; at < order.length; at++) {
      const node = order[at] as number;
      const out: Edge[] = [];
      if (this.#reachesFreely(node, accept)) safe.add(at);
      for (const { ranges, to } of this.#charactersFrom(node)) {
        if (!numbers.has(to)) numbers.set(to, order.push(to) - 1);
        out.push({ from: at, to: numbers.get(to) as number, classes: alphabet.classesOf(ranges) });
      }
      edges.push(out);
    }
    return { states: order.length, start: 0, edges, safe, samples: alphabet.samples };
  }

  /** Every character that may be next, once for each way to it; two ways are as bad as more. */
  #charactersFrom(node: number): readonly CharacterLink[] {
    const found: CharacterLink[] = [];
    const ways = new Map<CharacterLink, number>();
    const path = new Set<number>();
    const visit = (at: number) => {
      if (path.has(at)) return;
      path.add(at);
      for (const link of this.#characters[at] ?? []) {
        const count = (ways.get(link) ?? 0) + 1;
        ways.set(link, count);
        if (count <= 2) found.push(link);
      }
      if (found.length < 5_000) for (const { to } of this.#links[at] ?? []) visit(to);
      path.delete(at);
    };
    visit(node);
    return found;
  }

  #reachesFreely(node: number, accept: number, seen = new Set<number>()): boolean {
    if (node === accept) return true;
    if (seen.has(node)) return false;
    seen.add(node);
    return (this.#links[node] ?? []).some(
      ({ to, when }) => when === undefined && this.#reachesFreely(to, accept, seen),
    );
  }
}

/** Characters that no set tells apart are one class. */
class Alphabet {
  readonly samples: readonly string[];
  readonly #starts: readonly number[];
  readonly #known = new Map<readonly Range[], ReadonlySet<number>>();

  constructor(sets: readonly (readonly Range[])[]) {
    const starts = new Set(sets.flat().flatMap(([from, to]) => [from, to + 1]));
    this.#starts = [...starts.add(0)].filter((unit) => unit <= lastUnit).sort((a, b) => a - b);
    this.samples = this.#starts.map((unit) => String.fromCharCode(unit));
  }

  classesOf(ranges: readonly Range[]): ReadonlySet<number> {
    const known = this.#known.get(ranges);
    if (known !== undefined) return known;
    const classes = this.#starts.flatMap((unit, index) =>
      ranges.some(([from, to]) => from <= unit && unit <= to) ? [index] : [],
    );
    const created = new Set(classes);
    this.#known.set(ranges, created);
    return created;
  }
}

/** The number of characters a tree reads at least, or 0 where that is not known. */
function shortest(tree: PatternNode): number {
  switch (tree.kind) {
    case 'set':
      return 1;
    case 'sequence':
      return tree.items.reduce((sum, item) => sum + shortest(item), 0);
    case 'choice':
      return Math.min(...tree.options.map(shortest));
    case 'group':
      return shortest(tree.item);
    case 'repeat':
      return shortest(tree.item) * tree.least;
    case 'assert':
    case 'look':
    case 'again':
      return 0;
  }
}

/** The number of characters a tree reads at most. */
function longest(tree: PatternNode): number {
  switch (tree.kind) {
    case 'set':
      return 1;
    case 'sequence':
      return tree.items.reduce((sum, item) => sum + longest(item), 0);
    case 'choice':
      return Math.max(...tree.options.map(longest));
    case 'group':
      return longest(tree.item);
    case 'repeat':
      return longest(tree.item) === 0 ? 0 : longest(tree.item) * tree.most;
    case 'assert':
    case 'look':
      return 0;
    case 'again':
      return Number.POSITIVE_INFINITY;
  }
}
