import { checkLength, mostRequirements } from './label-selector.ts';
import { badRequest } from './refusals.ts';
import { type StoredObject, valueAt } from './stored-object.ts';

/** One demand of a field selector. */
export interface FieldTerm {
  readonly path: string;
  readonly operator: '=' | '!=';
  readonly value: string;
}

/** The demands of a selector such as `spec.nodeName=n,status.phase!=Failed`, in order; throws a StatusError. */
export function fieldTerms(selector: string | undefined): readonly FieldTerm[] {
  checkLength(selector ?? '', 'field');
  const texts = splitUnescaped(selector ?? '').filter((text) => text !== '');
  if (texts.length > mostRequirements)
    throw badRequest(`a field selector must have at most ${mostRequirements} requirements`);
  return texts.toSorted().map((text) => termOf(text, selector ?? ''));
}

/** A backslash takes its meaning from the sign after it. */
function splitUnescaped(text: string): readonly string[] {
  return text.match(/(?:\\.|[^,\\])+/gs) ?? [];
}

function termOf(text: string, whole: string): FieldTerm {
  const parts = /^((?:\\.|[^\\=!])*?)(!=|==|=)(.*)$/s.exec(text);
  if (parts === null) throw badRequest(`invalid selector: '${whole}'; can't understand '${text}'`);
  const [, path = '', operator, value = ''] = parts;
  return { path: path.trim(), operator: operator === '!=' ? '!=' : '=', value: unescaped(value) };
}

function unescaped(value: string): string {
  const bare = value.replaceAll(/\\./gs, '').match(/[,=]/)?.[0];
  if (bare !== undefined)
    throw badRequest(`invalid field selector: unescaped character in value: ${bare.charCodeAt(0)}`);
  return value.replaceAll(/\\(.?)/gs, (_, sign: string) => {
    if (sign === '' || !'\\,='.includes(sign))
      throw badRequest(`invalid field selector: invalid escape sequence: \\${sign}`);
    return sign;
  });
}

/** The value a field must have by the selector; undefined when it says nothing definite. */
export function selectedField(selector: string | undefined, path: string): string | undefined {
  return fieldTerms(selector).find((term) => term.path === path && term.operator === '=')?.value;
}

/** Fields that are no text: what they are when they are not there. */
const absent: Readonly<Record<string, string>> = {
  'spec.hostNetwork': 'false',
  'spec.unschedulable': 'false',
};

/** A field as selectors compare it: one that is not there is as good as its zero value. */
export function fieldText(object: StoredObject, path: string): string {
  if (path === 'source')
    return String(valueAt(object, 'source.component') ?? valueAt(object, 'reportingComponent') ?? '');
  const value = valueAt(object, path);
  return typeof value === 'object' ? '' : String(value ?? absent[path] ?? '');
}
