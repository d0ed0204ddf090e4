import type { KindFinding } from '../../../kinds/index.ts';
import type { ResourceEntry, ResourceVerb } from '../../api/index.ts';
import { invalidOption } from '../http-errors.ts';

/** What must be sent to a path. */
export interface ExpectedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

export const deleteOptions: ExpectedKind = { group: 'meta.k8s.io', version: 'v1', kind: 'DeleteOptions' };

/** What a verb of a resource or of one of its parts takes. */
export function expectedKind(
  { resource, subresources }: ResourceEntry,
  subresource: string | undefined,
  verb: ResourceVerb,
): ExpectedKind {
  if (verb === 'delete' || verb === 'deletecollection') return deleteOptions;
  const part = subresources.find(({ name }) => name === subresource);
  return {
    group: part?.group ?? resource.group,
    version: part?.version ?? resource.version,
    kind: part?.kind ?? resource.kind,
  };
}

export function apiVersion({ group, version }: ExpectedKind): string {
  return group === '' ? version : `${group}/${version}`;
}

export function parseApiVersion(text: string): Pick<ExpectedKind, 'group' | 'version'> {
  const at = text.indexOf('/');
  return at < 0 ? { group: '', version: text } : { group: text.slice(0, at), version: text.slice(at + 1) };
}

/** Some are known by several versions, which have all they need in common. */
export function isSameKind(expected: ExpectedKind, written: string): boolean {
  if (written === '' || written === apiVersion(expected)) return true;
  if (expected.kind === 'DeleteOptions') return true;
  return expected.kind === 'Eviction' && written === 'policy/v1beta1';
}

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
