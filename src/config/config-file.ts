import { describeError, readYaml, type YamlTree } from '../lib/index.ts';
import { type Decoded, decodeDocument, type SourceFile } from './decode.ts';
import type { Fields } from './fields.ts';
import type { ConfigFiles } from './file-system.ts';
import { type Finding, findingAt, findingIn } from './findings.ts';
import { emptyWritten } from './written.ts';

/** The kind of document a file must hold. */
export interface DocumentKind {
  readonly apiVersions: readonly string[];
  readonly kind: string;
  readonly fields: Fields;
}

/** Reads one file and checks it by the table. Rejects only when aborted. */
export async function readConfigFile(
  what: DocumentKind,
  file: SourceFile,
  files: ConfigFiles,
  signal: AbortSignal,
): Promise<Decoded> {
  let text: string;
  try {
    text = await files.readFile(file.path, signal);
  } catch (error) {
    signal.throwIfAborted();
    return failed(file, [findingIn(file.path, `cannot be read: ${describeError(error)}`)]);
  }
  return decodeText(what, file, text);
}

async function decodeText(what: DocumentKind, file: SourceFile, text: string): Promise<Decoded> {
  const { tree, second, problems } = await readYaml(text);
  const at = (place: { line: number; column: number }, field: string, message: string) =>
    findingAt({ kind: file.kind, file: file.path, line: place.line, column: place.column }, field, message);
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

function failed(file: SourceFile, problems: readonly Finding[]): Decoded {
  const written = emptyWritten({ kind: file.kind, file: file.path, line: 1, column: 1 });
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
