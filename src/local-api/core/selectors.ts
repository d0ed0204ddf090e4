import type { ResourceEntry } from './contract.ts';
import { fieldTerms, fieldText } from './field-selector.ts';
import { labelTests } from './label-selector.ts';
import { badRequest } from './refusals.ts';
import type { ApiRequest } from './request.ts';
import type { StoredObject } from './stored-object.ts';

export type ObjectTest = (object: StoredObject) => boolean;

export interface Selection {
  readonly test: ObjectTest;
  /** Whether it takes all there is in the namespace it is about. */
  readonly takes: 'all' | 'some';
}

/** What a list or watch is about; the namespace it is in counts too. Throws a StatusError when it makes no sense. */
export function selection(
  request: ApiRequest,
  { fieldSelectors, view }: Pick<ResourceEntry, 'fieldSelectors' | 'view'>,
): Selection {
  const { namespace, name } = request;
  const selecting = [...fieldTests(request, fieldSelectors), ...byLabels(request), ...byName(name)];
  const tests = namespace === undefined ? selecting : [inNamespace(namespace), ...selecting];
  const test: ObjectTest = (object) => tests.every((one) => one(object));
  return {
    test: view === undefined ? test : (stored) => test(view.shown(stored)),
    takes: selecting.length === 0 ? 'all' : 'some',
  };
}

function inNamespace(namespace: string): ObjectTest {
  return ({ metadata }) => metadata.namespace === namespace;
}

/** A watch of one object is a watch of those of its name. */
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
  // Kinds without fields of their own know a namespace even where there is none.
  const hasHome = scope === 'namespace' || selectable.length === 0;
  const ofAll = ['metadata.name', ...(hasHome ? ['metadata.namespace'] : [])];
  return fieldTerms(fieldSelector).map(({ path, operator, value }) => {
    if (!ofAll.includes(path) && !selectable.includes(path)) throw unknownField(path, selectable);
    return operator === '='
      ? (object) => fieldText(object, path) === value
      : (object) => fieldText(object, path) !== value;
  });
}

/** Kinds with fields of their own to select by word it differently from those with none. */
function unknownField(path: string, selectable: readonly string[]): Error {
  return badRequest(
    selectable.length > 0
      ? `field label not supported: ${path}`
      : `"${path}" is not a known field selector: only "metadata.name", "metadata.namespace"`,
  );
}
