import type { Sources } from './import-rules.ts';
import { programStarts } from './program-starts.ts';

type Purpose = 'start' | 'test' | 'fresh';

/** An entry of the table of packages that the set-up installs. */
export interface PackageEntry {
  readonly packages: { readonly apt: string };
  readonly present: { readonly commands?: readonly string[]; readonly anyFile?: readonly string[] };
  readonly for: readonly Purpose[];
}

/**
 * The programs that a file starts at places where its source does not name the program, or names
 * one that starts other programs.
 */
export interface Declared {
  /**
   * The program arguments as written in the source, one for each place that starts such a program.
   */
  readonly places?: readonly string[];
  readonly starts: readonly string[];
  /**
   * Functions of this file whose first argument is the program to start; a method is written as
   * `.name`.
   */
  readonly wrappers?: readonly string[];
}

export interface Knowledge {
  readonly declared: Readonly<Record<string, Declared>>;
  /** Programs of Debian's essential packages, by package. */
  readonly essential: Readonly<Record<string, readonly string[]>>;
  /**
   * By package: programs that the package contains in addition to those by which the set-up detects
   * that the package is installed.
   */
  readonly alongside: Readonly<Record<string, readonly string[]>>;
  /** Programs that exist before the set-up or are installed otherwise, with the reason. */
  readonly given: Readonly<Record<string, string>>;
  /**
   * Programs that kubeling can run without, each with the feature that is lost without it; the
   * tests need these programs.
   */
  readonly optional: Readonly<Record<string, string>>;
  /**
   * Programs and files of the table that the sources do not start, each with the reason why the
   * set-up installs it.
   */
  readonly indirect: Readonly<Record<string, string>>;
}

/**
 * Programs that start another program, so a place that starts one of them must declare the other
 * program.
 */
const launchers = ['bash', 'env', 'flock', 'nsenter', 'script', 'setpriv', 'sh', 'unshare'];
const scriptPlace = 'a script';

/**
 * Returns one sentence for each violation; none if the set-up installs exactly the programs that
 * are started.
 */
export function programBreaches(
  sources: Sources,
  table: readonly PackageEntry[],
  knowledge: Knowledge,
): string[] {
  const files = [...sources].map(([path, source]) => readFileStarts(path, source, knowledge.declared[path]));
  const started = files.flatMap(({ path, programs }) => programs.map((program) => ({ path, program })));
  return [
    ...files.flatMap(({ problems }) => problems),
    ...Object.keys(knowledge.declared)
      .filter((path) => !sources.has(path))
      .map((path) => `${path} is declared, but there is no such file`),
    ...started.flatMap(({ path, program }) => missing(path, program, table, knowledge)),
    ...unused(new Set(started.map(({ program }) => program)), table, knowledge),
  ];
}

function readFileStarts(path: string, source: string, declared: Declared | undefined) {
  const problems: string[] = [];
  const { places = [], starts = [], wrappers = [] } = declared ?? {};
  let found: ReturnType<typeof programStarts> = [];
  try {
    if (/\.(?:ts|mjs)$/.test(path)) found = programStarts(source, wrappers);
  } catch (error) {
    problems.push(`${path}: ${(error as Error).message}`);
  }
  const open = [...found.filter(isOpen).map(({ written }) => written), ...scripts(path, source)].toSorted();
  if (open.join('\n') !== places.toSorted().join('\n'))
    problems.push(
      `${path} has places to declare ${JSON.stringify(open)}, but declares ${JSON.stringify(places)}`,
    );
  for (const name of starts)
    if (!source.includes(lastPart(name)))
      problems.push(`${path} is declared to start ${name}, which it does not name`);
  return { path, problems, programs: [...found.flatMap(({ program }) => program ?? []), ...starts] };
}

function isOpen({ program }: { readonly program: string | undefined }): boolean {
  return program === undefined || launchers.includes(program);
}

/** Returns whether the file is, or contains, a shell script. */
function scripts(path: string, source: string): string[] {
  const isSource = /\.(?:ts|mjs)$/.test(path);
  const text = isSource ? source.replace(/^#!.*/, '') : source;
  return /#!\/(?:usr\/)?bin\//.test(text) ? [scriptPlace] : [];
}

/**
 * The source may contain `mkfs.ext4` as `mkfs.${type}` and `ext4`, so only the part after `mkfs.`
 * is searched.
 */
function lastPart(name: string): string {
  return name.replace(/^mkfs\./, '');
}

function missing(
  path: string,
  program: string,
  table: readonly PackageEntry[],
  { essential, alongside, given, optional }: Knowledge,
): string[] {
  if (program in given || Object.values(essential).some((names) => names.includes(program))) return [];
  const entries = table.filter(
    (entry) => entry.present.commands?.includes(program) || alongside[entry.packages.apt]?.includes(program),
  );
  const isPartOfProgram = /^(?:src\/(?!.*\.test\.ts$)|kubeling$)/.test(path);
  const isFresh = path.startsWith('test/fresh/');
  const purposes: readonly Purpose[] =
    isPartOfProgram && !(program in optional) ? ['start', 'test'] : isFresh ? ['fresh'] : ['test'];
  return purposes
    .filter((purpose) => !entries.some((entry) => entry.for.includes(purpose)))
    .map((purpose) => `${path} starts ${program}, which the set-up does not install for ${purpose}`);
}

function unused(
  started: ReadonlySet<string>,
  table: readonly PackageEntry[],
  { declared: _, essential, alongside, ...reasons }: Knowledge,
): string[] {
  const inTable = table.flatMap(({ present }) => [...(present.commands ?? []), ...filesOf(present)]);
  const idle = (names: readonly string[], why: string) =>
    names.filter((name) => !started.has(name)).map((name) => `nothing starts ${name}, which ${why}`);
  return [
    ...idle(
      inTable.filter((name) => !(name in reasons.indirect)),
      'the set-up installs',
    ),
    ...idle(Object.values(essential).flat(), 'is listed as essential'),
    ...idle(Object.values(alongside).flat(), 'is listed as brought along'),
    ...idle(Object.keys(reasons.given), 'is listed as given'),
    ...idle(Object.keys(reasons.optional), 'is listed as optional'),
    ...Object.keys(reasons.indirect)
      .filter((name) => !inTable.includes(name))
      .map((name) => `${name} is listed as used indirectly, but is not in the table`),
  ];
}

function filesOf({ anyFile = [] }: PackageEntry['present']): string[] {
  return anyFile.slice(0, 1).map((path) => path.replace(/^.*\//, ''));
}
