import type { Instant } from '../../lib/index.ts';
import { type Clock, describeError, withDeadline } from '../../lib/index.ts';

export type Severity = 'ok' | 'note' | 'warn' | 'fail';

/**
 * The result of one check. A note is a fact about this machine with a consequence, a warning is a
 * likely problem, and a failure prevents pods from running. Warnings and failures always include
 * advice.
 */
export type Observation =
  | { readonly severity: 'ok'; readonly finding: string }
  | {
      readonly severity: 'note';
      readonly finding: string;
      readonly consequence: string;
      readonly advice?: string;
    }
  | {
      readonly severity: 'warn' | 'fail';
      readonly finding: string;
      readonly consequence: string;
      readonly advice: string;
    };

export interface DoctorOptions {
  readonly dataDirectory: string;
  /** The runtime endpoint to check; if undefined, all known runtime endpoints are checked. */
  readonly runtimeEndpoint?: string;
}

/** The input of a check: the machine and the options of `doctor`. */
export interface CheckTarget extends DoctorOptions {
  readonly machine: Machine;
}

/** A check of the machine. A rejection becomes a warning and does not affect other checks. */
export interface Check {
  readonly name: string;
  observe(target: CheckTarget, signal: AbortSignal): Promise<readonly Observation[]>;
}

/** A finding with the name of its check. */
export type Finding = Observation & { readonly check: string };

export function ok(finding: string): Observation {
  return { severity: 'ok', finding };
}

export type FileKind = 'file' | 'directory' | 'socket' | 'device' | 'other';

/** Size and type of the file system that contains a path. */
export interface Space {
  /** The kernel's magic number of the file system type. */
  readonly type: number;
  readonly totalBytes: number;
  readonly availableBytes: number;
  /** The number of inodes; zero for file systems without a fixed number. */
  readonly totalInodes: number;
  readonly freeInodes: number;
}

export interface Ran {
  readonly code: number;
  /** The output of the program: its standard output followed by its standard error. */
  readonly output: string;
}

export interface RuntimeResponse {
  readonly name: string;
  readonly version: string;
}

/**
 * All facts about a machine that the checks read; tests replace it. Methods reject with a printable
 * error when a fact cannot be read; a missing file gives undefined where the method says so.
 */
export interface Machine {
  readonly platform: string;
  readonly arch: string;
  readonly nodeVersion: string;
  readonly kernelRelease: string;
  readonly uid: number;
  now(): Instant;
  /** Returns the text of a regular file; undefined if it does not exist. */
  readText(path: string): Promise<string | undefined>;
  /** Returns the names in a directory; undefined if it does not exist. */
  list(path: string): Promise<readonly string[] | undefined>;
  kindOf(path: string): Promise<FileKind | undefined>;
  /** Opens a file for reading and closes it, without waiting for data; rejects if that fails. */
  tryOpen(path: string): Promise<void>;
  spaceAt(path: string): Promise<Space>;
  /** Returns the path of a command; undefined if it is not installed. */
  findCommand(name: string): Promise<string | undefined>;
  run(file: string, args: readonly string[], signal: AbortSignal): Promise<Ran>;
  queryRuntime(endpoint: string, signal: AbortSignal): Promise<RuntimeResponse>;
}

const deadlineMs = 10_000;

/** Runs all checks concurrently and returns their findings in the order of the checks. */
export async function examine(
  checks: readonly Check[],
  target: CheckTarget,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const all = await Promise.all(
    checks.map(async (check) => {
      const observations = await runCheck(check, target, clock, signal);
      return observations.map((observation) => ({ ...observation, check: check.name }));
    }),
  );
  signal.throwIfAborted();
  return all.flat();
}

async function runCheck(
  check: Check,
  target: CheckTarget,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly Observation[]> {
  const deadline = { clock, ms: deadlineMs, what: `check ${check.name}` };
  try {
    return await withDeadline(deadline, (inner) => check.observe(target, inner), signal);
  } catch (error) {
    return [
      {
        severity: 'warn',
        finding: `could not be checked: ${describeError(error)}`,
        consequence: 'kubeling may have the same problem when it runs',
        advice: 'find out why this cannot be read',
      },
    ];
  }
}

/**
 * Returns the first two numbers of a version, such as [6, 1] for "6.1.0-13-amd64"; undefined if the
 * text has none.
 */
function versionNumbers(text: string): readonly [number, number] | undefined {
  const found = /(\d{1,9})\.(\d{1,9})/.exec(text);
  return found === null ? undefined : [Number(found[1]), Number(found[2])];
}

export function isAtLeast(text: string, [major, minor]: readonly [number, number]): boolean {
  const found = versionNumbers(text);
  if (found === undefined) return false;
  return found[0] > major || (found[0] === major && found[1] >= minor);
}
