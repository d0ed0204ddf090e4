import type { JsonObject } from '../../../api/index.ts';
import { KindTable, tableNameOf } from '../../../kinds/index.ts';
import type { ResourceEntry, ResourceVerb } from '../../api/index.ts';
import { type GroupVersion, groupVersions } from '../discovery.ts';
import { Descriptions } from './descriptions.ts';
import { pathsOf } from './paths.ts';
import { SchemaFacts } from './schema-facts.ts';
import {
  patchSchema,
  patchSchemaName,
  SchemaNames,
  type SchemaSources,
  schemasOf,
  type TopKind,
} from './schemas.ts';

/** The OpenAPI document of one group version: its paths and the schemas of all kinds in them. */
export function openApiDocument(
  groupVersion: GroupVersion,
  all: readonly ResourceEntry[],
  release: string,
): JsonObject {
  const table = new KindTable();
  const tops = groupVersions(all).flatMap((each) => topKinds(each, table));
  const names = new SchemaNames(table, tops);
  const sources: SchemaSources = {
    table,
    names,
    facts: new SchemaFacts(),
    descriptions: new Descriptions(),
  };
  const refOf = (kind: string) => (table.has(kind) ? names.ref(kind) : undefined);
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: release },
    paths: pathsOf(groupVersion, refOf),
    components: {
      schemas: {
        ...schemasOf([...topKinds(groupVersion, table), ...sharedKinds(groupVersion)], sources),
        ...(can('patch', groupVersion) ? { [patchSchemaName]: patchSchema } : {}),
      },
    },
  };
}

/**
 * The kinds of request and response bodies, without kinds that are missing in the generated table
 * of API kinds.
 */
function topKinds({ group, version, entries }: GroupVersion, table: KindTable): readonly TopKind[] {
  const own = entries.flatMap(({ resource: { kind }, subresources }) => [
    { group, version, kind },
    { group, version, kind: `${kind}List` },
    ...subresources.flatMap((part) =>
      part.kind === undefined ? [] : { group, version, ...part, kind: part.kind },
    ),
  ]);
  const known = own.map((name) => ({
    tableName: tableNameOf(name.group, name.kind),
    known: { group: name.group, version: name.version, kind: name.kind },
  }));
  const unique = new Map(known.map((each) => [each.tableName, each]));
  return [...unique.values()].filter(({ tableName }) => table.has(tableName));
}

/** The request and response kinds of deletes. */
function sharedKinds(groupVersion: GroupVersion): readonly TopKind[] {
  const { group, version } = groupVersion;
  if (!can('delete', groupVersion)) return [];
  return ['DeleteOptions', 'Status'].map((kind) => ({
    tableName: kind,
    known: kind === 'Status' ? { group: '', version: 'v1', kind } : { group, version, kind },
  }));
}

function can(verb: ResourceVerb, { entries }: GroupVersion): boolean {
  return entries.some(({ verbs }) => verbs.includes(verb));
}
