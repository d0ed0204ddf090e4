import type { Logger } from '../../lib/index.ts';

/** Somebody reached into a pod or through a node: who, from where, with what words, and how it ended. */
export interface Reach {
  readonly user: string;
  /** The address of the caller. */
  readonly source: string | undefined;
  /** Such as `pods/exec`. */
  readonly what: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly podUid?: string | undefined;
  readonly container?: string | undefined;
  /** The command, word by word; for a proxy the path. */
  readonly argv?: readonly string[] | undefined;
  /** A status code, with what was said if it was a refusal. */
  readonly result: string;
  readonly durationMs: number;
}

const longestArgv = 2_048;

/** One line, whatever became of it. */
export function auditLine(log: Logger, reach: Reach): void {
  const { argv = [], durationMs, ...rest } = reach;
  log.info('Audit: somebody reached into a pod or a node', {
    ...rest,
    argv: argv.length === 0 ? undefined : shortened(JSON.stringify(argv)),
    durationMs: Math.round(durationMs),
  });
}

function shortened(text: string): string {
  return text.length <= longestArgv ? text : `${text.slice(0, longestArgv)}… (${text.length} characters)`;
}
