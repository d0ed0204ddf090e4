import type { FieldPath } from '../../kinds/index.ts';

/** Takes what is wrong with a field; a rule goes on after telling, so that all mistakes are told at once. */
export type Report = (field: FieldPath, message: string) => void;

/** Whether a text is of some form: undefined when it is, else what it must be. */
export type TextRule = (text: string) => string | undefined;

const longestShown = 120;

export function show(value: unknown): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return text.length > longestShown ? `${text.slice(0, longestShown)}…` : text;
}

export function wrong(report: Report, field: FieldPath, value: unknown, must: string): void {
  report(field, `must ${must}: current value is ${show(value)}`);
}

export function missing(report: Report, field: FieldPath, why = ''): void {
  report(field, why === '' ? 'must be set' : `must be set ${why}`);
}

export function refuse(report: Report, field: FieldPath, why: string): void {
  report(field, `must not be set ${why}`);
}

export function repeated(report: Report, field: FieldPath, value: unknown): void {
  report(field, `must not repeat a value used before: current value is ${show(value)}`);
}

/** Text that must be there. */
export function checkPresent(report: Report, field: FieldPath, text: string | undefined): void {
  if (!text) missing(report, field);
}

/** Text that must be of a form if it is there; an empty one counts as not there. */
export function checkText(report: Report, field: FieldPath, text: string | undefined, rule: TextRule): void {
  const must = text ? rule(text) : undefined;
  if (must !== undefined) wrong(report, field, text, must);
}

/** Text that must be there and of a form. */
export function checkName(report: Report, field: FieldPath, text: string | undefined, rule: TextRule): void {
  checkPresent(report, field, text);
  checkText(report, field, text, rule);
}

/** One of a few words; nothing is fine where `absent` says so. */
export function checkChoice(
  report: Report,
  field: FieldPath,
  value: string | undefined,
  choice: { readonly of: readonly string[]; readonly absent: 'allowed' | 'refused' },
): void {
  if (value === undefined && choice.absent === 'allowed') return;
  if (!value && choice.absent === 'refused') missing(report, field);
  else if (value === undefined || !choice.of.includes(value))
    wrong(report, field, value, `be one of ${choice.of.map((word) => word || '""').join(', ')}`);
}

export function checkRange(
  report: Report,
  field: FieldPath,
  value: number | undefined,
  [least, most]: readonly [number, number],
): void {
  if (value === undefined || (value >= least && value <= most)) return;
  wrong(
    report,
    field,
    value,
    most === Number.POSITIVE_INFINITY ? `be ${least} or more` : `be between ${least} and ${most}`,
  );
}
