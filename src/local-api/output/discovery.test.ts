import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readRecorded } from '../../../test/cluster/output/recorded.ts';
import { outputCatalogue } from '../../../test/fakes/output-catalogue.ts';
import type { JsonObject } from '../../api/index.ts';
import type { ResourceEntry } from '../api/index.ts';
import {
  acceptsAggregated,
  aggregatedDiscovery,
  apiGroup,
  apiGroupList,
  apiResourceList,
  apiVersions,
  groupVersionPath,
  groupVersions,
} from './discovery.ts';

const recorded = readRecorded<JsonObject>('discovery');
const groups = groupVersions(outputCatalogue().all);

type Listed = readonly JsonObject[];

/**
 * The kube-apiserver whose documents were recorded has more resources than this server, but it must
 * have every resource of this server.
 */
function ofOurs(real: Listed, ours: Listed, name: string): Listed {
  const names = new Set(ours.map((each) => each[name]));
  return real.filter((each) => names.has(each[name]));
}

function withoutHash({ storageVersionHash: _, ...resource }: JsonObject): JsonObject {
  return resource;
}

describe('discovery documents', () => {
  for (const each of groups) {
    const path = `/${groupVersionPath(each)}`;
    it(`lists for each resource of ${path} the same as a recorded response of kube-apiserver`, () => {
      const created = apiResourceList(each);
      const real = recorded[path] as JsonObject;
      const resources = ofOurs(real['resources'] as Listed, created['resources'] as Listed, 'name').map(
        withoutHash,
      );
      assert.deepEqual(created, { ...real, resources });
    });
  }

  it('lists the versions of the core group and of the named groups', () => {
    const real = recorded['/api'] as JsonObject;
    const [{ serverAddress } = { serverAddress: '' }] = real['serverAddressByClientCIDRs'] as readonly {
      serverAddress: string;
    }[];
    assert.deepEqual(apiVersions(groups, serverAddress), real);
    const list = apiGroupList(groups)['groups'] as Listed;
    for (const each of groups.filter(({ group }) => group !== '')) {
      assert.deepEqual(apiGroup([each]), recorded[`/apis/${each.group}`]);
      const { kind: _, apiVersion: __, ...body } = recorded[`/apis/${each.group}`] as JsonObject;
      assert.deepEqual(
        list.find(({ name }) => name === each.group),
        body,
      );
    }
  });

  for (const [path, of] of [
    ['/api', 'core'],
    ['/apis', 'named'],
  ] as const) {
    it(`aggregated discovery has the same content as ${path}`, () => {
      const created = aggregatedDiscovery(groups, of);
      const { body } = recorded[`aggregated ${path}`] as { readonly body: JsonObject };
      const items = body['items'] as readonly {
        metadata: JsonObject;
        versions: readonly { resources: Listed }[];
      }[];
      for (const item of created['items'] as typeof items) {
        const real = items.find(({ metadata }) => metadata['name'] === item.metadata['name']);
        const ours = item.versions[0]?.resources ?? [];
        const theirs = ofOurs(real?.versions[0]?.resources ?? [], ours, 'resource');
        assert.deepEqual(item, { ...real, versions: [{ ...real?.versions[0], resources: theirs }] });
      }
      assert.deepEqual({ ...created, items: [] }, { ...body, items: [] });
    });
  }

  it('lists every API group once, the core group first and unknown groups last', () => {
    const entry = (group: string): ResourceEntry => {
      const [first] = outputCatalogue().all;
      if (first === undefined) throw new Error('The catalogue is empty');
      return { ...first, resource: { ...first.resource, group } };
    };
    const reported = groupVersions([
      entry('z.example'),
      entry('policy'),
      entry('a.example'),
      entry(''),
      entry('policy'),
    ]);
    assert.deepEqual(
      reported.map(({ group }) => group),
      ['', 'policy', 'a.example', 'z.example'],
    );
  });
});

describe('preference for aggregated discovery', () => {
  const v2 = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
  const v2beta1 = 'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList';
  const cases: readonly [string | undefined, boolean][] = [
    [`${v2},${v2beta1},application/json`, true],
    [`${v2beta1},application/json`, false],
    [`application/json,${v2}`, false],
    [`application/json;q=0.5,${v2}`, true],
    [`${v2};q=0.1,*/*`, false],
    [v2, true],
    ['application/json', false],
    [undefined, false],
    ['', false],
  ];
  for (const [accept, expected] of cases)
    it(`returns ${expected} for the Accept header ${accept}`, () => {
      assert.equal(acceptsAggregated(accept), expected);
    });
});
