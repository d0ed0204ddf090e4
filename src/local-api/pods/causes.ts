import type { FieldProblem } from '../../pods/index.ts';
import type { FieldCause } from '../core/index.ts';

export function causesOf(problems: readonly FieldProblem[]): readonly FieldCause[] {
  return problems.map(({ named, reason, message }) => ({ reason, field: named.toString(), message }));
}

export function forbiddenField(field: string, why: string): FieldCause {
  return { reason: 'FieldValueForbidden', field, message: `Forbidden: ${why}` };
}

export function invalidField(field: string, value: unknown, why: string): FieldCause {
  const shown = value === undefined ? 'null' : JSON.stringify(value);
  return { reason: 'FieldValueInvalid', field, message: `Invalid value: ${shown}: ${why}` };
}
