import { type ApiRequest, badRequest } from './request.ts';
import { type StoredObject, valueAt } from './stored-object.ts';

export type ObjectTest = (object: StoredObject) => boolean;

/** Fields one may select by, besides the name and namespace of anything. */
const selectable: Readonly<Record<string, readonly string[]>> = {
  pods: [
    'spec.nodeName',
    'spec.restartPolicy',
    'spec.schedulerName',
    'spec.serviceAccountName',
    'spec.hostNetwork',
    'status.phase',
    'status.podIP',
    'status.nominatedNodeName',
  ],
  nodes: ['spec.unschedulable'],
  services: ['spec.clusterIP', 'spec.type'],
  secrets: ['type'],
  certificatesigningrequests: ['spec.signerName'],
  events: [
    'involvedObject.kind',
    'involvedObject.namespace',
    'involvedObject.name',
    'involvedObject.uid',
    'involvedObject.fieldPath',
    'reason',
    'type',
    'reportingComponent',
  ],
};

/** What a list or watch is about; the namespace it is in counts too. */
export function selection(request: ApiRequest): ObjectTest {
  const { namespace } = request;
  const tests = [
    ...fieldTests(request),
    ...labelTests(request),
    ...(namespace === undefined ? [] : [(object: StoredObject) => object.metadata.namespace === namespace]),
  ];
  return (object) => tests.every((test) => test(object));
}

/** The value a field must have by the selector; undefined when it says nothing definite. */
export function selectedField(selector: string | undefined, path: string): string | undefined {
  const term = (selector ?? '').split(',').find((text) => text.startsWith(`${path}=`));
  return term?.slice(path.length).replace(/^==?/, '');
}

function fieldTests(request: ApiRequest): readonly ObjectTest[] {
  return terms(request.fieldSelector).map((term) => {
    const parts = /^([^=!]+)(==|=|!=)(.*)$/.exec(term);
    if (parts === null) throw badRequest(request, `invalid selector: '${term}'; can't understand it`);
    const [, path = '', operator, wanted = ''] = parts;
    const { plural } = request.resource;
    const isKnown =
      path === 'metadata.name' || path === 'metadata.namespace' || (selectable[plural] ?? []).includes(path);
    if (!isKnown) throw badRequest(request, `field label not supported: ${path}`);
    const isEqual = (object: StoredObject) => fieldText(object, path) === wanted;
    return operator === '!=' ? (object) => !isEqual(object) : isEqual;
  });
}

/** A field that is not there is as good as its zero value. */
function fieldText(object: StoredObject, path: string): string {
  const fallback = path === 'spec.hostNetwork' || path === 'spec.unschedulable' ? 'false' : '';
  return String(valueAt(object, path) ?? fallback);
}

function labelTests(request: ApiRequest): readonly ObjectTest[] {
  return terms(request.labelSelector).map((term) => {
    const test = labelTest(term);
    if (test === undefined) throw badRequest(request, `unable to parse requirement: ${term}`);
    return ({ metadata }) => test(metadata.labels ?? {});
  });
}

type Labels = Readonly<Record<string, string>>;

function labelTest(term: string): ((labels: Labels) => boolean) | undefined {
  const set = /^([^\s!=,()]+)\s+(in|notin)\s+\(([^()]*)\)$/.exec(term);
  if (set !== null) {
    const [, key = '', operator, list = ''] = set;
    const values = list.split(',').map((value) => value.trim());
    const isIn = (value: string | undefined) => value !== undefined && values.includes(value);
    return (labels) => isIn(labels[key]) === (operator === 'in');
  }
  const equal = /^([^\s!=,()]+)\s*(==|=|!=)\s*([^\s!=,()]*)$/.exec(term);
  if (equal !== null) {
    const [, key = '', operator, value] = equal;
    return (labels) => (labels[key] === value) === (operator !== '!=');
  }
  const bare = /^(!?)([^\s!=,()]+)$/.exec(term);
  if (bare === null) return undefined;
  return (labels) => Object.hasOwn(labels, bare[2] ?? '') === (bare[1] === '');
}

/** Commas part terms, but not inside of parentheses. */
function terms(selector: string | undefined): readonly string[] {
  return (selector ?? '')
    .split(/,(?![^(]*\))/)
    .map((term) => term.trim())
    .filter((term) => term !== '');
}
