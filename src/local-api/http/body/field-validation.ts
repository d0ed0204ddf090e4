import type { KindFinding } from '../../../kinds/index.ts';
import { invalidOption } from '../refusals.ts';

/** What is done about fields nobody knows, and those that are written twice. */
export type FieldValidation = 'Strict' | 'Warn' | 'Ignore';

const known: readonly FieldValidation[] = ['Strict', 'Warn', 'Ignore'];

export function fieldValidation(query: URLSearchParams, options: string): FieldValidation {
  const wanted = query.get('fieldValidation') ?? '';
  if (wanted === '') return 'Warn';
  const found = known.find((value) => value === wanted);
  if (found !== undefined) return found;
  const message = `Unsupported value: ${JSON.stringify(wanted)}: supported values: "", "Ignore", "Strict", "Warn"`;
  throw invalidOption(options, 'fieldValidation', message);
}

/** A breach of strictness, as the API words it; `advice` is for people who only get warned. */
export interface FieldBreach {
  readonly text: string;
  readonly advice: string;
}

/** Nobody reads more than these. */
const mostBreaches = 100;

export function breachesOf(
  findings: readonly KindFinding[],
  duplicates: readonly string[],
): readonly FieldBreach[] {
  const twice = duplicates.map((path) => ({ text: `duplicate field ${JSON.stringify(path)}`, advice: '' }));
  const found = findings.flatMap((finding) => breachOf(finding));
  return [...twice, ...found].slice(0, mostBreaches);
}

function breachOf({ problem, field, message }: KindFinding): readonly FieldBreach[] {
  if (problem === 'value') return [];
  const what = problem === 'twice' ? 'duplicate' : 'unknown';
  // The finding names the nearest known field at its end, where there is one.
  const advice = / \(did you mean [^()]*\?\)$/.exec(message)?.[0] ?? '';
  return [{ text: `${what} field ${JSON.stringify(String(field))}`, advice }];
}

export function strictText(breaches: readonly FieldBreach[]): string {
  return `strict decoding error: ${breaches.map(({ text }) => text).join(', ')}`;
}
