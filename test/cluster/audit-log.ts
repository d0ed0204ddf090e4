import { open, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** One request of a node, as recorded in the audit log of the API server. */
export interface AuditedCall {
  readonly auditID: string;
  readonly stage: 'ResponseStarted' | 'ResponseComplete' | 'Panic';
  readonly verb: string;
  readonly requestURI: string;
  readonly objectRef?: {
    readonly resource?: string;
    readonly subresource?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number };
}

const policy = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'Metadata', userGroups: ['system:nodes'] }, { level: 'None' }],
};

/** Reads the requests of nodes from the audit log of the API server. */
export class AuditLog {
  /** The path of the audit log. */
  readonly file: string;
  /** The flags that make a real API server write the log. */
  readonly flags: readonly string[];

  static async prepare(dir: string): Promise<AuditLog> {
    const policyFile = join(dir, 'audit-policy.json');
    await writeFile(policyFile, JSON.stringify(policy));
    return new AuditLog(join(dir, 'audit.log'), policyFile);
  }

  private constructor(log: string, policyFile: string) {
    this.file = log;
    this.flags = [`--audit-policy-file=${policyFile}`, `--audit-log-path=${log}`];
  }

  /** Returns the current position in the log. */
  async now(): Promise<number> {
    return (await stat(this.file)).size;
  }

  async since(place: number): Promise<readonly AuditedCall[]> {
    await using file = await open(this.file);
    const { size } = await file.stat();
    const { buffer } = await file.read({ buffer: Buffer.alloc(size - place), position: place });
    const lines = buffer.toString().split('\n');
    // The last line is empty, or not completely written yet.
    return lines.slice(0, -1).map((line) => JSON.parse(line));
  }
}

/** Returns all requests that write pods or their subresources, each as one line. */
export function writesToPods(calls: readonly AuditedCall[]): readonly string[] {
  return calls
    .filter(({ verb, objectRef }) => objectRef?.resource === 'pods' && !readingVerbs.has(verb))
    .map(({ verb, requestURI }) => `${verb} ${requestURI}`);
}

const readingVerbs: ReadonlySet<string> = new Set(['get', 'list', 'watch']);

/**
 * Returns how often a watch of each path was started; parameters that differ between watches of the
 * same objects are ignored.
 */
export function watchesBegun(calls: readonly AuditedCall[]): ReadonlyMap<string, number> {
  const begun = new Map<string, number>();
  for (const call of calls) {
    if (call.verb !== 'watch' || call.stage !== 'ResponseStarted') continue;
    begun.set(watchedBy(call), (begun.get(watchedBy(call)) ?? 0) + 1);
  }
  return begun;
}

/** Returns the paths of the open watches; a path occurs once for each of its open watches. */
export function openWatches(calls: readonly AuditedCall[]): readonly string[] {
  const open = new Map<string, string>();
  for (const call of calls) {
    if (call.verb !== 'watch') continue;
    if (call.stage === 'ResponseStarted') open.set(call.auditID, watchedBy(call));
    else open.delete(call.auditID);
  }
  return [...open.values()].toSorted();
}

function watchedBy({ requestURI }: AuditedCall): string {
  const { pathname, searchParams } = new URL(requestURI, 'https://server');
  return `${pathname}?${searchParams.get('fieldSelector') ?? ''}`;
}
