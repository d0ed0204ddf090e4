import type {
  Alias,
  CST,
  Document,
  LineCounter,
  Node,
  Pair,
  Scalar,
  YAMLMap,
  YAMLParseError,
  YAMLSeq,
} from 'yaml';
import { findExceededLimit, hasFewLines, maxDepth } from './yaml-bounds.ts';
import { YieldingCounter } from './yielding-counter.ts';

/**
 * Reads YAML or JSON as a tree in which every node has its line and column; scalars have the values
 * that Kubernetes reads, aliases are replaced and `<<` is merged. The `yaml` package costs 8 MB of
 * memory and is loaded on first use.
 */

export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

export type YamlTree =
  | { readonly kind: 'scalar'; readonly value: YamlScalar; readonly at: TextPosition }
  | { readonly kind: 'list'; readonly items: readonly YamlTree[]; readonly at: TextPosition }
  /** A map; a duplicate key has two entries. */
  | { readonly kind: 'map'; readonly entries: readonly YamlEntry[]; readonly at: TextPosition };

export interface YamlEntry {
  readonly key: string;
  readonly at: TextPosition;
  readonly value: YamlTree;
}

export interface YamlProblem extends TextPosition {
  readonly message: string;
}

export interface YamlText {
  /** The tree of the first document; undefined when it is empty or invalid. */
  readonly tree: YamlTree | undefined;
  /** The position of the second document that is not empty; undefined if there is only one. */
  readonly second: TextPosition | undefined;
  readonly problems: readonly YamlProblem[];
}

/**
 * The maximum number of nodes in the expanded tree: aliases can make a small text expand without
 * bound.
 */
const maxNodes = 100_000;
/**
 * The maximum length of an error message: it may quote a word of the text, which can be megabytes
 * long.
 */
const maxMessageLength = 300;

/**
 * The number of lexemes between two yields to the event loop; reading them takes a few
 * milliseconds.
 */
const lexemesPerSlice = 2_000;

type YamlLibrary = typeof import('yaml');

export async function readYaml(text: string): Promise<YamlText> {
  const { documents, problems } = await parseDocuments(text);
  const [first, ...rest] = documents;
  const second = rest.find((document) => !document.isEmpty);
  const readable = problems.length === 0 && first?.isEmpty === false ? first.build() : undefined;
  return {
    tree: readable?.tree,
    second: second?.at,
    problems: [...problems, ...(readable?.problems ?? [])],
  };
}

/** One of several documents in a text, with its own problems. */
export interface YamlDocument {
  /** The tree of the document; undefined when the document is invalid. */
  readonly tree: YamlTree | undefined;
  /** The position of the document's first line. */
  readonly at: TextPosition;
  readonly problems: readonly YamlProblem[];
}

/** Reads every document that is not empty. An invalid document does not affect the others. */
export async function readYamlDocuments(text: string): Promise<readonly YamlDocument[]> {
  const { documents } = await parseDocuments(text);
  return documents.flatMap((document) => {
    if (document.problems.length > 0)
      return { tree: undefined, at: document.at, problems: document.problems };
    return document.isEmpty ? [] : { at: document.at, ...document.build() };
  });
}

interface ParsedDocument {
  readonly isEmpty: boolean;
  readonly at: TextPosition;
  readonly problems: readonly YamlProblem[];
  readonly build: () => Pick<YamlDocument, 'tree' | 'problems'>;
}

/**
 * Parses all documents of the text. A text that is too expensive is returned as one invalid
 * document.
 */
async function parseDocuments(written: string) {
  const yaml = await import('yaml');
  const text = indentWithSpaces(written);
  const slices = new YieldingCounter(lexemesPerSlice);
  const excess = await findExceededLimit(yaml, text, slices);
  const documents = excess === undefined ? await parseAll(yaml, text, slices) : [unparsed(excess)];
  return { documents, problems: documents.flatMap((document) => document.problems) };
}

/**
 * Parses without stack traces: each mistake creates an error, and a hundred thousand stack traces
 * would need more memory than the tree.
 */
function withoutStackTraces<T>(work: () => T): T {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return work();
  } finally {
    Error.stackTraceLimit = limit;
  }
}

function unparsed(problem: YamlProblem): ParsedDocument {
  const problems = [problem];
  const build = () => ({ tree: undefined, problems });
  return { isEmpty: false, at: { line: 1, column: 1 }, problems, build };
}

/**
 * Composing the nodes takes a quarter of the total time and cannot be interrupted; the limits keep
 * it far below 100 ms.
 */
async function parseAll(
  yaml: YamlLibrary,
  text: string,
  slices: YieldingCounter,
): Promise<readonly ParsedDocument[]> {
  const lines = new yaml.LineCounter();
  const tokens = await parseTokens(yaml, text, lines, slices);
  if (slices.count(lexemesPerSlice / 2)) await slices.yield();
  return withoutStackTraces(() => {
    const composer = new yaml.Composer({
      schema: 'failsafe',
      version: '1.1',
      merge: false,
      uniqueKeys: false,
      prettyErrors: false,
      logLevel: 'silent',
    });
    return [...composer.compose(tokens)].map((document) => describe(yaml, lines, document));
  });
}

async function parseTokens(
  { Lexer, Parser }: YamlLibrary,
  text: string,
  lines: LineCounter,
  slices: YieldingCounter,
): Promise<readonly CST.Token[]> {
  const parser = new Parser(lines.addNewLine);
  const tokens: CST.Token[] = [];
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) tokens.push(token);
    if (slices.count()) await slices.yield();
  }
  for (const token of parser.end()) tokens.push(token);
  return tokens;
}

function describe(yaml: YamlLibrary, lines: LineCounter, document: Document): ParsedDocument {
  const at = positionOf(lines, document.contents?.range?.[0] ?? document.range?.[0] ?? 0);
  const build = () => {
    const builder = new TreeBuilder(yaml, lines, document);
    const tree = document.contents ? builder.build(document.contents, 0) : undefined;
    return { tree: builder.problems.length === 0 ? tree : undefined, problems: builder.problems };
  };
  const problems = causes(document.errors).map((error) => ({
    message: error.message.slice(0, maxMessageLength),
    ...positionOf(lines, error.pos[0]),
  }));
  return { isEmpty: isEmpty(yaml, document), at, problems, build };
}

/**
 * A text indented with tabs has an error on every line, which causes further errors: only the first
 * one is reported.
 */
function causes(errors: readonly YAMLParseError[]): readonly YAMLParseError[] {
  const tab = errors.find(({ code }) => code === 'TAB_AS_INDENT');
  return tab === undefined ? errors : [tab];
}

/**
 * JSON may be indented with tabs, which YAML rejects; each tab is replaced by a space, which keeps
 * the columns.
 */
function indentWithSpaces(text: string): string {
  if (!/^\s*[{[]/.test(text) || !hasFewLines(text)) return text;
  return text.replace(/^[\t ]+/gm, (indent) => ' '.repeat(indent.length));
}

function isEmpty(yaml: YamlLibrary, document: Document): boolean {
  const { contents } = document;
  return contents === null || (yaml.isScalar(contents) && contents.value === '' && contents.type === 'PLAIN');
}

function positionOf(lines: LineCounter, offset: number): TextPosition {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

class TreeBuilder {
  readonly problems: YamlProblem[] = [];
  readonly #yaml: YamlLibrary;
  readonly #lines: LineCounter;
  readonly #document: Document;
  #targets: ReadonlyMap<Alias, Node> | undefined;
  #nodes = 0;

  constructor(yaml: YamlLibrary, lines: LineCounter, document: Document) {
    this.#yaml = yaml;
    this.#lines = lines;
    this.#document = document;
  }

  build(node: unknown, depth: number): YamlTree {
    const at = this.#at(node);
    if (++this.#nodes > maxNodes || depth > maxDepth)
      return this.#reject(at, 'is too large or nested too deeply');
    if (this.#yaml.isAlias(node)) return this.#follow(node, depth, at);
    if (this.#yaml.isMap(node)) return { kind: 'map', entries: this.#entries(node, depth), at };
    if (this.#yaml.isSeq(node)) return this.#list(node, depth, at);
    return { kind: 'scalar', value: this.#yaml.isScalar(node) ? scalarValue(node) : null, at };
  }

  #list(node: YAMLSeq, depth: number, at: TextPosition): YamlTree {
    return { kind: 'list', items: node.items.map((item) => this.build(item, depth + 1)), at };
  }

  /**
   * An alias has the position at which it is used; its content has the position at which it was
   * written.
   */
  #follow(alias: Alias, depth: number, at: TextPosition): YamlTree {
    this.#targets ??= aliasTargets(this.#yaml, this.#document);
    const target = this.#targets.get(alias);
    if (target === undefined) {
      const message = `uses an anchor that is not defined: ${alias.source}`;
      return this.#reject(at, message.slice(0, maxMessageLength));
    }
    return { ...this.build(target, depth + 1), at };
  }

  #entries(map: YAMLMap, depth: number): YamlEntry[] {
    const own: YamlEntry[] = [];
    const merged: YamlEntry[] = [];
    for (const pair of map.items) {
      const entry = this.#entry(pair, depth);
      if (entry.key === '<<' && isUnquoted(pair.key)) merged.push(...this.#merged(entry.value));
      else own.push(entry);
    }
    const written = new Set(own.map((entry) => entry.key));
    for (const entry of merged) {
      if (!written.has(entry.key)) own.push(entry);
      written.add(entry.key);
    }
    return own;
  }

  #entry(pair: Pair, depth: number): YamlEntry {
    const key = this.build(pair.key, depth + 1);
    if (key.kind !== 'scalar') this.#reject(key.at, 'has a key that is not text');
    const text = key.kind === 'scalar' ? String(key.value) : '';
    const value = pair.value === null ? emptyAt(key.at) : this.build(pair.value, depth + 1);
    return { key: text, at: key.at, value };
  }

  #merged(value: YamlTree): readonly YamlEntry[] {
    if (value.kind === 'map') return value.entries;
    if (value.kind === 'list') return value.items.flatMap((item) => this.#merged(item));
    this.#reject(value.at, 'merges something that is not a map');
    return [];
  }

  #reject(at: TextPosition, message: string): YamlTree {
    if (this.problems.length === 0) this.problems.push({ message, ...at });
    return emptyAt(at);
  }

  #at(node: unknown): TextPosition {
    const range = this.#yaml.isNode(node) ? (node as Node).range : undefined;
    return range ? positionOf(this.#lines, range[0]) : { line: 1, column: 1 };
  }
}

/**
 * Returns the node of each alias: the last node before the alias that has its anchor. Computed for
 * all aliases in one walk, because a walk for each would be slow.
 */
function aliasTargets(yaml: YamlLibrary, document: Document): ReadonlyMap<Alias, Node> {
  const anchors = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  yaml.visit(document, {
    Alias: (_key, alias) => {
      const target = anchors.get(alias.source);
      if (target !== undefined) targets.set(alias, target);
    },
    Value: (_key, node) => {
      if (node.anchor !== undefined) anchors.set(node.anchor, node);
    },
  });
  return targets;
}

function emptyAt(at: TextPosition): YamlTree {
  return { kind: 'scalar', value: null, at };
}

function isUnquoted(key: unknown): boolean {
  return (key as Scalar | null)?.type === 'PLAIN';
}

/** An explicit tag overrides quotes: `!!str 1` is text and `!!int "1"` a number. */
function scalarValue(scalar: Scalar): YamlScalar {
  const text = typeof scalar.value === 'string' ? scalar.value : '';
  const tag = scalar.tag?.replace('tag:yaml.org,2002:', '!!');
  if (tag !== undefined) return tag === '!!str' || tag === '!!binary' ? text : resolvePlainScalar(text);
  return scalar.type === 'PLAIN' ? resolvePlainScalar(text) : text;
}

/**
 * Converts the tree to a plain value, all numbers as doubles; of a duplicate key the last value is
 * used.
 */
export function yamlToJs(tree: YamlTree): unknown {
  if (tree.kind === 'scalar') return typeof tree.value === 'bigint' ? Number(tree.value) : tree.value;
  if (tree.kind === 'list') return tree.items.map(yamlToJs);
  return Object.fromEntries(tree.entries.map((entry) => [entry.key, yamlToJs(entry.value)]));
}

/**
 * The meaning of a plain scalar to Kubernetes programs, which use YAML 1.1 with exceptions: `yes`
 * and `on` are booleans, `0644` is octal, and dates and times stay text.
 */
export type YamlScalar = string | number | bigint | boolean | null;

const words: ReadonlyMap<string, boolean | null> = new Map<string, boolean | null>([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map((w) => [w, true] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map(
    (w) => [w, false] as const,
  ),
  ...['', '~', 'null', 'Null', 'NULL'].map((w) => [w, null] as const),
]);
const infinities: ReadonlyMap<string, number> = new Map([
  ...['.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF'].map((w) => [w, Number.POSITIVE_INFINITY] as const),
  ...['-.inf', '-.Inf', '-.INF'].map((w) => [w, Number.NEGATIVE_INFINITY] as const),
  ...['.nan', '.NaN', '.NAN'].map((w) => [w, Number.NaN] as const),
]);
const integer = /^([-+]?)(0[xX][\da-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9]\d*)$/;
const float = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/;

export function resolvePlainScalar(text: string): YamlScalar {
  const word = words.get(text);
  if (word !== undefined) return word;
  const infinity = infinities.get(text);
  if (infinity !== undefined) return infinity;
  if (!/^[-+.\d]/.test(text)) return text;
  const plain = text.replaceAll('_', '');
  const match = integer.exec(plain);
  if (match !== null) return readInteger(match[1] ?? '', match[2] ?? '0') ?? Number(plain);
  return float.test(plain) ? Number(plain) : text;
}

/**
 * Whether a reader returns the same text for it when it is written as a plain scalar, and not a
 * number, boolean or null.
 */
export function isPlainYamlText(text: string): boolean {
  return resolvePlainScalar(text) === text;
}

/**
 * Parses an integer; undefined beyond 64 bits, where YAML readers do not treat it as an integer.
 */
function readInteger(sign: string, digits: string): number | bigint | undefined {
  const size = BigInt(/^0\d/.test(digits) ? `0o${digits.slice(1)}` : digits);
  const value = sign === '-' ? -size : size;
  if (value >= 2n ** 64n || value < -(2n ** 63n)) return undefined;
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}
