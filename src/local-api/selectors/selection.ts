import type { ApiRequest, ResourceEntry } from '../api/api-types.ts';
import { badRequest } from '../api/status-errors.ts';
import type { StoredObject } from '../api/stored-object.ts';
import { valueAt } from '../api/stored-object.ts';
import { checkLength, labelTests, maxRequirements } from './label-selector.ts';

export type ObjectTest = (object: StoredObject) => boolean;

export interface Selection {
  readonly test: ObjectTest;
  /** Whether the selectors are empty, so that all objects in the namespace match. */
  readonly matches: 'all' | 'some';
}

/**
 * The objects that a list or watch selects, including its namespace. Throws a StatusError for
 * invalid selectors.
 */
export function selection(
  request: ApiRequest,
  { fieldSelectors, view }: Pick<ResourceEntry, 'fieldSelectors' | 'view'>,
): Selection {
  const { namespace, name } = request;
  const selecting = [...fieldTests(request, fieldSelectors), ...byLabels(request), ...byName(name)];
  const tests = namespace === undefined ? selecting : [inNamespace(namespace), ...selecting];
  const test: ObjectTest = (object) => tests.every((one) => one(object));
  return {
    test: view === undefined ? test : (stored) => test(view.toView(stored)),
    matches: selecting.length === 0 ? 'all' : 'some',
  };
}

function inNamespace(namespace: string): ObjectTest {
  return ({ metadata }) => metadata.namespace === namespace;
}

/** A watch of one object by its path selects the object by name. */
function byName(name: string | undefined): readonly ObjectTest[] {
  return name === undefined ? [] : [({ metadata }) => metadata.name === name];
}

function byLabels({ labelSelector }: ApiRequest): readonly ObjectTest[] {
  return labelTests(labelSelector).map(
    (test) =>
      ({ metadata }) =>
        test(metadata.labels ?? {}),
  );
}

function fieldTests(
  { fieldSelector, resource: { scope } }: ApiRequest,
  selectable: readonly string[],
): readonly ObjectTest[] {
  // Kinds without own selectable fields accept metadata.namespace even if cluster-scoped.
  const isNamespaced = scope === 'namespace' || selectable.length === 0;
  const common = ['metadata.name', ...(isNamespaced ? ['metadata.namespace'] : [])];
  return fieldRequirements(fieldSelector).map(({ path, operator, value }) => {
    if (!common.includes(path) && !selectable.includes(path)) throw unknownField(path, selectable);
    return operator === '='
      ? (object) => fieldText(object, path) === value
      : (object) => fieldText(object, path) !== value;
  });
}

/** Kinds with own selectable fields have a different error message. */
function unknownField(path: string, selectable: readonly string[]): Error {
  return badRequest(
    selectable.length > 0
      ? `field label not supported: ${path}`
      : `"${path}" is not a known field selector: only "metadata.name", "metadata.namespace"`,
  );
}

/** One requirement of a field selector. */
export interface FieldRequirement {
  readonly path: string;
  readonly operator: '=' | '!=';
  readonly value: string;
}

/**
 * The requirements of a selector such as `spec.nodeName=n,status.phase!=Failed`, sorted; throws a
 * StatusError.
 */
export function fieldRequirements(selector: string | undefined): readonly FieldRequirement[] {
  checkLength(selector ?? '', 'field');
  const texts = splitUnescaped(selector ?? '').filter((text) => text !== '');
  if (texts.length > maxRequirements)
    throw badRequest(`a field selector must have at most ${maxRequirements} requirements`);
  return texts.toSorted().map((text) => requirementOf(text, selector ?? ''));
}

/** A backslash in a field selector escapes the next character. */
function splitUnescaped(text: string): readonly string[] {
  return text.match(/(?:\\.|[^,\\])+/gs) ?? [];
}

function requirementOf(text: string, selector: string): FieldRequirement {
  const parts = /^((?:\\.|[^\\=!])*?)(!=|==|=)(.*)$/s.exec(text);
  if (parts === null) throw badRequest(`invalid selector: '${selector}'; can't understand '${text}'`);
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

/**
 * The value that the selector requires of a field; undefined if the selector does not require one.
 */
export function requiredFieldValue(selector: string | undefined, path: string): string | undefined {
  return fieldRequirements(selector).find((term) => term.path === path && term.operator === '=')?.value;
}

/** The zero values of selectable fields that are not strings. */
const zeroValues: Readonly<Record<string, string>> = {
  'spec.hostNetwork': 'false',
  'spec.unschedulable': 'false',
};

/** The value of a field as text for field selectors; a missing field has its zero value. */
function fieldText(object: StoredObject, path: string): string {
  if (path === 'source')
    return String(valueAt(object, 'source.component') ?? valueAt(object, 'reportingComponent') ?? '');
  const value = valueAt(object, path);
  return typeof value === 'object' ? '' : String(value ?? zeroValues[path] ?? '');
}
