import { KubelingError } from '../lib/index.ts';
import type { Origin } from './origins.ts';

/** Something to tell about the configuration: a mistake, or a warning. */
export interface Finding {
  /** A file, a flag with its dashes, `default`, or `command line`. */
  readonly source: string;
  readonly line: number | undefined;
  readonly column: number | undefined;
  /** The path of the field; empty when it is about no field. */
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

/** A finding about a whole file, or about something that is no value of a field. */
export function findingIn(source: string, message: string, field = ''): Finding {
  return { source, line: undefined, column: undefined, field, message };
}

/** As `/etc/kubelet.yaml:12:3: maxPod: is not a known field (did you mean maxPods?)`. */
export function describeFinding(finding: Finding): string {
  const place = [finding.source, finding.line, finding.column].filter((part) => part !== undefined).join(':');
  return [place, finding.field, finding.message].filter((part) => part !== '').join(': ');
}

/** One error for all mistakes, sorted as they stand in the files. */
export function configInvalid(problems: readonly Finding[]): KubelingError {
  const sorted = [...problems].sort(byPlace);
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

function byPlace(a: Finding, b: Finding): number {
  if (a.source !== b.source || a.line === undefined || b.line === undefined) return 0;
  return a.line - b.line || (a.column ?? 0) - (b.column ?? 0);
}
