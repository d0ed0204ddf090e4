import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  openApiFacts,
  type RecordedOpenApi,
  readRecorded,
} from '../../../../test/cluster/output/recorded.ts';
import { outputCatalogue } from '../../../../test/fakes/output-catalogue.ts';
import type { JsonObject } from '../../../api/index.ts';
import { KindTable } from '../../../kinds/index.ts';
import { groupVersionPath, groupVersions } from '../discovery.ts';
import { Descriptions } from './descriptions.ts';
import { openApiDocument } from './document.ts';

const recorded = readRecorded<RecordedOpenApi>('openapi');
const { all } = outputCatalogue();
const groups = groupVersions(all);

type Document = Parameters<typeof openApiFacts>[0];
type Schema = JsonObject & { readonly properties: Readonly<Record<string, JsonObject>> };

function documentOf(path: string): Document {
  const found = groups.find((each) => groupVersionPath(each) === path);
  if (found === undefined) throw new Error(`There is no ${path}`);
  return openApiDocument(found, all, '1.36') as unknown as Document;
}

/** Schemas that differ from the recorded documents of kube-apiserver, with the reason. */
const differing: Readonly<Record<string, string>> = {
  'io.k8s.api.core.v1.PersistentVolumeSpec': 'the type of claimRef is atomic, so the field need not be',
  'io.k8s.api.core.v1.PersistentVolumeClaimStatus': 'maps are granular unless they are atomic',
  'io.k8s.api.policy.v1.PodDisruptionBudgetSpec': 'an atomic selector needs no replace strategy',
  'io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions': 'the schema is named for the group of its document',
};

describe('OpenAPI documents', () => {
  for (const each of groups) {
    const path = groupVersionPath(each);
    it(`the document of ${path} has the schemas of a recorded kube-apiserver document`, () => {
      const { schemas } = openApiFacts(documentOf(path));
      const real = recorded[path]?.schemas ?? {};
      const wrong = Object.keys(schemas).filter((name) => schemas[name] !== real[name]);
      assert.deepEqual(
        wrong.filter((name) => differing[name] === undefined),
        [],
      );
    });

    it(`the document of ${path} has the operations of a recorded kube-apiserver document`, () => {
      const { operations } = openApiFacts(documentOf(path));
      const real = recorded[path]?.operations ?? {};
      for (const [where, made] of Object.entries(operations)) assert.deepEqual(made, real[where], where);
    });

    it(`the document of ${path} has no dangling references`, () => {
      const document = documentOf(path);
      const text = JSON.stringify(document);
      const refs = [...text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name ?? '');
      assert.ok(refs.length > 0);
      assert.deepEqual(
        refs.filter((name) => document.components.schemas[name] === undefined),
        [],
      );
    });
  }

  it('the documents differ from those recorded from kube-apiserver only where documented', () => {
    const same = Object.keys(differing).filter((name) =>
      groups.map(groupVersionPath).every((path) => {
        const mark = openApiFacts(documentOf(path)).schemas[name];
        return mark === undefined || mark === recorded[path]?.schemas[name];
      }),
    );
    assert.deepEqual(same, []);
  });

  it('a kind that is missing in the generated table of API kinds has paths without schemas', () => {
    const resource = {
      group: 'metrics.k8s.io',
      version: 'v1beta1',
      plural: 'nodes',
      kind: 'NodeMetrics',
      scope: 'cluster',
    } as const;
    const [node] = all.filter(({ resource: { plural } }) => plural === 'nodes');
    const entries =
      node === undefined ? [] : [{ ...node, resource, verbs: ['get', 'list'], subresources: [] } as const];
    const [groupVersion] = groupVersions(entries);
    assert.ok(groupVersion);
    const document = openApiDocument(groupVersion, entries, '1.36') as unknown as Document;
    assert.deepEqual(Object.keys(document.components.schemas), []);
    assert.deepEqual(openApiFacts(document).operations, {
      '/apis/metrics.k8s.io/v1beta1/nodes': { get: 'list NodeMetrics' },
      '/apis/metrics.k8s.io/v1beta1/nodes/{name}': { get: 'get NodeMetrics' },
    });
  });

  it('the schemas describe how container lists are merged', () => {
    const schemas = documentOf('api/v1').components.schemas as Readonly<Record<string, Schema>>;
    const { description: _, ...ports } = schemas['io.k8s.api.core.v1.Container']?.properties['ports'] ?? {};
    assert.deepEqual(ports, {
      type: 'array',
      items: { $ref: '#/components/schemas/io.k8s.api.core.v1.ContainerPort' },
      'x-kubernetes-list-map-keys': ['containerPort', 'protocol'],
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-patch-merge-key': 'containerPort',
      'x-kubernetes-patch-strategy': 'merge',
    });
    const volumes = schemas['io.k8s.api.core.v1.PodSpec']?.properties['volumes'];
    assert.equal(volumes?.['x-kubernetes-patch-strategy'], 'merge,retainKeys');
  });

  it('a patch operation has the parameter fieldValidation', () => {
    const { patch } = documentOf('api/v1').paths['/api/v1/namespaces/{namespace}/pods/{name}'] ?? {};
    const names = ((patch?.['parameters'] ?? []) as readonly { name: string }[]).map(({ name }) => name);
    assert.deepEqual(names, ['dryRun', 'fieldManager', 'fieldValidation', 'force']);
    assert.deepEqual(patch?.['x-kubernetes-group-version-kind'], { group: '', version: 'v1', kind: 'Pod' });
    assert.match(JSON.stringify(patch?.['requestBody']), /"application\/strategic-merge-patch\+json"/);
  });
});

describe('OpenAPI descriptions', () => {
  const table = new KindTable();
  const descriptions = new Descriptions();

  it('every description belongs to an existing kind or field', () => {
    const unknown = descriptions.subjects.filter((subject) => {
      const [kind = '', field] = subject.split('.');
      return !table.has(kind) || (field !== undefined && !table.fieldsOf(kind).has(field));
    });
    assert.deepEqual(unknown, []);
  });

  it('every description is one line of sentences', () => {
    for (const subject of descriptions.subjects) {
      const [kind = '', field] = subject.split('.');
      const reported = field === undefined ? descriptions.ofKind(kind) : descriptions.ofField(kind, field);
      assert.match(reported ?? '', /^\S[^\n]*[.]$/, subject);
    }
  });

  it('every field of the most used kinds has a description', () => {
    const kinds = [
      'Pod',
      'PodSpec',
      'Container',
      'EphemeralContainer',
      'Probe',
      'Volume',
      'ConfigMap',
      'Secret',
    ];
    const further = ['Node', 'NodeSpec', 'Service', 'ServiceSpec', 'ServicePort', 'Namespace', 'ObjectMeta'];
    for (const kind of [
      ...kinds,
      ...further,
      'SecurityContext',
      'HostPathVolumeSource',
      'ProjectedVolumeSource',
    ])
      for (const field of table.fieldsOf(kind).keys())
        assert.ok(descriptions.ofField(kind, field), `${kind}.${field} has no description`);
  });
});
