import { KubelingError } from './errors.ts';
import type { FlagKind } from './flag-kinds.ts';
import { didYouMean } from './nearest-name.ts';

/**
 * Parses command lines like Kubernetes programs: `--name=value`, `--name value`, `--switch`, `-n
 * value`, `-nvalue`; `--` ends the flags, and `_` in a name equals `-`. Independent of the meaning
 * of the flags.
 */

export interface Flag<T> {
  readonly kind: FlagKind<T>;
  readonly help: string;
  /** A letter that may be used instead of the flag's name. */
  readonly short?: string;
  /** The heading of the flag in the help. */
  readonly group?: string;
  /** The replacement of a deprecated flag; the deprecated flag still works but logs a warning. */
  readonly deprecated?: string;
  /** The default as shown in the help. */
  readonly default?: string;
}

export type FlagTable = Readonly<Record<string, Flag<unknown>>>;

export type FlagValues<F extends FlagTable> = {
  readonly [K in keyof F]?: F[K] extends Flag<infer T> ? T : never;
};

export interface FlagProblem {
  /**
   * The flag with the problem, as the user wrote it, with its dashes; empty for an argument that
   * belongs to no flag.
   */
  readonly flag: string;
  readonly message: string;
}

export interface ParsedFlags<F extends FlagTable> {
  readonly values: FlagValues<F>;
  /** The names of the used flags in order, each once. */
  readonly used: readonly string[];
  readonly positionals: readonly string[];
  readonly problems: readonly FlagProblem[];
}

/** Parses all flags that are valid and collects every problem; never throws for user input. */
export function parseFlags<F extends FlagTable>(table: F, argv: readonly string[]): ParsedFlags<F> {
  const parser = new FlagParser(table);
  parser.readAll(argv);
  return {
    values: Object.fromEntries(parser.values) as FlagValues<F>,
    used: [...parser.values.keys()],
    positionals: parser.positionals,
    problems: parser.problems,
  };
}

/** `--flag_name` and `--flag-name` are the same flag. */
function flagName(given: string): string {
  return given.replaceAll('_', '-');
}

class FlagParser {
  readonly values = new Map<string, unknown>();
  readonly positionals: string[] = [];
  readonly problems: FlagProblem[] = [];
  readonly #table: FlagTable;
  readonly #byLetter: ReadonlyMap<string, string>;

  constructor(table: FlagTable) {
    this.#table = table;
    const letters = Object.entries(table).map(([name, flag]) => [flag.short ?? '', name] as const);
    this.#byLetter = new Map(letters.filter(([letter]) => letter !== ''));
  }

  readAll(argv: readonly string[]): void {
    const rest = [...argv];
    for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
      if (word === '--') {
        this.positionals.push(...rest.splice(0));
      } else if (word.startsWith('--')) {
        this.#readLong(word, rest);
      } else if (word.startsWith('-') && word !== '-') {
        this.#readShort(word, rest);
      } else {
        this.positionals.push(word);
      }
    }
  }

  #readLong(word: string, rest: string[]): void {
    const equals = word.indexOf('=');
    const written = equals < 0 ? word : word.slice(0, equals);
    const name = flagName(written.slice(2));
    if (Object.hasOwn(this.#table, name)) {
      this.#readValue(name, written, equals < 0 ? undefined : word.slice(equals + 1), rest);
    } else {
      this.#unknown(written, name);
    }
  }

  /** Parses short flags: `-v`, `-v 2`, `-v=2`, `-v2`, and combined switches as in `-ab`. */
  #readShort(word: string, rest: string[]): void {
    let letters = word.slice(1);
    while (letters !== '') {
      const letter = letters.slice(0, 1);
      const name = this.#byLetter.get(letter);
      if (name === undefined) {
        this.#unknown(word, flagName(word.slice(1).split('=')[0] ?? ''));
        return;
      }
      const tail = letters.slice(1);
      const runsOn = this.#table[name]?.kind.bare !== undefined && !tail.startsWith('=');
      const attached = tail === '' || runsOn ? undefined : tail.replace(/^=/, '');
      this.#readValue(name, `-${letter}`, attached, rest);
      letters = runsOn ? tail : '';
    }
  }

  /**
   * Stores the value of one flag, which is the next argument if no value was attached and the kind
   * needs one.
   */
  #readValue(name: string, written: string, attached: string | undefined, rest: string[]): void {
    const kind = this.#table[name]?.kind;
    const text = attached ?? kind?.bare ?? rest.shift();
    if (kind === undefined || text === undefined) {
      this.problems.push({ flag: written, message: `needs a value: ${kind?.label ?? 'text'}` });
      return;
    }
    try {
      this.values.set(name, kind.read(text, this.values.get(name)));
    } catch (error) {
      if (!(error instanceof KubelingError)) throw error;
      this.problems.push({ flag: written, message: error.message });
    }
  }

  #unknown(written: string, name: string): void {
    const suggestion = didYouMean(name, Object.keys(this.#table)).replace('mean ', 'mean --');
    this.problems.push({
      flag: written.split('=')[0] ?? written,
      message: `is not a known flag${suggestion}`,
    });
  }
}

/**
 * Formats the help of the flags: under their headings, in the order of the table, wrapped to
 * `width` columns.
 */
export function formatFlagHelp(table: FlagTable, width = 100): string {
  const groups = new Map<string, string[]>();
  for (const [name, flag] of Object.entries(table)) {
    const group = flag.group ?? 'Flags';
    groups.set(group, [...(groups.get(group) ?? []), formatFlag(name, flag, width)]);
  }
  return [...groups].map(([group, flags]) => `${group}:\n${flags.join('\n')}\n`).join('\n');
}

function formatFlag(name: string, flag: Flag<unknown>, width: number): string {
  const short = flag.short === undefined ? '    ' : `-${flag.short}, `;
  const value = flag.kind.bare === undefined ? ` ${flag.kind.label}` : '';
  const remarks = [
    flag.default === undefined || flag.default === '' ? '' : ` (default ${flag.default})`,
    flag.deprecated === undefined ? '' : ` [deprecated: ${flag.deprecated}]`,
  ];
  return [
    `  ${short}--${name}${value}`,
    ...wrap(`${flag.help}${remarks.join('')}`, width - 10, '          '),
  ].join('\n');
}

function wrap(text: string, width: number, indent: string): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(indent + line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return line === '' ? lines : [...lines, indent + line];
}
