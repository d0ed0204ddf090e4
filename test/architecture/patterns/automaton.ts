import { lastUnit, type ParsedPattern, type PatternNode, parsePattern, type Range } from './syntax.ts';

/**
 * A transition between two states that consumes one character of one of the given character
 * classes.
 */
export interface Edge {
  readonly from: number;
  readonly to: number;
  readonly classes: ReadonlySet<number>;
}

/**
 * The possible steps of a backtracking matcher, as a graph in which each path is one attempt to
 * match. If two paths lead to the same character transition without consuming a character, the
 * transition is listed as two edges.
 */
export interface Automaton {
  readonly states: number;
  readonly start: number;
  readonly edges: readonly (readonly Edge[])[];
  /**
   * The states from which the pattern matches any remaining text: no match attempt fails after it
   * has reached such a state.
   */
  readonly safe: ReadonlySet<number>;
  /** One sample character of each character class. */
  readonly samples: readonly string[];
}

/** A repetition with a higher maximum count is always treated as unlimited. */
const mostCopies = 128;
/**
 * When counted repetitions become loops (`counted: 'looped'`), a repetition with at least this
 * maximum count is treated as unlimited.
 */
export const manyCopies = 10;

type Link = { readonly to: number; readonly when?: 'start' | 'other' };
interface CharacterLink {
  readonly ranges: readonly Range[];
  readonly to: number;
}

export interface BuildOptions {
  /** Whether repetitions with a high count are copied or become loops. */
  readonly counted: 'copied' | 'looped';
}

export function buildAutomaton(source: string, flags: string, options: BuildOptions): Automaton {
  return new Builder(parsePattern(source, flags), flags, options).build();
}

/** Thrown for a pattern whose matching time cannot be determined. */
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
    // A match begins at the start of the text or at any later position; a `^` matches only at the
    // start of the text.
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

  /** Returns a copy of a node and of all nodes reachable from it except through a `^`. */
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

  /** Adds the nodes of a syntax tree, which continue at `next`. Returns the first node. */
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
      // The entry of a loop and its repetition are separate nodes; otherwise a single path through
      // nested loops would count as two paths.
      const loop = this.#node();
      const body = this.#add(item, loop);
      this.#link(loop, body);
      this.#link(loop, next);
      // A repetition with a minimum count is entered at least once; higher minimums do not change
      // the result.
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

  /**
   * A look-ahead is tried and then discarded, and the rest of the pattern is tried from the same
   * position.
   */
  #look(direction: 'ahead' | 'behind', item: PatternNode, next: number): number {
    if (direction === 'behind' && longest(item) > 1)
      throw new UnknownPattern('looks behind at more than one character');
    const node = this.#assert('other', next);
    if (direction === 'ahead') this.#link(node, this.#add(item, this.#node()));
    return node;
  }

  /** A back-reference matches one of the texts that its group could match. */
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

  /**
   * Returns the character transitions that are reachable from the node without consuming a
   * character. A transition is listed once for each path to it, but at most twice, because more
   * paths do not change the result.
   */
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

/**
 * Divides the characters into classes, so that each set of the pattern contains either all or none
 * of a class.
 */
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

/** Returns the minimum number of characters that a syntax tree consumes; 0 if unknown. */
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

/** Returns the maximum number of characters that a syntax tree consumes. */
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
