import type { Logger } from '../../lib/index.ts';

/**
 * The audit record of an exec, attach, port-forward or proxy request, with its user, target and
 * result.
 */
export interface AuditEvent {
  readonly user: string;
  /** The IP address of the client. */
  readonly source: string | undefined;
  /** The resource with its subresource, such as `pods/exec`. */
  readonly what: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly podUid?: string | undefined;
  readonly container?: string | undefined;
  /** The executed program; its arguments may contain secrets, so only their number is logged. */
  readonly program?: string | undefined;
  readonly argumentCount?: number | undefined;
  /** The path of a proxy request without its query. */
  readonly path?: string | undefined;
  /** The status code of the response, with the message of an error. */
  readonly result: string;
  readonly durationMs: number;
}

const maxTextLength = 2_048;

/** Logs one line for each audited request, whatever its result. */
export function logAuditEvent(log: Logger, reach: AuditEvent): void {
  const { program, path, durationMs, ...rest } = reach;
  log.info('Audit: streaming or proxy request', {
    ...rest,
    program: program && shortened(program),
    path: path && shortened(path),
    durationMs: Math.round(durationMs),
  });
}

function shortened(text: string): string {
  return text.length <= maxTextLength ? text : `${text.slice(0, maxTextLength)}… (${text.length} characters)`;
}
