import type { Machine } from './machine.ts';

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
