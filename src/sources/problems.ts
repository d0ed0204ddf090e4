import type { TextPosition } from '../lib/index.ts';
import { fullNameOf, type Pod } from '../pods/index.ts';

/** Something a user should know about a manifest. An error keeps a pod from being used; a warning does not. */
export interface SourceProblem {
  readonly source: 'file' | 'http';
  readonly severity: 'error' | 'warning';
  /** The file or URL. */
  readonly path: string;
  readonly line: number | undefined;
  readonly column: number | undefined;
  /** The path of the field; empty when it is about no field. */
  readonly field: string;
  readonly message: string;
  /** The full names of the pods it concerns, none where nobody can tell; undefined when it concerns all of the source. */
  readonly pods?: readonly string[];
}

export interface ProblemSource {
  readonly source: 'file' | 'http';
  readonly path: string;
}

export interface ProblemText {
  readonly severity?: SourceProblem['severity'] | undefined;
  readonly at?: TextPosition | undefined;
  readonly field?: string | undefined;
  readonly message: string;
  readonly pods?: readonly string[] | undefined;
}

export function problemAt({ source, path }: ProblemSource, text: ProblemText): SourceProblem {
  const { severity = 'error', at, field = '', message, pods } = text;
  const problem = { source, severity, path, line: at?.line, column: at?.column, field, message };
  return pods === undefined ? problem : { ...problem, pods };
}

/** As `/etc/kubernetes/manifests/web.yaml:12:3: spec.containers[0].image: Required value`. */
export function describeProblem(problem: SourceProblem): string {
  const place = [problem.path, problem.line, problem.column].filter((part) => part !== undefined).join(':');
  return [place, problem.field, problem.message].filter((part) => part !== '').join(': ');
}

/** What is wrong with a manifest and with no pod in particular concerns those it is known to stand for. */
export function withPods(problem: SourceProblem, pods: readonly Pod[]): SourceProblem {
  return problem.pods === undefined ? { ...problem, pods: pods.map(fullNameOf) } : problem;
}

/** One mistake can have a thousand consequences; the first of them are enough to act on. */
const mostProblems = 100;

export function bounded(problems: readonly SourceProblem[]): readonly SourceProblem[] {
  const [first] = problems;
  if (first === undefined || problems.length <= mostProblems) return problems;
  const more = problems.length - mostProblems;
  return [...problems.slice(0, mostProblems), problemAt(first, { message: `has ${more} more problems` })];
}

/** Tells each problem once: again only after it was gone. Of a file that has none any more it tells that once, too. */
export class ProblemReporter {
  readonly #report: (problem: SourceProblem) => void;
  readonly #resolved: (path: string) => void;
  #current: ReadonlyMap<string, SourceProblem> = new Map();
  /** Files of which a problem was told. */
  readonly #reportedFiles = new Set<string>();

  constructor(tell: (problem: SourceProblem) => void, mended: (path: string) => void = () => {}) {
    this.#report = tell;
    this.#resolved = mended;
  }

  /** The problems there are now, for those who ask. */
  get current(): readonly SourceProblem[] {
    return [...this.#current.values()];
  }

  /** A file with something doubtful is not called mended yet. */
  replace(problems: readonly SourceProblem[], doubtful: readonly SourceProblem[] = []): void {
    const before = this.#current;
    this.#current = new Map(problems.map((problem) => [describeProblem(problem), problem]));
    for (const [key, problem] of this.#current) if (!before.has(key)) this.#report(problem);
    const unsound = new Set([...problems, ...doubtful].map(({ path }) => path));
    for (const path of this.#reportedFiles) if (!unsound.has(path)) this.#reportResolved(path);
    for (const { path } of problems) this.#reportedFiles.add(path);
  }

  #reportResolved(path: string): void {
    this.#reportedFiles.delete(path);
    this.#resolved(path);
  }
}
