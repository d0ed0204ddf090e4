import type { KindFinding } from '../../../kinds/index.ts';
import type { ResourceEntry, ResourceVerb } from '../../api/index.ts';
import { invalidOption } from '../http-errors.ts';

/** The kind of the request body that a path requires. */
export interface ExpectedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

export const deleteOptions: ExpectedKind = { group: 'meta.k8s.io', version: 'v1', kind: 'DeleteOptions' };

/** The kind of the request body for a verb of a resource or subresource. */
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

/** Eviction and DeleteOptions are accepted in several API versions, whose fields are equal here. */
export function isSameKind(expected: ExpectedKind, declared: string): boolean {
  if (declared === '' || declared === apiVersion(expected)) return true;
  if (expected.kind === 'DeleteOptions') return true;
  return expected.kind === 'Eviction' && declared === 'policy/v1beta1';
}

/** The fieldValidation option: how unknown and duplicate fields are handled. */
export type FieldValidation = 'Strict' | 'Warn' | 'Ignore';

const known: readonly FieldValidation[] = ['Strict', 'Warn', 'Ignore'];

export function fieldValidation(query: URLSearchParams, options: string): FieldValidation {
  const requested = query.get('fieldValidation') ?? '';
  if (requested === '') return 'Warn';
  const found = known.find((value) => value === requested);
  if (found !== undefined) return found;
  const message = `Unsupported value: ${JSON.stringify(requested)}: supported values: "", "Ignore", "Strict", "Warn"`;
  throw invalidOption(options, 'fieldValidation', message);
}

/**
 * A violation of strict decoding, such as an unknown or duplicate field, in the words of
 * kube-apiserver; `advice` is added to warnings.
 */
export interface StrictViolation {
  readonly text: string;
  readonly advice: string;
}

/** The maximum number of violations of strict decoding that a message lists. */
const maxViolations = 100;

export function strictViolations(
  findings: readonly KindFinding[],
  duplicates: readonly string[],
): readonly StrictViolation[] {
  const duplicateFields = duplicates.map((path) => ({
    text: `duplicate field ${JSON.stringify(path)}`,
    advice: '',
  }));
  const found = findings.flatMap((finding) => strictViolationOf(finding));
  return [...duplicateFields, ...found].slice(0, maxViolations);
}

function strictViolationOf({ problem, field, message }: KindFinding): readonly StrictViolation[] {
  if (problem === 'value') return [];
  const what = problem === 'twice' ? 'duplicate' : 'unknown';
  // The finding ends with a suggestion if a field has a similar name.
  const advice = / \(did you mean [^()]*\?\)$/.exec(message)?.[0] ?? '';
  return [{ text: `${what} field ${JSON.stringify(String(field))}`, advice }];
}

export function strictErrorMessage(breaches: readonly StrictViolation[]): string {
  return `strict decoding error: ${breaches.map(({ text }) => text).join(', ')}`;
}
