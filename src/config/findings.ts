import { KubelingError } from '../lib/index.ts';

/** A problem in the configuration: an error or a warning. */
export interface Finding {
  /**
   * Where the problem is: the path of a file, a flag with its dashes, `default`, or `command line`.
   */
  readonly source: string;
  readonly line: number | undefined;
  readonly column: number | undefined;
  /** The path of the field; empty if the problem is not about a field. */
  readonly field: string;
  readonly message: string;
}

export function findingAt(origin: Origin, field: string, message: string): Finding {
  if (origin.kind === 'default')
    return { source: 'default', line: undefined, column: undefined, field, message };
  if (origin.kind === 'flag')
    return { source: origin.flag, line: undefined, column: undefined, field, message };
  return { source: origin.file, line: origin.line, column: origin.column, field, message };
}

/** Creates a finding about a complete file, or about a problem that has no field. */
export function findingIn(source: string, message: string, field = ''): Finding {
  return { source, line: undefined, column: undefined, field, message };
}

/**
 * Formats a finding as `/etc/kubelet.yaml:12:3: maxPod: is not a known field (did you mean
 * maxPods?)`.
 */
export function describeFinding(finding: Finding): string {
  const origin = [finding.source, finding.line, finding.column]
    .filter((part) => part !== undefined)
    .join(':');
  return [origin, finding.field, finding.message].filter((part) => part !== '').join(': ');
}

/** Creates one error for all problems, sorted by file and position. */
export function configInvalid(problems: readonly Finding[]): KubelingError {
  const sorted = [...problems].sort(byOrigin);
  const count = sorted.length === 1 ? 'of 1 problem' : `of ${sorted.length} problems`;
  const lines = sorted.map((problem) => `  ${describeFinding(problem)}`);
  return new KubelingError(
    'CONFIG_INVALID',
    [`Cannot use the configuration because ${count}:`, ...lines].join('\n'),
    {
      details: { problems: sorted },
    },
  );
}

function byOrigin(a: Finding, b: Finding): number {
  if (a.source !== b.source || a.line === undefined || b.line === undefined) return 0;
  return a.line - b.line || (a.column ?? 0) - (b.column ?? 0);
}

/** Where a configuration value comes from. */
export type Origin =
  | { readonly kind: 'default'; readonly because?: string }
  | {
      readonly kind: 'file' | 'drop-in';
      readonly file: string;
      readonly line: number;
      readonly column: number;
    }
  /** The flag with its dashes. */
  | { readonly kind: 'flag'; readonly flag: string };

export const byDefault: Origin = { kind: 'default' };

/** Formats an origin as `default`, `/etc/kubelet.yaml:12` or `--max-pods`. */
export function describeOrigin(origin: Origin): string {
  if (origin.kind === 'flag') return origin.flag;
  if (origin.kind !== 'default') return `${origin.file}:${origin.line}`;
  return origin.because === undefined ? 'default' : `default, ${origin.because}`;
}

/**
 * Returns the path of a field in the notation of Kubernetes: `authentication.x509`,
 * `evictionHard[memory.available]`, `clusterDNS[0]`.
 */
export function fieldPath(parent: string, name: string): string {
  return parent === '' ? name : `${parent}.${name}`;
}

export function keyPath(parent: string, key: string | number): string {
  return `${parent}[${key}]`;
}

/** Returns the top-level field of a path. */
export function topField(path: string): string {
  return /^[^.[]*/.exec(path)?.[0] ?? path;
}

/** Records where each value of a configuration comes from. */
export class Origins {
  readonly #byPath: ReadonlyMap<string, Origin>;

  constructor(byPath: ReadonlyMap<string, Origin>) {
    this.#byPath = byPath;
  }

  /** Returns the origin of the value at a path, or of its nearest parent that has one. */
  of(path: string): Origin {
    for (let at = path; at !== ''; at = parentPath(at)) {
      const origin = this.#byPath.get(at);
      if (origin !== undefined) return origin;
    }
    return byDefault;
  }

  isWritten(path: string): boolean {
    return this.of(path).kind !== 'default';
  }

  /** Returns a copy in which the given values have another origin. */
  with(changes: Iterable<readonly [string, Origin]>): Origins {
    return new Origins(new Map([...this.#byPath, ...changes]));
  }
}

function parentPath(path: string): string {
  if (path.endsWith(']')) return path.slice(0, path.lastIndexOf('['));
  const dot = path.lastIndexOf('.');
  return dot < 0 ? '' : path.slice(0, dot);
}
