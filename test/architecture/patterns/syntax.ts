/**
 * Parses regular expressions to syntax trees, in enough detail to determine their matching time.
 */

/** A range of UTF-16 code units, including both ends. */
export type Range = readonly [number, number];

export type PatternNode =
  | { readonly kind: 'set'; readonly ranges: readonly Range[] }
  | { readonly kind: 'sequence'; readonly items: readonly PatternNode[] }
  | { readonly kind: 'choice'; readonly options: readonly PatternNode[] }
  | { readonly kind: 'repeat'; readonly item: PatternNode; readonly least: number; readonly most: number }
  | { readonly kind: 'group'; readonly index: number; readonly item: PatternNode }
  | { readonly kind: 'assert'; readonly what: 'start' | 'end' | 'boundary' }
  | { readonly kind: 'look'; readonly direction: 'ahead' | 'behind'; readonly item: PatternNode }
  | { readonly kind: 'again'; readonly reference: string };

export interface ParsedPattern {
  readonly tree: PatternNode;
  /** The capture groups by number and by name. */
  readonly groups: ReadonlyMap<string, PatternNode>;
}

export const lastUnit = 0xffff;
const digits: readonly Range[] = [[48, 57]];
const wordUnits: readonly Range[] = [
  [48, 57],
  [65, 90],
  [95, 95],
  [97, 122],
];
const blanks: readonly Range[] = [
  [9, 13],
  [32, 32],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];
const lineEnds: readonly Range[] = [
  [10, 10],
  [13, 13],
  [0x2028, 0x2029],
];
const named: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, v: 11, f: 12, b: 8 };

export function parsePattern(source: string, flags: string): ParsedPattern {
  return new Parser(source, flags).parse();
}

export function complement(ranges: readonly Range[]): readonly Range[] {
  const gaps: Range[] = [];
  let next = 0;
  for (const [from, to] of ranges.toSorted((a, b) => a[0] - b[0])) {
    if (from > next) gaps.push([next, from - 1]);
    next = Math.max(next, to + 1);
  }
  return next > lastUnit ? gaps : [...gaps, [next, lastUnit]];
}

class Parser {
  readonly #source: string;
  readonly #flags: string;
  readonly #groups = new Map<string, PatternNode>();
  #at = 0;
  #index = 0;

  constructor(source: string, flags: string) {
    this.#source = source;
    this.#flags = flags;
  }

  parse(): ParsedPattern {
    const tree = this.#choice();
    if (this.#at < this.#source.length) throw new Error(`Cannot parse ${this.#source} from ${this.#at} on`);
    return { tree, groups: this.#groups };
  }

  #choice(): PatternNode {
    const options = [this.#sequence()];
    while (this.#take('|')) options.push(this.#sequence());
    return options.length === 1 ? (options[0] as PatternNode) : { kind: 'choice', options };
  }

  #sequence(): PatternNode {
    const items: PatternNode[] = [];
    while (this.#at < this.#source.length && !'|)'.includes(this.#source[this.#at] ?? ''))
      items.push(this.#repeated(this.#atom()));
    return { kind: 'sequence', items };
  }

  #repeated(item: PatternNode): PatternNode {
    const [least, most] = this.#quantifier() ?? [1, 1];
    if (least === 1 && most === 1) return item;
    // Greedy and lazy loops try the same paths in different order, so the difference is ignored.
    this.#take('?');
    return { kind: 'repeat', item, least, most };
  }

  #quantifier(): readonly [number, number] | undefined {
    if (this.#take('*')) return [0, Number.POSITIVE_INFINITY];
    if (this.#take('+')) return [1, Number.POSITIVE_INFINITY];
    if (this.#take('?')) return [0, 1];
    const counted = this.#match(/\{(\d+)(?:(,)(\d*))?\}/y);
    if (counted === undefined) return undefined;
    const least = Number(counted[1]);
    const most = counted[3] === '' ? Number.POSITIVE_INFINITY : Number(counted[3] ?? least);
    return [least, most];
  }

  #atom(): PatternNode {
    if (this.#take('^')) return { kind: 'assert', what: 'start' };
    if (this.#take('$')) return { kind: 'assert', what: 'end' };
    if (this.#take('(')) return this.#group();
    if (this.#take('[')) return this.#class();
    if (this.#take('.')) return set(this.#flags.includes('s') ? [[0, lastUnit]] : complement(lineEnds));
    if (this.#take('\\')) return this.#escape();
    return this.#set([this.#unit()]);
  }

  #group(): PatternNode {
    if (this.#take('?:')) return this.#closed(this.#choice());
    for (const [mark, direction] of looks)
      if (this.#take(mark)) return { kind: 'look', direction, item: this.#closed(this.#choice()) };
    const name = this.#match(/\?<(\w+)>/y)?.[1];
    const index = ++this.#index;
    const item = this.#closed(this.#choice());
    this.#groups.set(String(index), item);
    if (name !== undefined) this.#groups.set(name, item);
    return { kind: 'group', index, item };
  }

  #closed(node: PatternNode): PatternNode {
    if (!this.#take(')')) throw new Error(`Cannot parse ${this.#source}: a group is open at ${this.#at}`);
    return node;
  }

  #escape(): PatternNode {
    if (this.#take('b') || this.#take('B')) return { kind: 'assert', what: 'boundary' };
    const reference = this.#match(/k<(\w+)>/y)?.[1] ?? this.#match(/[1-9]\d*/y)?.[0];
    if (reference !== undefined) return { kind: 'again', reference };
    return this.#set(this.#escaped());
  }

  #escaped(): readonly Range[] {
    const property = this.#match(/[pP]\{[^}]*\}/y);
    // The set of a Unicode property is treated as all characters, so an overlap with it is
    // overestimated.
    if (property !== undefined) return [[0, lastUnit]];
    const hex = this.#match(/x([\da-fA-F]{2})|u([\da-fA-F]{4})|u\{([\da-fA-F]+)\}/y);
    if (hex !== undefined) {
      const unit = Math.min(lastUnit, Number.parseInt(hex[1] ?? hex[2] ?? hex[3] ?? '', 16));
      return [[unit, unit]];
    }
    const letter = this.#source[this.#at++] ?? '';
    const ranges = classes[letter];
    if (ranges !== undefined) return ranges;
    const unit = letter === '0' ? 0 : (named[letter] ?? letter.charCodeAt(0));
    return [[unit, unit]];
  }

  #class(): PatternNode {
    const isNegated = this.#take('^');
    const ranges: Range[] = [];
    while (!this.#take(']')) {
      const from = this.#classPart();
      const isRange =
        this.#source[this.#at] === '-' && this.#source[this.#at + 1] !== ']' && from.length === 1;
      if (isRange) this.#at++;
      const to = isRange ? this.#classPart() : from;
      if (isRange) ranges.push([from[0]?.[0] ?? 0, to[0]?.[1] ?? 0]);
      else ranges.push(...from);
    }
    const all = this.#cased(ranges);
    return set(isNegated ? complement(all) : all);
  }

  #classPart(): readonly Range[] {
    if (!this.#take('\\')) return [this.#unit()];
    if (this.#take('b')) return [[8, 8]];
    return this.#escaped();
  }

  #unit(): Range {
    const unit = this.#source.charCodeAt(this.#at++);
    return [unit, unit];
  }

  #set(ranges: readonly Range[]): PatternNode {
    return set(this.#cased(ranges));
  }

  #cased(ranges: readonly Range[]): readonly Range[] {
    if (!this.#flags.includes('i')) return ranges;
    return ranges.flatMap(([from, to]) => {
      const lower: Range = [Math.max(from, 65) + 32, Math.min(to, 90) + 32];
      const upper: Range = [Math.max(from, 97) - 32, Math.min(to, 122) - 32];
      return [[from, to] as Range, ...[lower, upper].filter(([first, last]) => first <= last)];
    });
  }

  #take(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#source) ?? undefined;
    this.#at += match?.[0].length ?? 0;
    return match;
  }
}

const looks = [
  ['?=', 'ahead'],
  ['?!', 'ahead'],
  ['?<=', 'behind'],
  ['?<!', 'behind'],
] as const;

const classes: Readonly<Record<string, readonly Range[]>> = {
  d: digits,
  D: complement(digits),
  w: wordUnits,
  W: complement(wordUnits),
  s: blanks,
  S: complement(blanks),
};

function set(ranges: readonly Range[]): PatternNode {
  return { kind: 'set', ranges };
}
