/** Where a value came from. */
export type Origin =
  | { readonly kind: 'default'; readonly because?: string }
  | {
      readonly kind: 'file' | 'drop-in';
      readonly file: string;
      readonly line: number;
      readonly column: number;
    }
  /** With its dashes. */
  | { readonly kind: 'flag'; readonly flag: string };

export const byDefault: Origin = { kind: 'default' };

/** As `default`, `/etc/kubelet.yaml:12` or `--max-pods`. */
export function describeOrigin(origin: Origin): string {
  if (origin.kind === 'flag') return origin.flag;
  if (origin.kind !== 'default') return `${origin.file}:${origin.line}`;
  return origin.because === undefined ? 'default' : `default, ${origin.because}`;
}

/** Paths are written as Kubernetes writes them: `authentication.x509`, `evictionHard[memory.available]`, `clusterDNS[0]`. */
export function fieldPath(parent: string, name: string): string {
  return parent === '' ? name : `${parent}.${name}`;
}

export function keyPath(parent: string, key: string | number): string {
  return `${parent}[${key}]`;
}

/** The name of the top-level field a path lies in. */
export function topField(path: string): string {
  return /^[^.[]*/.exec(path)?.[0] ?? path;
}

/** The origin of every value of a configuration. */
export class Origins {
  readonly #byPath: ReadonlyMap<string, Origin>;

  constructor(byPath: ReadonlyMap<string, Origin>) {
    this.#byPath = byPath;
  }

  /** Of the value at the path, or of the nearest thing around it that is known. */
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

  /** A copy in which some values have another origin. */
  with(changes: Iterable<readonly [string, Origin]>): Origins {
    return new Origins(new Map([...this.#byPath, ...changes]));
  }
}

function parentPath(path: string): string {
  if (path.endsWith(']')) return path.slice(0, path.lastIndexOf('['));
  const dot = path.lastIndexOf('.');
  return dot < 0 ? '' : path.slice(0, dot);
}
