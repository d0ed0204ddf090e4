import type { TextPosition } from '../lib/index.ts';
import { fullNameOf, type Pod } from '../pods/index.ts';

/** A problem of a manifest, for users. An error prevents the use of the pod; a warning does not. */
export interface SourceProblem {
  readonly source: 'file' | 'http';
  readonly severity: 'error' | 'warning';
  /** The manifest file or URL. */
  readonly path: string;
  readonly line: number | undefined;
  readonly column: number | undefined;
  /** Path of the field with the problem; empty when it concerns no single field. */
  readonly field: string;
  readonly message: string;
  /**
   * Full names of the affected pods, empty when they cannot be determined; undefined when the
   * problem concerns all manifests of the source.
   */
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

/**
 * Formats a problem, for example
 * `/etc/kubernetes/manifests/web.yaml:12:3: spec.containers[0].image: Required value`.
 */
export function describeProblem(problem: SourceProblem): string {
  const location = [problem.path, problem.line, problem.column]
    .filter((part) => part !== undefined)
    .join(':');
  return [location, problem.field, problem.message].filter((part) => part !== '').join(': ');
}

/** Adds the names of all pods of a manifest to a problem of the complete manifest. */
export function withPods(problem: SourceProblem, pods: readonly Pod[]): SourceProblem {
  return problem.pods === undefined ? { ...problem, pods: pods.map(fullNameOf) } : problem;
}

/** Maximum number of reported problems, because one mistake can cause a thousand. */
const mostProblems = 100;

export function bounded(problems: readonly SourceProblem[]): readonly SourceProblem[] {
  const [first] = problems;
  if (first === undefined || problems.length <= mostProblems) return problems;
  const more = problems.length - mostProblems;
  return [...problems.slice(0, mostProblems), problemAt(first, { message: `has ${more} more problems` })];
}

/**
 * Reports each problem once, and again only after it was resolved. Reports once when a file has no
 * further problems.
 */
export class ProblemReporter {
  readonly #report: (problem: SourceProblem) => void;
  readonly #resolved: (path: string) => void;
  #current: ReadonlyMap<string, SourceProblem> = new Map();
  /** Paths of files with a reported problem. */
  readonly #reportedFiles = new Set<string>();

  constructor(report: (problem: SourceProblem) => void, resolved: (path: string) => void = () => {}) {
    this.#report = report;
    this.#resolved = resolved;
  }

  /** The current problems of all manifests. */
  get current(): readonly SourceProblem[] {
    return [...this.#current.values()];
  }

  /**
   * Replaces the current problems. A file with an unconfirmed problem is not reported as resolved.
   */
  replace(problems: readonly SourceProblem[], uncertain: readonly SourceProblem[] = []): void {
    const before = this.#current;
    this.#current = new Map(problems.map((problem) => [describeProblem(problem), problem]));
    for (const [key, problem] of this.#current) if (!before.has(key)) this.#report(problem);
    const unsound = new Set([...problems, ...uncertain].map(({ path }) => path));
    for (const path of this.#reportedFiles) if (!unsound.has(path)) this.#reportResolved(path);
    for (const { path } of problems) this.#reportedFiles.add(path);
  }

  #reportResolved(path: string): void {
    this.#reportedFiles.delete(path);
    this.#resolved(path);
  }
}

export interface NamedPod {
  /** Whether the given full name belongs to the requested pod. */
  readonly isCalled: (fullName: string) => boolean;
  /** Whether the requested pod is defined or running. */
  readonly isKnown: boolean;
}

/**
 * Returns the problems that concern one pod: those of its manifest, and those that concern all
 * manifests of a source. A manifest that cannot be parsed names no pod, so it may be the reason why
 * a pod is not defined.
 */
export function problemsOfPod(
  problems: readonly SourceProblem[],
  { isCalled, isKnown }: NamedPod,
): readonly SourceProblem[] {
  return problems.filter(({ pods }) => {
    if (pods === undefined) return true;
    return pods.length === 0 ? !isKnown : pods.some(isCalled);
  });
}
