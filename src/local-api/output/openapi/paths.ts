import type { JsonObject } from '../../../api/index.ts';
import { tableNameOf } from '../../../kinds/index.ts';
import type { ResourceEntry, ResourceVerb, SubresourceEntry } from '../../api/index.ts';
import { type GroupVersion, groupVersionPath } from '../discovery.ts';
import { patchSchemaName, schemaPath } from './schemas.ts';

interface KindName {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** Tells where the schema of a kind is, by its name in the table; undefined for kinds that have none. */
export type SchemaRef = (tableName: string) => string | undefined;

/** Everything one can ask of the resources of a group version, by path. */
export function pathsOf(groupVersion: GroupVersion, refOf: SchemaRef): JsonObject {
  const root = `/${groupVersionPath(groupVersion)}`;
  const tag = tagOf(groupVersion);
  return Object.fromEntries(
    groupVersion.entries.flatMap((entry) => resourcePaths(entry, root, new Operations(tag, refOf))),
  );
}

/** Such as `core_v1`, under which clients are generated. */
function tagOf({ group, version }: GroupVersion): string {
  return `${group === '' ? 'core' : group.replace('.k8s.io', '')}_${version}`;
}

function resourcePaths(entry: ResourceEntry, root: string, make: Operations): [string, JsonObject][] {
  const { resource, subresources, verbs } = entry;
  const isInside = resource.scope === 'namespace';
  const place = isInside ? `${root}/namespaces/{namespace}` : root;
  const around = isInside ? [namespaceParameter] : [];
  const collection = `${place}/${resource.plural}`;
  const one = `${collection}/{name}`;
  const shared = [nameParameter, ...around, prettyParameter];
  const paths: [string, JsonObject][] = [
    [collection, { ...make.ofCollection(entry), parameters: [...around, prettyParameter] }],
    [one, { ...make.ofObject(entry), parameters: shared }],
    ...subresources.map((part): [string, JsonObject] => [
      `${one}/${part.name}`,
      { ...make.ofSubresource(entry, part), parameters: shared },
    ]),
  ];
  if (isInside && verbs.includes('list'))
    paths.push([
      `${root}/${resource.plural}`,
      { ...make.ofAllNamespaces(entry), parameters: [prettyParameter] },
    ]);
  return paths.filter(([, { parameters: _, ...operations }]) => Object.keys(operations).length > 0);
}

const patchTypes = ['json-patch+json', 'merge-patch+json', 'strategic-merge-patch+json', 'apply-patch+yaml'];

class Operations {
  readonly #tag: string;
  readonly #refOf: SchemaRef;

  constructor(tag: string, refOf: SchemaRef) {
    this.#tag = tag;
    this.#refOf = refOf;
  }

  ofCollection(entry: ResourceEntry): JsonObject {
    const kind = kindOf(entry);
    const query = queryParameters;
    return operationsFor(entry.verbs, {
      list: ['get', () => this.#make('list', kind, query.list, this.#answer(200, listOf(kind)))],
      create: ['post', () => this.#write('post', kind, query.write, this.#answer(201, kind))],
      deletecollection: ['delete', () => this.#delete('deletecollection', kind, query.deleteMany)],
    });
  }

  ofAllNamespaces(entry: ResourceEntry): JsonObject {
    const kind = kindOf(entry);
    return { get: this.#make('list', kind, queryParameters.list, this.#answer(200, listOf(kind))) };
  }

  ofObject(entry: ResourceEntry): JsonObject {
    const kind = kindOf(entry);
    return operationsFor(entry.verbs, {
      ...this.#changing(kind),
      delete: ['delete', () => this.#delete('delete', kind, queryParameters.delete)],
    });
  }

  ofSubresource(entry: ResourceEntry, part: SubresourceEntry): JsonObject {
    const own = kindOf(entry);
    const { group = own.group, version = own.version, kind = own.kind } = part;
    const name = { group, version, kind };
    if (part.name === 'log') return this.#streaming('get', name, part.verbs);
    if (kind.endsWith('Options')) return this.#streaming('connect', name, part.verbs);
    return operationsFor(part.verbs, {
      ...this.#changing(name),
      create: ['post', () => this.#write('post', name, queryParameters.write, this.#answer(201, name))],
    });
  }

  #changing(kind: KindName): Choices {
    const { write, patch } = queryParameters;
    return {
      get: ['get', () => this.#make('get', kind, [], this.#answer(200, kind))],
      update: ['put', () => this.#write('put', kind, write, this.#answer(200, kind))],
      patch: [
        'patch',
        () => ({ ...this.#patchBody(), ...this.#make('patch', kind, patch, this.#answer(200, kind)) }),
      ],
    };
  }

  /** What comes and goes there is no object. */
  #streaming(action: string, kind: KindName, verbs: readonly ResourceVerb[]): JsonObject {
    const plain = { '200': { description: 'OK', content: { '*/*': { schema: { type: 'string' } } } } };
    const choice = (method: string): Choice => [method, () => this.#make(action, kind, [], plain)];
    return operationsFor(verbs, {
      get: choice('get'),
      create: choice('post'),
      update: choice('put'),
      patch: choice('patch'),
      delete: choice('delete'),
    });
  }

  #write(
    action: string,
    kind: KindName,
    parameters: readonly JsonObject[],
    responses: JsonObject,
  ): JsonObject {
    const requestBody = { content: { '*/*': this.#schema(kind) }, required: true };
    return { requestBody, ...this.#make(action, kind, parameters, responses) };
  }

  #delete(action: string, kind: KindName, parameters: readonly JsonObject[]): JsonObject {
    const requestBody = { content: { '*/*': this.#schema({ ...metaGroup, kind: 'DeleteOptions' }) } };
    const responses = this.#answer(200, { ...metaGroup, kind: 'Status' });
    return { requestBody, ...this.#make(action, kind, parameters, responses) };
  }

  #patchBody(): JsonObject {
    const schema = { $ref: schemaPath(patchSchemaName) };
    const content = Object.fromEntries(patchTypes.map((type) => [`application/${type}`, { schema }]));
    return { requestBody: { content, required: true } };
  }

  #make(
    action: string,
    kind: KindName,
    parameters: readonly JsonObject[],
    responses: JsonObject,
  ): JsonObject {
    return {
      tags: [this.#tag],
      ...(parameters.length === 0 ? {} : { parameters }),
      responses: { ...responses, '401': { description: 'Unauthorized' } },
      'x-kubernetes-action': action,
      'x-kubernetes-group-version-kind': kind,
    };
  }

  #answer(code: number, kind: KindName): JsonObject {
    const description = code === 201 ? 'Created' : 'OK';
    return { [code]: { description, content: { 'application/json': this.#schema(kind) } } };
  }

  #schema({ group, kind }: KindName): JsonObject {
    const $ref = this.#refOf(tableNameOf(group, kind));
    return $ref === undefined ? {} : { schema: { $ref } };
  }
}

type Choice = readonly [method: string, make: () => JsonObject];
type Choices = Readonly<Partial<Record<ResourceVerb, Choice>>>;

/** Only what can be asked for is made. */
function operationsFor(verbs: readonly ResourceVerb[], choices: Choices): JsonObject {
  const made = verbs.flatMap((verb) => {
    const choice = choices[verb];
    return choice === undefined ? [] : [[choice[0], choice[1]()] as const];
  });
  return Object.fromEntries(made);
}

const metaGroup = { group: '', version: 'v1' };

function kindOf({ resource: { group, version, kind } }: ResourceEntry): KindName {
  return { group, version, kind };
}

function listOf(kind: KindName): KindName {
  return { ...kind, kind: `${kind.kind}List` };
}

type ParameterType = 'string' | 'integer' | 'boolean';

function inQuery(name: string, description: string, type: ParameterType = 'string'): JsonObject {
  return { name, in: 'query', description, schema: { type, uniqueItems: true } };
}

function inPath(name: string, description: string): JsonObject {
  return { name, in: 'path', description, required: true, schema: { type: 'string', uniqueItems: true } };
}

export const nameParameter = inPath('name', 'What the object is called.');
export const namespaceParameter = inPath('namespace', 'The namespace the objects are in.');
export const prettyParameter = inQuery('pretty', 'Whether the answer is laid out for people: "true" if so.');

const dryRun = inQuery('dryRun', 'With "All" everything is done but the writing.');
const fieldManager = inQuery('fieldManager', 'Who is to be known as the one that set the fields.');
const fieldValidation = inQuery(
  'fieldValidation',
  'What becomes of fields that are unknown or given twice: Strict refuses them, Warn warns of them, Ignore drops them.',
);
const force = inQuery('force', 'Whether an apply takes over fields that others own.', 'boolean');
const limit = inQuery('limit', 'At most so many objects come in one answer.', 'integer');
const onward = inQuery('continue', 'Where an earlier answer said the list goes on.');
const fieldSelector = inQuery('fieldSelector', 'Only objects with these values in their fields.');
const labelSelector = inQuery('labelSelector', 'Only objects with such labels.');
const resourceVersion = inQuery('resourceVersion', 'As of which version, or from which version on.');
const match = inQuery('resourceVersionMatch', 'Whether that version is meant exactly, or as the oldest.');
const timeoutSeconds = inQuery('timeoutSeconds', 'After how long the answer ends.', 'integer');
const initial = inQuery('sendInitialEvents', 'Whether a watch begins with all there is.', 'boolean');
const bookmarks = inQuery('allowWatchBookmarks', 'Whether a watch may tell how far it is.', 'boolean');
const watch = inQuery('watch', 'Whether to go on with every change instead of ending.', 'boolean');
const grace = inQuery('gracePeriodSeconds', 'How long the object may take to go.', 'integer');
const propagationPolicy = inQuery('propagationPolicy', 'What becomes of the objects that it owns.');
const orphans = inQuery('orphanDependents', 'The older way to say what becomes of them.', 'boolean');

/** What each way to ask may have in its query. */
export const queryParameters = {
  list: [
    bookmarks,
    onward,
    fieldSelector,
    labelSelector,
    limit,
    resourceVersion,
    match,
    initial,
    timeoutSeconds,
    watch,
  ],
  write: [dryRun, fieldManager, fieldValidation],
  patch: [dryRun, fieldManager, fieldValidation, force],
  delete: [dryRun, grace, orphans, propagationPolicy],
  deleteMany: [
    onward,
    dryRun,
    fieldSelector,
    grace,
    labelSelector,
    limit,
    orphans,
    propagationPolicy,
    resourceVersion,
    match,
    timeoutSeconds,
  ],
} as const;
