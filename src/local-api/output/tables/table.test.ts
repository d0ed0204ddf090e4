import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readRecorded } from '../../../../test/cluster/output/recorded.ts';
import type { JsonObject } from '../../../api/index.ts';
import type { ResourceEntry, StoredObject } from '../../api/index.ts';
import { eventsView } from '../../kinds/events.ts';
import { shortDuration } from './column.ts';
import { asPartial, asTable } from './table.ts';

interface Recorded {
  readonly nowMs: number;
  readonly table: {
    readonly metadata: JsonObject;
    readonly columnDefinitions: readonly JsonObject[];
    readonly rows: readonly { readonly cells: readonly unknown[]; readonly object: StoredObject }[];
  };
}

const recorded = readRecorded<Recorded>('tables');

function entryOf(kind: string): ResourceEntry {
  const resource = { group: '', version: 'v1', plural: '', kind, scope: 'namespace' } as const;
  return {
    resource,
    singular: '',
    shortNames: [],
    categories: [],
    verbs: [],
    subresources: [],
    fieldSelectors: [],
    deleteReturns: 'object',
    storage: 'stored',
    strategy: {},
  };
}

describe('table responses', () => {
  for (const [path, { nowMs, table }] of Object.entries(recorded)) {
    it(`the table of ${path.split('/').at(-1)} equals a recorded table of kube-apiserver`, () => {
      const objects = table.rows.map(({ object }) => object);
      const kind = objects[0]?.kind ?? '';
      const { metadata } = table;
      const created = asTable(entryOf(kind), objects, {
        metadata,
        includeObject: 'Object',
        nowMs,
        columns: 'with',
      });
      const columns = (created['columnDefinitions'] as readonly JsonObject[]).map((each) => ({
        ...each,
        description: '',
      }));
      assert.deepEqual(created['rows'], table.rows);
      assert.deepEqual({ ...created, columnDefinitions: columns }, table);
    });
  }

  it('every column has a description of one line', () => {
    for (const { table, nowMs } of Object.values(recorded)) {
      const kind = table.rows[0]?.object.kind ?? '';
      const created = asTable(entryOf(kind), [], {
        metadata: {},
        includeObject: 'None',
        nowMs,
        columns: 'with',
      });
      for (const { description } of created['columnDefinitions'] as readonly { description: string }[])
        assert.match(description, /^[A-Z][^\n]+\.$/);
    }
  });

  it('a table row includes the metadata of its object, the object, or neither', () => {
    const object = recorded['/api/v1/nodes']?.table.rows[0]?.object as StoredObject;
    const row = (includeObject: 'None' | 'Metadata' | 'Object', of = object) => {
      const table = asTable(entryOf('Node'), [of], {
        metadata: {},
        includeObject,
        nowMs: 0,
        columns: 'without',
      });
      assert.equal(table['columnDefinitions'], null);
      return (table['rows'] as readonly { object: unknown }[])[0]?.object;
    };
    const partial = {
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: object.metadata,
    };
    assert.deepEqual(row('Metadata'), partial);
    assert.deepEqual(row('Object'), object);
    assert.equal(row('None'), null);
    const annotations = { 'k8s.io/initial-events-end': 'true' };
    const end = { ...object, metadata: { ...object.metadata, annotations } };
    assert.deepEqual(row('None', end), { ...partial, metadata: end.metadata });
  });

  it('the table of a kind without own columns has name and creation time', () => {
    const metadata = { name: 'x', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-31T12:00:00Z' };
    const object = { apiVersion: 'example.test/v1', kind: 'Thing', metadata };
    const wish = { metadata: {}, includeObject: 'None', nowMs: 0, columns: 'with' } as const;
    const { rows } = asTable(entryOf('Thing'), [object], wish) as { rows: readonly { cells: unknown }[] };
    assert.deepEqual(rows[0]?.cells, ['x', '2026-01-31T12:00:00Z']);
  });

  it('a bookmark, which is an object without a name, has a table row', () => {
    const bookmark = {
      kind: 'Pod',
      apiVersion: 'v1',
      metadata: { resourceVersion: '9' },
    } as unknown as StoredObject;
    const wish = { metadata: {}, includeObject: 'None', nowMs: 0, columns: 'without' } as const;
    const cellsOf = (kind: string) =>
      (asTable(entryOf(kind), [bookmark], wish)['rows'] as readonly { cells: unknown }[])[0]?.cells;
    const none = '<none>';
    assert.deepEqual(cellsOf('Pod'), ['', '0/0', '', '0', '<unknown>', none, none, none, none]);
    assert.deepEqual(cellsOf('ConfigMap'), ['', 0, '<unknown>']);
    assert.deepEqual(cellsOf('Thing'), ['', '']);
  });

  it('the table of events is equal for both API groups', () => {
    const { nowMs, table } = recorded['/api/v1/namespaces/shown/events'] as Recorded;
    const wish = { metadata: {}, includeObject: 'None', nowMs, columns: 'without' } as const;
    const retained = table.rows.map(({ object }) => object);
    const shown = retained.map((object) => eventsView.toView(object));
    assert.notDeepEqual(shown, retained);
    assert.deepEqual(asTable(entryOf('Event'), shown, wish), asTable(entryOf('Event'), retained, wish));
  });

  it('the table of pod metrics sums the usage of the containers', () => {
    const metadata = { name: 'x', uid: '', resourceVersion: '', creationTimestamp: '' };
    const usage = { cpu: '1500000n', memory: '1Mi' };
    const containers = [
      { name: 'a', usage },
      { name: 'b', usage },
    ];
    const pod = {
      apiVersion: 'metrics.k8s.io/v1beta1',
      kind: 'PodMetrics',
      metadata,
      window: '15s',
      containers,
    };
    const wish = { metadata: {}, includeObject: 'None', nowMs: 0, columns: 'with' } as const;
    const { rows } = asTable(entryOf('PodMetrics'), [pod], wish) as { rows: readonly { cells: unknown }[] };
    assert.deepEqual(rows[0]?.cells, ['x', '3m', '2Mi', '15s']);
  });
});

describe('PartialObjectMetadata', () => {
  it('returns the metadata of an object and of each list item', () => {
    const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' }, spec: {} };
    const partial = { apiVersion: 'meta.k8s.io/v1', kind: 'PartialObjectMetadata', metadata: { name: 'x' } };
    assert.deepEqual(asPartial(object), partial);
    const list = { apiVersion: 'v1', kind: 'PodList', metadata: { resourceVersion: '7' }, items: [object] };
    assert.deepEqual(asPartial(list), {
      apiVersion: 'meta.k8s.io/v1',
      kind: 'PartialObjectMetadataList',
      metadata: { resourceVersion: '7' },
      items: [partial],
    });
  });
});

describe('durations in table columns', () => {
  it('formats durations with two or three digits', () => {
    const [minute, hour, day, year] = [60, 3600, 86_400, 365 * 86_400];
    const reported = [
      -2,
      -1,
      0,
      119,
      120,
      125,
      10 * minute + 5,
      179 * minute,
      180 * minute,
      200 * minute,
      8 * hour + 60,
    ];
    assert.deepEqual(
      reported.map((seconds) => shortDuration(seconds * 1000)),
      ['<invalid>', '0s', '0s', '119s', '2m', '2m5s', '10m', '179m', '3h', '3h20m', '8h'],
    );
    const long = [
      47 * hour,
      48 * hour,
      50 * hour,
      8 * day,
      729 * day,
      2 * year,
      2 * year + 3 * day,
      9 * year,
    ];
    assert.deepEqual(
      long.map((seconds) => shortDuration(seconds * 1000)),
      ['47h', '2d', '2d2h', '8d', '729d', '2y', '2y3d', '9y'],
    );
  });
});
