import { ask, chapter, create, patch, patchTypes, type Step } from '../step.ts';
import { boundPod, configMap, core } from './objects.ts';

const maps = `${core}/configmaps`;
const pods = `${core}/pods`;

function jsonPatches(): readonly Step[] {
  const at = `${maps}/a`;
  const rows: readonly unknown[] = [
    [{ op: 'add', path: '/data/x', value: '1' }],
    [{ op: 'replace', path: '/data/x', value: '2' }],
    [{ op: 'replace', path: '/data/nothing', value: '2' }],
    [{ op: 'remove', path: '/data/x' }],
    [{ op: 'remove', path: '/data/x' }],
    [{ op: 'test', path: '/data/n', value: '1' }],
    [{ op: 'test', path: '/data/n', value: 'other' }],
    [{ op: 'copy', from: '/data/n', path: '/data/m' }],
    [{ op: 'move', from: '/data/m', path: '/data/l' }],
    [{ op: 'move', from: '/data/m', path: '/data/l' }],
    [{ op: 'add', path: '/metadata/labels', value: { a: 'b' } }],
    [{ op: 'add', path: '/metadata/labels/x~1y', value: 'z' }],
    [{ op: 'add', path: '/nothing/here', value: 'z' }],
    [{ op: 'add', path: '/unknown', value: 'z' }],
    [{ op: 'add', path: '/data', value: 'text' }],
    [{ op: 'add', path: '/data/x', value: 1 }],
    [{ op: 'jump', path: '/data/x' }],
    [{ path: '/data/x' }],
    [{ op: 'add', path: 'data' }],
    [{ op: 'replace', path: '/metadata/name', value: 'b' }],
    [{ op: 'replace', path: '/metadata/namespace', value: 'b' }],
    [{ op: 'replace', path: '/metadata/uid', value: 'b' }],
    [{ op: 'replace', path: '/metadata/resourceVersion', value: '1' }],
    [{ op: 'replace', path: '/kind', value: 'Secret' }],
    [{ op: 'replace', path: '/apiVersion', value: 'v2' }],
    [{ op: 'remove', path: '/metadata/uid' }],
    [],
    {},
    'text',
    [1],
  ];
  return [
    create(maps, configMap('a', { n: '1' })),
    ...rows.map((row) => patch('json', at, row, { what: `JSON patch ${JSON.stringify(row)}` })),
    patch('json', `${maps}/not-there`, []),
    ask(`PATCH ${at}`, {
      raw: { text: '[{"op":' },
      type: patchTypes.json,
      what: 'a truncated JSON patch',
    }),
    ask(`PATCH ${at}`, { raw: { text: '' }, type: patchTypes.json, what: 'an empty JSON patch' }),
  ];
}

function mergePatches(): readonly Step[] {
  const at = `${maps}/m`;
  const rows: readonly unknown[] = [
    { data: { x: '1', y: '2' } },
    { data: { x: null } },
    { data: null },
    { metadata: { labels: { a: 'b' }, annotations: { c: 'd' } } },
    { metadata: { labels: null } },
    { metadata: { resourceVersion: '1' } },
    { metadata: { uid: 'x' } },
    { metadata: { uid: '' } },
    { metadata: { name: 'other' } },
    { metadata: { name: null } },
    { metadata: { creationTimestamp: null } },
    { metadata: { generation: 5 } },
    { metadata: { deletionTimestamp: '2020-01-01T00:00:00Z' } },
    { metadata: { finalizers: ['not qualified'] } },
    { metadata: { labels: { 'a b': 'c' } } },
    { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'x' }] } },
    { kind: 'Secret' },
    { data: { x: 1 } },
    { data: [] },
    { extra: 'field' },
    { data: { 'a/b': 'x' } },
    [],
    'x',
    5,
  ];
  return [
    create(maps, configMap('m', { n: '1' })),
    ...rows.map((row) => patch('merge', at, row, { what: `merge patch ${JSON.stringify(row)}` })),
    patch('merge', `${maps}/not-there`, {}),
    patch('merge', maps, {}, { what: 'a patch of a collection' }),
    ask(`PATCH ${at}`, {
      raw: { text: '{"data":' },
      type: patchTypes.merge,
      what: 'a truncated merge patch',
    }),
    ask(`PATCH ${at}`, { body: {}, type: 'application/json', what: 'a patch of plain JSON' }),
    ask(`PATCH ${at}`, { body: {}, type: 'text/plain', what: 'a patch of text' }),
    ask(`PATCH ${at}`, {
      body: {},
      type: 'application/merge-patch+json; charset=utf-8',
      what: 'with a character set',
    }),
    patch('merge', `${at}?dryRun=All`, { data: { dry: 'run' } }),
    patch('merge', `${at}?dryRun=Some`, { data: { dry: 'run' } }),
    patch('merge', `${at}?force=true`, {}),
    patch('merge', `${at}?fieldManager=${'x'.repeat(129)}`, {}, { what: 'a long field manager' }),
    patch('merge', `${at}?fieldManager=a%0Ab`, {}, { what: 'an unprintable field manager' }),
    patch('merge', `${at}?fieldValidation=Strict`, { data: { ok: 'yes' }, extra: 1 }),
    patch('merge', `${at}?fieldValidation=Warn`, { data: { ok: 'warn' }, extra: 1 }),
    patch('merge', `${at}?fieldValidation=Ignore`, { data: { ok: 'ignore' }, extra: 1 }),
    patch('merge', `${at}?fieldValidation=Perhaps`, { data: { ok: 'x' } }),
  ];
}

const strategicPod = boundPod('s', {
  containers: [
    {
      name: 'c',
      image: 'example.org/a:1',
      env: [
        { name: 'A', value: '1' },
        { name: 'B', value: '2' },
      ],
      ports: [{ containerPort: 80 }, { containerPort: 53, protocol: 'UDP' }],
    },
    { name: 'd', image: 'example.org/d:1' },
  ],
  tolerations: [{ key: 'a', operator: 'Exists' }],
});

function strategicPatches(): readonly Step[] {
  const at = `${pods}/s`;
  const rows: readonly unknown[] = [
    { spec: { containers: [{ name: 'c', image: 'example.org/a:2' }] } },
    { spec: { containers: [{ image: 'example.org/a:3' }] } },
    { spec: { containers: [{ name: 'new', image: 'example.org/n:1' }] } },
    { spec: { containers: [{ name: 'd', $patch: 'delete' }] } },
    { spec: { $setElementOrder: 1 } },
    {
      spec: {
        '$setElementOrder/containers': [{ name: 'd' }, { name: 'c' }],
        containers: [{ name: 'c', image: 'example.org/a:4' }],
      },
    },
    {
      spec: {
        '$setElementOrder/containers': [{ name: 'd' }],
        containers: [{ name: 'c', image: 'example.org/a:5' }],
      },
    },
    { spec: { containers: [{ name: 'c', env: [{ name: 'A', value: '3' }] }] } },
    { metadata: { labels: { a: 'b', c: 'd' } } },
    { metadata: { labels: { $patch: 'replace', e: 'f' } } },
    { metadata: { labels: { $patch: 'delete' } } },
    { metadata: { finalizers: ['example.org/a', 'example.org/b'] } },
    { metadata: { '$deleteFromPrimitiveList/finalizers': ['example.org/a'] } },
    {
      metadata: {
        finalizers: ['example.org/c'],
        '$setElementOrder/finalizers': ['example.org/c', 'example.org/b'],
      },
    },
    { metadata: { '$deleteFromPrimitiveList/finalizers': ['example.org/b', 'example.org/c'] } },
    { metadata: { $retainKeys: ['labels'], annotations: { x: 'y' } } },
    { metadata: { $patch: 'jump' } },
    { spec: { tolerations: [{ key: 'b', operator: 'Exists' }] } },
    { spec: { activeDeadlineSeconds: 100 } },
    { spec: { containers: 'x' } },
    { spec: 'x' },
    { spec: { unknown: 'x' } },
    { metadata: { resourceVersion: '1' } },
    { metadata: { uid: 'other' } },
    [],
    'x',
  ];
  const status: readonly unknown[] = [
    { status: { conditions: [{ type: 'Ready', status: 'True' }] } },
    { status: { conditions: [{ type: 'Other', status: 'False', reason: 'Because' }] } },
    { status: { conditions: [{ type: 'Ready', $patch: 'delete' }] } },
    {
      status: {
        '$setElementOrder/conditions': [{ type: 'A' }, { type: 'Other' }],
        conditions: [{ type: 'A', status: 'True' }],
      },
    },
    { status: { podIP: '10.1.2.3', podIPs: [{ ip: '10.1.2.3' }], hostIP: '10.0.0.1' } },
    { status: { podIPs: [{ $patch: 'replace' }, { ip: '10.1.2.4' }], podIP: '10.1.2.4' } },
    { status: { podIPs: [{ $patch: 'replace' }, { ip: 'x' }], podIP: 'x' } },
    {
      status: {
        containerStatuses: [
          { name: 'c', ready: true, restartCount: 0, image: 'a', imageID: '', state: { running: {} } },
        ],
      },
    },
    {
      status: {
        containerStatuses: [
          { name: 'other', ready: true, restartCount: 0, image: 'a', imageID: '', state: { running: {} } },
        ],
      },
    },
    { status: { qosClass: 'Guaranteed' } },
    { status: { phase: 'Running', observedGeneration: 1 } },
    { spec: { nodeName: 'other' }, metadata: { labels: { from: 'status' } }, status: { message: 'm' } },
    { metadata: { uid: '<s.metadata.uid>' }, status: { message: 'n' } },
    { metadata: { uid: 'other' }, status: { message: 'o' } },
  ];
  return [
    create(pods, strategicPod, { keep: 's' }),
    ...rows.map((row) => patch('strategic', at, row, { what: `strategic patch ${JSON.stringify(row)}` })),
    ...status.map((row) =>
      patch('strategic', `${at}/status`, row, { what: `of the status ${JSON.stringify(row)}` }),
    ),
    patch('strategic', `${pods}/not-there`, {}),
    patch('strategic', `${pods}/not-there/status`, {}),
  ];
}

function ofOthers(): readonly Step[] {
  const ports = [{ port: 80 }, { port: 53, protocol: 'UDP', name: 'dns' }];
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'svc' },
    spec: {
      ports: [
        { port: 80, name: 'http' },
        { port: 53, protocol: 'UDP', name: 'dns' },
      ],
      selector: { a: 'b' },
    },
  };
  return [
    create(`${core}/services`, service),
    patch('strategic', `${core}/services/svc`, { spec: { ports } }),
    patch('strategic', `${core}/services/svc`, { spec: { ports: [{ port: 443, name: 'https' }] } }),
    patch('strategic', `${core}/services/svc`, { spec: { ports: [{ port: 443, $patch: 'delete' }] } }),
    create(`${core}/services`, {
      metadata: { name: 'dns' },
      spec: { ports: [{ port: 53, protocol: 'TCP', name: 'tcp' }] },
    }),
    patch('strategic', `${core}/services/dns`, {
      spec: {
        '$setElementOrder/ports': [{ port: 53 }, { port: 53 }],
        ports: [{ port: 53, protocol: 'UDP', name: 'udp' }],
      },
    }),
    patch(
      'strategic',
      `${core}/services/dns`,
      {
        spec: {
          '$setElementOrder/ports': [{ port: 53 }],
          ports: [{ port: 53, protocol: 'UDP', name: 'other' }],
        },
      },
      { what: 'only the protocol of a port changes' },
    ),
    create(`${core}/serviceaccounts`, {
      metadata: { name: 'sa' },
      secrets: [{ name: 'x' }],
      imagePullSecrets: [{ name: 'p' }],
    }),
    patch('strategic', `${core}/serviceaccounts/sa`, {
      secrets: [{ name: 'y' }],
      imagePullSecrets: [{ name: 'q' }],
    }),
  ];
}

export const patches = chapter('patches', [
  ...jsonPatches(),
  ...mergePatches(),
  ...strategicPatches(),
  ...ofOthers(),
]);
