import type { Instant } from '../../lib/index.ts';
import { type Clock, describeError, withDeadline } from '../../lib/index.ts';

export type Severity = 'ok' | 'note' | 'warn' | 'fail';

/**
 * What one look found. A note is a fact of this machine with a consequence worth knowing; a warning will hurt; after
 * a failure pods cannot run. The latter two always say what to do.
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
  /** The only one to look at when given. */
  readonly runtimeEndpoint?: string;
}

/** What a check gets to look at. */
export interface Patient extends DoctorOptions {
  readonly machine: Machine;
}

/** One question to a machine. It may reject: that becomes a warning of its own and harms no other check. */
export interface Check {
  readonly name: string;
  look(patient: Patient, signal: AbortSignal): Promise<readonly Observation[]>;
}

/** An observation together with the check that made it. */
export type Finding = Observation & { readonly check: string };

export function ok(finding: string): Observation {
  return { severity: 'ok', finding };
}

export type FileKind = 'file' | 'directory' | 'socket' | 'device' | 'other';

/** The file system a path lies on. */
export interface Space {
  /** The number the kernel gives the type of file system. */
  readonly type: number;
  readonly totalBytes: number;
  readonly availableBytes: number;
  /** Zero for file systems without a fixed number of inodes. */
  readonly totalInodes: number;
  readonly freeInodes: number;
}

export interface Ran {
  readonly code: number;
  /** Standard output, then standard error. */
  readonly output: string;
}

export interface RuntimeAnswer {
  readonly name: string;
  readonly version: string;
}

/**
 * All that the checks see of a machine, so that tests can show them any machine. Everything may reject, with an
 * error worth showing, when it cannot be had; what merely is not there is answered as undefined where it says so.
 */
export interface Machine {
  readonly platform: string;
  readonly arch: string;
  readonly nodeVersion: string;
  readonly kernelRelease: string;
  readonly uid: number;
  now(): Instant;
  /** The text of a file, undefined when there is none. Not for devices. */
  readText(path: string): Promise<string | undefined>;
  /** The names in a directory, undefined when there is none. */
  list(path: string): Promise<readonly string[] | undefined>;
  kindOf(path: string): Promise<FileKind | undefined>;
  /** Opens for reading and closes again, without ever waiting for data. */
  tryOpen(path: string): Promise<void>;
  spaceAt(path: string): Promise<Space>;
  /** The path of a command, undefined when there is none. */
  findCommand(name: string): Promise<string | undefined>;
  run(file: string, args: readonly string[], signal: AbortSignal): Promise<Ran>;
  askRuntime(endpoint: string, signal: AbortSignal): Promise<RuntimeAnswer>;
}

const deadlineMs = 10_000;

/** Makes every check look, all at once, and answers their findings in the order of the checks. */
export async function examine(
  checks: readonly Check[],
  patient: Patient,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const all = await Promise.all(
    checks.map(async (check) => {
      const observations = await runCheck(check, patient, clock, signal);
      return observations.map((observation) => ({ ...observation, check: check.name }));
    }),
  );
  signal.throwIfAborted();
  return all.flat();
}

async function runCheck(
  check: Check,
  patient: Patient,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly Observation[]> {
  const deadline = { clock, ms: deadlineMs, what: `look at ${check.name}` };
  try {
    return await withDeadline(deadline, (inner) => check.look(patient, inner), signal);
  } catch (error) {
    return [
      {
        severity: 'warn',
        finding: `could not be looked at: ${describeError(error)}`,
        consequence: 'kubeling may meet the same obstacle when it runs',
        advice: 'find out why this cannot be read here',
      },
    ];
  }
}

/** The first numbers of a version, as [6, 1] of "6.1.0-13-amd64"; undefined when there are none. */
export function versionNumbers(text: string): readonly [number, number] | undefined {
  const found = /(\d{1,9})\.(\d{1,9})/.exec(text);
  return found === null ? undefined : [Number(found[1]), Number(found[2])];
}

export function isAtLeast(text: string, [major, minor]: readonly [number, number]): boolean {
  const found = versionNumbers(text);
  if (found === undefined) return false;
  return found[0] > major || (found[0] === major && found[1] >= minor);
}
