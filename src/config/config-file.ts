import { createHash, type Hash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { posix } from 'node:path';
import { describeError, readYaml, type YamlTree } from '../lib/index.ts';
import { type DecodedDocument, decodeDocument, type SourceFile } from './decode.ts';
import type { Fields } from './fields.ts';
import { type Finding, findingAt, findingIn } from './findings.ts';
import { emptyRawMap } from './raw-values.ts';

/** The API versions and kind that a configuration file must have. */
export interface DocumentKind {
  readonly apiVersions: readonly string[];
  readonly kind: string;
  readonly fields: Fields;
}

/** Reads one file and checks it against the configuration table. Rejects only when aborted. */
export async function readConfigFile(
  what: DocumentKind,
  file: SourceFile,
  files: ConfigFiles,
  signal: AbortSignal,
): Promise<DecodedDocument> {
  let text: string;
  try {
    text = await files.readFile(file.path, signal);
  } catch (error) {
    signal.throwIfAborted();
    return failed(file, [findingIn(file.path, `cannot be read: ${describeError(error)}`)]);
  }
  return decodeText(what, file, text);
}

async function decodeText(what: DocumentKind, file: SourceFile, text: string): Promise<DecodedDocument> {
  const { tree, second, problems } = await readYaml(text);
  const at = (position: { line: number; column: number }, field: string, message: string) =>
    findingAt(
      { kind: file.kind, file: file.path, line: position.line, column: position.column },
      field,
      message,
    );
  if (problems.length > 0)
    return failed(
      file,
      problems.map((problem) => at(problem, '', problem.message)),
    );
  if (tree === undefined) return failed(file, [findingIn(file.path, 'must not be empty')]);
  if (tree.kind !== 'map') return failed(file, [at(tree.at, '', `must be a ${what.kind}, a map of fields`)]);
  const extra =
    second === undefined ? [] : [at(second, '', 'must hold one document only: this is a second one')];
  const header = checkHeader(what, tree).map(({ part, field, message }) => at(part.at, field, message));
  const decoded = decodeDocument(what.fields, withoutHeader(tree), file);
  return { written: decoded.written, problems: [...header, ...decoded.problems, ...extra] };
}

function failed(file: SourceFile, problems: readonly Finding[]): DecodedDocument {
  const written = emptyRawMap({ kind: file.kind, file: file.path, line: 1, column: 1 });
  return { written, problems };
}

interface HeaderProblem {
  readonly part: Pick<YamlTree, 'at'>;
  readonly field: string;
  readonly message: string;
}

type MapTree = Extract<YamlTree, { kind: 'map' }>;

function checkHeader(what: DocumentKind, tree: MapTree): HeaderProblem[] {
  return [
    ...checkHeaderField(tree, 'apiVersion', what.apiVersions),
    ...checkHeaderField(tree, 'kind', [what.kind]),
  ];
}

function checkHeaderField(tree: MapTree, field: string, expected: readonly string[]): HeaderProblem[] {
  const [entry, ...again] = tree.entries.filter((candidate) => candidate.key === field);
  const must = `must be ${expected.join(' or ')}`;
  if (entry === undefined) return [{ part: tree, field, message: `${must}: it is missing` }];
  const value = entry.value.kind === 'scalar' ? entry.value.value : undefined;
  const wrong = !expected.some((allowed) => allowed === value);
  return [
    ...(wrong
      ? [{ part: entry.value, field, message: `${must}: current value is ${JSON.stringify(String(value))}` }]
      : []),
    ...again.map((part) => ({ part, field, message: `is written twice (first on line ${entry.at.line})` })),
  ];
}

function withoutHeader(tree: MapTree): MapTree {
  return { ...tree, entries: tree.entries.filter(({ key }) => key !== 'apiVersion' && key !== 'kind') };
}

export interface DropIns {
  /** The absolute paths of the files that were found, in the order in which they apply. */
  readonly files: readonly string[];
  readonly warnings: readonly Finding[];
  readonly problems: readonly Finding[];
}

/**
 * The maximum depth of a drop-in directory; a deeper tree may be the root of the host, given by
 * mistake.
 */
const maxDepth = 16;
const maxEntries = 10_000;

/**
 * Finds the `*.conf` files below a directory, sorted by name; files of a subdirectory are at the
 * position of the subdirectory's name.
 */
export async function findDropIns(
  directory: string,
  files: ConfigFiles,
  signal: AbortSignal,
): Promise<DropIns> {
  const search = new DropInSearch(files, signal);
  await search.walk(directory, 0);
  return search;
}

class DropInSearch implements DropIns {
  readonly files: string[] = [];
  readonly warnings: Finding[] = [];
  readonly problems: Finding[] = [];
  readonly #host: ConfigFiles;
  readonly #signal: AbortSignal;
  #found = 0;

  constructor(host: ConfigFiles, signal: AbortSignal) {
    this.#host = host;
    this.#signal = signal;
  }

  async walk(directory: string, depth: number): Promise<void> {
    for (const entry of await this.#list(directory)) {
      const path = posix.join(directory, entry.name);
      if (this.#isTooLarge(path, depth)) return;
      if (entry.kind === 'directory') await this.walk(path, depth + 1);
      else this.#consider(path);
    }
  }

  async #list(directory: string) {
    try {
      const entries = await this.#host.readDirectory(directory, this.#signal);
      return [...entries].sort((a, b) => (a.name < b.name ? -1 : 1));
    } catch (error) {
      this.#signal.throwIfAborted();
      this.problems.push(findingIn(directory, `cannot be read: ${describeError(error)}`));
      return [];
    }
  }

  #consider(path: string): void {
    if (path.endsWith('.conf')) this.files.push(path);
    else if (/\.(ya?ml|json)$/i.test(path)) {
      this.warnings.push(findingIn(path, 'is not read as drop-ins must be called *.conf'));
    }
  }

  /**
   * Whether the search is too deep or has found too many entries. Reports this once; the search
   * then ends on every level.
   */
  #isTooLarge(path: string, depth: number): boolean {
    if (++this.#found <= maxEntries && depth <= maxDepth) return false;
    if (this.#found <= maxEntries + 1) {
      this.problems.push(findingIn(path, 'cannot be searched as the directory is too deep or too large'));
    }
    this.#found = maxEntries + 1;
    return true;
  }
}

/**
 * Computes a short hash of the configuration files, with which the nodes of a cluster can be
 * compared.
 */
export class Fingerprint {
  /** Wraps the file access, so that each text that is read is hashed in order. */
  readonly files: ConfigFiles;
  readonly #hash: Hash = createHash('sha256');

  constructor(files: ConfigFiles) {
    this.files = {
      readDirectory: (path, signal) => files.readDirectory(path, signal),
      readFile: async (path, signal) => {
        const text = await files.readFile(path, signal);
        this.#add(text);
        return text;
      },
    };
  }

  get text(): string {
    return `sha256:${this.#hash.copy().digest('hex')}`;
  }

  /**
   * The length of each text is hashed too, because otherwise moving text from one file to the next
   * would not change the hash.
   */
  #add(text: string): void {
    const bytes = Buffer.from(text);
    const length = Buffer.alloc(8);
    length.writeBigUInt64BE(BigInt(bytes.length));
    this.#hash.update(length).update(bytes);
  }
}

/** File system access for configuration files. */
export interface ConfigFiles {
  /** Returns the complete text of a file; rejects with the system error. */
  readFile(path: string, signal: AbortSignal): Promise<string>;
  /** Returns the entries of a directory in any order; does not follow symbolic links. */
  readDirectory(path: string, signal: AbortSignal): Promise<readonly DirectoryEntry[]>;
}

export interface DirectoryEntry {
  readonly name: string;
  readonly kind: 'directory' | 'other';
}

/** The maximum file size: a configuration has a few pages, so a larger file is something else. */
const maxFileBytes = 4 * 1024 * 1024;

/** Access to the configuration files of the host. */
export function hostFiles(): ConfigFiles {
  return {
    async readFile(path, signal) {
      const { size } = await stat(path);
      if (size > maxFileBytes)
        throw new Error(`must not be larger than ${maxFileBytes} bytes: it has ${size}`);
      return readFile(path, { encoding: 'utf8', signal });
    },
    async readDirectory(path, signal) {
      signal.throwIfAborted();
      const entries = await readdir(path, { withFileTypes: true });
      return entries.map((entry) => ({
        name: entry.name,
        kind: entry.isDirectory() ? 'directory' : 'other',
      }));
    },
  };
}
