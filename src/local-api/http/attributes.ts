import { selectedField } from '../core/field-selector.ts';
import { type AccessAttributes, type ResourceVerb, resourceAccess } from '../core/index.ts';
import type { RequestTarget, ResourcePath } from './paths.ts';

const verbsOfMethods: Readonly<Record<string, ResourceVerb>> = {
  GET: 'get',
  HEAD: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** What is asked of a resource, or undefined for a method that asks for nothing. */
export function verbOf(method: string, path: ResourcePath, query: URLSearchParams): ResourceVerb | undefined {
  const verb = verbsOfMethods[method];
  if (path.name !== undefined) return verb;
  // Whoever wants no body does not want one without end.
  if (verb === 'get') return method === 'GET' && wantsWatch(query) ? 'watch' : 'list';
  return verb === 'delete' ? 'deletecollection' : verb;
}

/** Anything but a plain no means yes: who may watch may be less than who may list. */
function wantsWatch(query: URLSearchParams): boolean {
  const wanted = query.get('watch');
  return wanted !== null && !['false', '0', 'f', 'no'].includes(wanted.toLowerCase());
}

/** They run things and reach into pods: whoever may only look must not be able to, whatever method is used. */
const needCreate = new Set(['exec', 'attach', 'portforward', 'proxy']);

/** What somebody wants, as permissions speak of it. */
export function attributesOf(method: string, { path, query }: RequestTarget): AccessAttributes {
  if (path.kind !== 'resource')
    return { to: 'path', verb: method.toLowerCase(), path: path.kind === 'other' ? path.path : '/' };
  const asked = verbOf(method, path, query);
  const verb = needCreate.has(path.subresource ?? '') ? 'create' : (asked ?? method.toLowerCase());
  const selects = verb === 'list' || verb === 'watch' || verb === 'deletecollection';
  const fieldSelector = selects ? (query.get('fieldSelector') ?? undefined) : undefined;
  const labelSelector = selects ? (query.get('labelSelector') ?? undefined) : undefined;
  const name =
    path.name ?? (selects && verb !== 'deletecollection' ? selectedName(fieldSelector) : undefined);
  return resourceAccess({ ...path, verb, name, fieldSelector, labelSelector });
}

/**
 * Who may see one object by its name may list and watch it alone. Read by who will select by it: were it understood in
 * another way here, somebody could be let in for one object and be shown all.
 */
function selectedName(fieldSelector: string | undefined): string | undefined {
  try {
    const name = selectedField(fieldSelector, 'metadata.name');
    return name === undefined || /^\.{0,2}$|[/%]/.test(name) ? undefined : name;
  } catch {
    // It will be refused; until then it selects nothing in particular.
    return undefined;
  }
}
