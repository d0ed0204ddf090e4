import type { Logger } from '../../lib/index.ts';

/** Somebody reached into a pod or through a node: who, from where, with what words, and how it ended. */
export interface AuditEvent {
  readonly user: string;
  /** The address of the caller. */
  readonly source: string | undefined;
  /** Such as `pods/exec`. */
  readonly what: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly podUid?: string | undefined;
  readonly container?: string | undefined;
  /** The program that was run; its arguments may be secrets, so there is only their number. */
  readonly program?: string | undefined;
  readonly argumentCount?: number | undefined;
  /** Of a proxy, without its query. */
  readonly path?: string | undefined;
  /** A status code, with what was said if it was a refusal. */
  readonly result: string;
  readonly durationMs: number;
}

const maxTextLength = 2_048;

/** One line, whatever became of it. */
export function logAuditEvent(log: Logger, reach: AuditEvent): void {
  const { program, path, durationMs, ...rest } = reach;
  log.info('Audit: somebody reached into a pod or a node', {
    ...rest,
    program: program && shortened(program),
    path: path && shortened(path),
    durationMs: Math.round(durationMs),
  });
}

function shortened(text: string): string {
  return text.length <= maxTextLength ? text : `${text.slice(0, maxTextLength)}… (${text.length} characters)`;
}
