import type { JsonObject } from '../../../api/index.ts';
import type { KindField, KindTable } from '../../../kinds/index.ts';
import type { Descriptions } from './descriptions.ts';
import type { FieldFacts, SchemaFacts } from './schema-facts.ts';

export interface SchemaSources {
  readonly table: KindTable;
  readonly names: SchemaNames;
  readonly facts: SchemaFacts;
  readonly descriptions: Pick<Descriptions, 'ofKind' | 'ofField'>;
}

/** Returns the schemas of the kinds and of all kinds they refer to, by schema name. */
export function schemasOf(tops: readonly TopKind[], sources: SchemaSources): JsonObject {
  const { names } = sources;
  const known = new Map(tops.map((top) => [top.tableName, top.known]));
  const kinds = reachableKinds(
    tops.map(({ tableName }) => tableName),
    sources.table,
  );
  const schemas = [...kinds].map((kind) => [names.nameOf(kind), kindSchema(kind, known.get(kind), sources)]);
  return Object.fromEntries([...schemas.toSorted(compareByName), ...scalarsIn(kinds, sources.table)]);
}

function compareByName(a: readonly unknown[], b: readonly unknown[]): number {
  return String(a[0]) < String(b[0]) ? -1 : 1;
}

function reachableKinds(
  from: readonly string[],
  table: KindTable,
  found = new Set<string>(),
): ReadonlySet<string> {
  for (const kind of from) {
    if (found.has(kind) || !table.has(kind)) continue;
    found.add(kind);
    reachableKinds(
      [...table.fieldsOf(kind).values()].map(({ type }) => type),
      table,
      found,
    );
  }
  return found;
}

function scalarsIn(kinds: ReadonlySet<string>, table: KindTable): readonly (readonly [string, unknown])[] {
  const types = new Set(
    [...kinds].flatMap((kind) => [...table.fieldsOf(kind).values()].map(({ type }) => type)),
  );
  const used = Object.keys(scalarNames).filter((type) => types.has(type));
  return used.map((type) => scalarNames[type] ?? '').map((name) => [name, scalarSchemas[name]]);
}

function kindSchema(kind: string, known: TopKind['known'] | undefined, sources: SchemaSources): JsonObject {
  const { table, facts, descriptions } = sources;
  const fields = shownFields(kind, table);
  const required = fields.filter((field) => isRequired(kind, field, facts)).map(({ name }) => name);
  return {
    ...description(isDescribedByField(kind) ? undefined : descriptions.ofKind(kind)),
    type: 'object',
    ...(required.length === 0 ? {} : { required }),
    ...(fields.length === 0
      ? {}
      : {
          properties: Object.fromEntries(fields.map((each) => [each.name, fieldSchema(kind, each, sources)])),
        }),
    ...(known === undefined ? {} : { 'x-kubernetes-group-version-kind': [known] }),
    ...(facts.isAtomic(kind) ? { 'x-kubernetes-map-type': 'atomic' } : {}),
  };
}

/**
 * Kinds whose schema has no description, because clients print it after the description of the
 * field, and both would be the same.
 */
function isDescribedByField(kind: string): boolean {
  return /(?:Spec|Status|Source|Projection)$/.test(kind);
}

/**
 * The object in a template, such as that of a ReplicaSet, has metadata, but neither kind nor
 * apiVersion.
 */
function shownFields(kind: string, table: KindTable): readonly KindField[] {
  const fields = [...table.fieldsOf(kind).values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return kind.endsWith('Template') ? fields.filter(({ number }) => number !== 0) : fields;
}

function isRequired(kind: string, { name, required }: KindField, facts: SchemaFacts): boolean {
  const { must } = facts.of(kind, name);
  return must === undefined ? required : must === 'be-given';
}

function fieldSchema(kind: string, field: KindField, sources: SchemaSources): JsonObject {
  const facts = sources.facts.of(kind, field.name);
  const text = description(sources.descriptions.ofField(kind, field.name));
  const { type, shape } = field;
  switch (shape) {
    case 'single':
      return { ...text, ...valueSchema(type, sources, 'described'), ...enumOf(facts) };
    case 'map':
      return {
        ...text,
        type: 'object',
        additionalProperties: valueSchema(type, sources, 'bare'),
        ...(facts.list === 'atomic' ? { 'x-kubernetes-map-type': 'atomic' } : {}),
      };
    case 'list':
      return {
        ...text,
        type: 'array',
        items: { ...valueSchema(type, sources, 'bare'), ...enumOf(facts) },
        ...(kind.endsWith('List') ? {} : listType(field, facts)),
        ...patchType(field),
      };
  }
}

function description(text: string | undefined): JsonObject {
  return text === undefined ? {} : { description: text };
}

function enumOf(facts: FieldFacts): JsonObject {
  return facts.enum === undefined ? {} : { enum: facts.enum };
}

/** A $ref must not have siblings, so a described field wraps it in allOf. */
function valueSchema(type: string, { names }: SchemaSources, place: 'described' | 'bare'): JsonObject {
  const plain = plainTypes[type];
  if (plain !== undefined) return plain;
  const ref = { $ref: scalarNames[type] === undefined ? names.ref(type) : schemaPath(scalarNames[type]) };
  return place === 'bare' ? ref : { allOf: [ref] };
}

function listType({ merge }: KindField, { list }: FieldFacts): JsonObject {
  const type = list ?? (merge.by === 'key' ? [merge.key] : merge.by === 'value' ? 'set' : 'atomic');
  if (type === 'none') return {};
  return typeof type === 'string'
    ? { 'x-kubernetes-list-type': type }
    : { 'x-kubernetes-list-map-keys': type, 'x-kubernetes-list-type': 'map' };
}

function patchType({ merge }: KindField): JsonObject {
  if (merge.by === 'whole') return {};
  if (merge.by === 'value') return { 'x-kubernetes-patch-strategy': 'merge' };
  return {
    'x-kubernetes-patch-merge-key': merge.key,
    'x-kubernetes-patch-strategy': merge.keeps === 'named-fields' ? 'merge,retainKeys' : 'merge',
  };
}

const plainTypes: Readonly<Record<string, JsonObject>> = {
  string: { type: 'string' },
  bool: { type: 'boolean' },
  int32: { type: 'integer', format: 'int32' },
  int64: { type: 'integer', format: 'int64' },
  bytes: { type: 'string', format: 'byte' },
  ExtraValue: { type: 'array', items: { type: 'string' } },
};

const apimachinery = 'io.k8s.apimachinery.pkg';
const scalarNames: Readonly<Record<string, string>> = {
  Quantity: `${apimachinery}.api.resource.Quantity`,
  IntOrString: `${apimachinery}.util.intstr.IntOrString`,
  Time: `${apimachinery}.apis.meta.v1.Time`,
  MicroTime: `${apimachinery}.apis.meta.v1.MicroTime`,
  FieldsV1: `${apimachinery}.apis.meta.v1.FieldsV1`,
};

export const patchSchemaName = `${apimachinery}.apis.meta.v1.Patch`;

export const patchSchema: JsonObject = {
  description: 'A patch in one of the supported formats.',
  type: 'object',
};

export function schemaPath(name: string): string {
  return `#/components/schemas/${name}`;
}

const scalarSchemas: JsonObject = {
  [`${apimachinery}.api.resource.Quantity`]: {
    description: 'A quantity such as 500m, 64Mi or 2G: a number with a suffix.',
    oneOf: [{ type: 'string' }, { type: 'number' }],
  },
  [`${apimachinery}.util.intstr.IntOrString`]: {
    description: 'An integer or a string, such as a name or a percentage.',
    format: 'int-or-string',
    oneOf: [{ type: 'integer' }, { type: 'string' }],
  },
  [`${apimachinery}.apis.meta.v1.Time`]: {
    description: 'A time with a precision of seconds, such as 2026-01-31T12:00:00Z.',
    type: 'string',
    format: 'date-time',
  },
  [`${apimachinery}.apis.meta.v1.MicroTime`]: {
    description: 'A time with a precision of microseconds, such as 2026-01-31T12:00:00.000000Z.',
    type: 'string',
    format: 'date-time',
  },
  [`${apimachinery}.apis.meta.v1.FieldsV1`]: {
    description: 'The set of fields of a manager, as a tree of field names.',
    type: 'object',
  },
};

/**
 * A top-level kind with its group and version, and its name in the generated table of API kinds.
 */
export interface TopKind {
  readonly tableName: string;
  readonly known: { readonly group: string; readonly version: string; readonly kind: string };
}

const metaPackage = 'io.k8s.apimachinery.pkg.apis.meta.v1';

/**
 * The kinds from which the other kinds of the package meta/v1 are found, by following references.
 */
const metaRoots = [
  'ObjectMeta',
  'ListMeta',
  'LabelSelector',
  'FieldSelectorRequirement',
  'Condition',
  'Status',
  'DeleteOptions',
];

/** Kinds of the core package that only other groups use. */
const coreRoots = ['TopologySelectorTerm'];

/**
 * The schema names of kinds that have a prefix in the generated table of API kinds, because two
 * kinds have the same name.
 */
const ownNames: ReadonlyMap<string, string> = new Map([
  ['EventsEvent', 'Event'],
  ['EventsEventList', 'EventList'],
  ['EventsEventSeries', 'EventSeries'],
  ['RuntimeClassOverhead', 'Overhead'],
  ['RuntimeClassScheduling', 'Scheduling'],
  ['CSIDriverTokenRequest', 'TokenRequest'],
]);

/**
 * Assigns the schema names of kinds: the package of the group that owns the kind, followed by the
 * kind.
 */
export class SchemaNames {
  readonly #table: KindTable;
  readonly #owners = new Map<string, string>();

  /**
   * A top-level kind owns the kinds it refers to. A kind with several owners belongs to the first
   * one, where owners of the core group come first.
   */
  constructor(table: KindTable, tops: readonly TopKind[]) {
    this.#table = table;
    for (const kind of metaRoots) this.#own(kind, metaPackage);
    for (const kind of coreRoots) this.#own(kind, packageOf({ group: '', version: 'v1' }));
    for (const { tableName, known } of tops.toSorted(coreFirst)) this.#own(tableName, packageOf(known));
  }

  nameOf(kind: string): string {
    return `${this.#owners.get(kind) ?? metaPackage}.${ownNames.get(kind) ?? kind}`;
  }

  ref(kind: string): string {
    return `#/components/schemas/${this.nameOf(kind)}`;
  }

  #own(kind: string, owner: string): void {
    if (this.#owners.has(kind) || !this.#table.has(kind)) return;
    this.#owners.set(kind, owner);
    for (const { type } of this.#table.fieldsOf(kind).values()) this.#own(type, owner);
  }
}

function coreFirst(a: TopKind, b: TopKind): number {
  return Number(a.known.group !== '') - Number(b.known.group !== '');
}

/** The schema package of a group version, such as `io.k8s.api.core.v1` for the core group. */
function packageOf({ group, version }: { readonly group: string; readonly version: string }): string {
  const name = group === '' ? 'core' : (group.split('.')[0] ?? group);
  return `io.k8s.api.${name}.${version}`;
}
