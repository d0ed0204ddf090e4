import type { FieldPath } from '../../kinds/index.ts';
import type { FieldProblem, FieldReason } from '../rules.ts';

/**
 * Receives validation errors; validation continues after an error, so that all are reported
 * together.
 */
export type Report = (problem: FieldProblem) => void;

/** Returns why a text does not match a format; empty when it matches. */
export type TextRule = (text: string) => readonly string[];

/** Formats a value for a message: texts in quotes, lists and objects as JSON. */
function show(value: unknown): string {
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : JSON.stringify(value);
}

/**
 * Reports errors under the field name `as`, which the API server uses instead of the invalid field.
 */
export function named(report: Report, as: FieldPath): Report {
  return (problem) => report({ ...problem, named: as });
}

function tell(report: Report, field: FieldPath, reason: FieldReason, parts: readonly string[]): void {
  const message = parts.filter((part) => part !== '').join(': ');
  report({ field, named: field, reason, message });
}

export function wrong(report: Report, field: FieldPath, value: unknown, why: string): void {
  tell(report, field, 'FieldValueInvalid', ['Invalid value', show(value ?? ''), why]);
}

export function missing(report: Report, field: FieldPath, why = ''): void {
  tell(report, field, 'FieldValueRequired', ['Required value', why]);
}

export function refuse(report: Report, field: FieldPath, why: string): void {
  tell(report, field, 'FieldValueForbidden', ['Forbidden', why]);
}

export function repeated(report: Report, field: FieldPath, value: unknown): void {
  tell(report, field, 'FieldValueDuplicate', ['Duplicate value', show(value)]);
}

/** Reports a reference to a name that does not exist in the pod. */
export function notThere(report: Report, field: FieldPath, value: unknown, why = ''): void {
  tell(report, field, 'FieldValueNotFound', ['Not found', show(value ?? ''), why]);
}

export function tooLong(report: Report, field: FieldPath, most: number): void {
  tell(report, field, 'FieldValueTooLong', ['Too long', `may not be more than ${most} bytes`]);
}

export function tooMany(report: Report, field: FieldPath, count: number, most: number): void {
  tell(report, field, 'FieldValueTooMany', ['Too many', String(count), `must have at most ${most} items`]);
}

export function unsupported(report: Report, field: FieldPath, value: unknown, of: readonly string[]): void {
  const supported = `supported values: ${of.map((word) => show(word)).join(', ')}`;
  tell(report, field, 'FieldValueNotSupported', ['Unsupported value', show(value ?? ''), supported]);
}

/** Requires a text that is not empty. */
export function checkPresent(report: Report, field: FieldPath, text: string | undefined): void {
  if (!text) missing(report, field);
}

/** Validates the format of an optional text; an empty text counts as missing. */
export function checkText(report: Report, field: FieldPath, text: string | undefined, rule: TextRule): void {
  if (text) for (const why of rule(text)) wrong(report, field, text, why);
}

/** Requires a text that has the given format. */
export function checkName(report: Report, field: FieldPath, text: string | undefined, rule: TextRule): void {
  checkPresent(report, field, text);
  checkText(report, field, text, rule);
}

/** Validates the format of a text, even if the text is empty. */
export function checkForm(report: Report, field: FieldPath, text: string | undefined, rule: TextRule): void {
  for (const why of rule(text ?? '')) wrong(report, field, text, why);
}

/**
 * Requires one of several values, which the error lists in the given order; the value may be
 * missing where `absent` allows it.
 */
export function checkChoice(
  report: Report,
  field: FieldPath,
  value: string | undefined,
  choice: { readonly of: readonly string[]; readonly absent: 'allowed' | 'refused' | 'unsupported' },
): void {
  if (value === undefined && choice.absent === 'allowed') return;
  if (!value && choice.absent === 'refused') missing(report, field);
  else if (value === undefined || !choice.of.includes(value)) unsupported(report, field, value, choice.of);
}

export const notNegative = 'must be greater than or equal to 0';

export function checkNotNegative(report: Report, field: FieldPath, value: number | undefined): void {
  if (value !== undefined && value < 0) wrong(report, field, value, notNegative);
}

export function checkRange(
  report: Report,
  field: FieldPath,
  value: number | undefined,
  [least, most]: readonly [number, number],
): void {
  if (value !== undefined && (value < least || value > most))
    wrong(report, field, value, `must be between ${least} and ${most}, inclusive`);
}
