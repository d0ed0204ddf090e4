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

/**
 * Returns the schema reference of a kind by its name in the generated table of API kinds; undefined
 * for a kind without schema.
 */
export type SchemaRef = (tableName: string) => string | undefined;

/** All paths of a group version with their operations. */
export function pathsOf(groupVersion: GroupVersion, refOf: SchemaRef): JsonObject {
  const root = `/${groupVersionPath(groupVersion)}`;
  const tag = tagOf(groupVersion);
  return Object.fromEntries(
    groupVersion.entries.flatMap((entry) => resourcePaths(entry, root, new Operations(tag, refOf))),
  );
}

/** The tag of the operations, by which client generators group them, such as `core_v1`. */
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
      list: ['get', () => this.#operation('list', kind, query.list, this.#answer(200, listOf(kind)))],
      create: ['post', () => this.#write('post', kind, query.write, this.#answer(201, kind))],
      deletecollection: ['delete', () => this.#delete('deletecollection', kind, query.deleteMany)],
    });
  }

  ofAllNamespaces(entry: ResourceEntry): JsonObject {
    const kind = kindOf(entry);
    return { get: this.#operation('list', kind, queryParameters.list, this.#answer(200, listOf(kind))) };
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
      get: ['get', () => this.#operation('get', kind, [], this.#answer(200, kind))],
      update: ['put', () => this.#write('put', kind, write, this.#answer(200, kind))],
      patch: [
        'patch',
        () => ({ ...this.#patchBody(), ...this.#operation('patch', kind, patch, this.#answer(200, kind)) }),
      ],
    };
  }

  /** Streaming subresources have no schemas, because their bodies are not objects. */
  #streaming(action: string, kind: KindName, verbs: readonly ResourceVerb[]): JsonObject {
    const plain = { '200': { description: 'OK', content: { '*/*': { schema: { type: 'string' } } } } };
    const choice = (method: string): Choice => [method, () => this.#operation(action, kind, [], plain)];
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
    return { requestBody, ...this.#operation(action, kind, parameters, responses) };
  }

  #delete(action: string, kind: KindName, parameters: readonly JsonObject[]): JsonObject {
    const requestBody = { content: { '*/*': this.#schema({ ...metaGroup, kind: 'DeleteOptions' }) } };
    const responses = this.#answer(200, { ...metaGroup, kind: 'Status' });
    return { requestBody, ...this.#operation(action, kind, parameters, responses) };
  }

  #patchBody(): JsonObject {
    const schema = { $ref: schemaPath(patchSchemaName) };
    const content = Object.fromEntries(patchTypes.map((type) => [`application/${type}`, { schema }]));
    return { requestBody: { content, required: true } };
  }

  #operation(
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

/** The operations of a path for the supported verbs. */
function operationsFor(verbs: readonly ResourceVerb[], choices: Choices): JsonObject {
  const operations = verbs.flatMap((verb) => {
    const choice = choices[verb];
    return choice === undefined ? [] : [[choice[0], choice[1]()] as const];
  });
  return Object.fromEntries(operations);
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

const nameParameter = inPath('name', 'The name of the object.');
const namespaceParameter = inPath('namespace', 'The namespace of the objects.');
const prettyParameter = inQuery('pretty', 'Whether the response is indented: "true" to indent it.');

const dryRun = inQuery('dryRun', 'With "All" the request is validated but not stored.');
const fieldManager = inQuery('fieldManager', 'The name of the field manager of this request.');
const fieldValidation = inQuery(
  'fieldValidation',
  'How unknown and duplicate fields are handled: Strict rejects them, Warn adds warnings, Ignore drops them.',
);
const force = inQuery('force', 'Whether an apply takes over fields of other managers.', 'boolean');
const limit = inQuery('limit', 'The maximum number of objects in one response.', 'integer');
const onward = inQuery('continue', 'The continue token of the previous response.');
const fieldSelector = inQuery('fieldSelector', 'Selects objects by field values.');
const labelSelector = inQuery('labelSelector', 'Selects objects by labels.');
const resourceVersion = inQuery(
  'resourceVersion',
  'The resource version of the response, or from which a watch starts.',
);
const match = inQuery('resourceVersionMatch', 'How resourceVersion is interpreted: Exact or NotOlderThan.');
const timeoutSeconds = inQuery('timeoutSeconds', 'The timeout of the list or watch.', 'integer');
const initial = inQuery('sendInitialEvents', 'Whether a watch starts with the existing objects.', 'boolean');
const bookmarks = inQuery('allowWatchBookmarks', 'Whether a watch may send bookmarks.', 'boolean');
const watch = inQuery('watch', 'Whether to send changes continuously instead of a list.', 'boolean');
const grace = inQuery('gracePeriodSeconds', 'The grace period of the deletion.', 'integer');
const propagationPolicy = inQuery('propagationPolicy', 'What happens to the dependents of the object.');
const orphans = inQuery(
  'orphanDependents',
  'Whether the dependents of the object are orphaned; replaced by propagationPolicy.',
  'boolean',
);

/** The query parameters of each operation. */
const queryParameters = {
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
