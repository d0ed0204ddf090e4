import { ask, chapter, create, type Step } from '../step.ts';
import { boundPod, configMap, core } from './objects.ts';

const maps = `${core}/configmaps`;

/** A ConfigMap `proto` with `a: b`, encoded as protobuf clients send it. */
const protobufMap = 'azhzAAoPCgJ2MRIJQ29uZmlnTWFwEh8KFQoFcHJvdG8SABoAIgAqADIAOABCABIGCgFhEgFiGgAiAA==';

function accepting(): readonly Step[] {
  const rows = [
    '*/*',
    'application/*',
    'application/json',
    'application/yaml',
    'text/html, application/json;q=0.9, */*;q=0.8',
    'text/plain',
    'application/xml',
    'application/cbor',
    'application/json;q=0',
    'application/json; charset=utf-8',
    'application/json;as=Table;v=v1;g=meta.k8s.io',
    'application/json;as=Table;v=v1beta1;g=meta.k8s.io',
    'application/json;as=Table;v=v1;g=meta.k8s.io,application/json',
    'application/json;as=Chair;v=v1;g=meta.k8s.io',
    'application/json;as=Chair;v=v1;g=meta.k8s.io,application/json',
    'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
    'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
    'application/yaml;as=Table;v=v1;g=meta.k8s.io',
    'application/json;stream=watch',
    'nonsense',
    ';;;',
  ];
  const one = `${maps}?fieldSelector=metadata.name=n`;
  return [
    create(maps, configMap('n', { a: 'b' }, { labels: { c: 'd' } })),
    ...rows.flatMap((accept) => [
      ask(`GET ${maps}/n`, { accept, what: `get as ${accept}`, compare: unlessYaml }),
      ask(`GET ${one}`, { accept, what: `list as ${accept}`, compare: unlessYaml }),
    ]),
    ask(`GET ${maps}/not-there`, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }),
    ask(`GET ${maps}/n`, {
      accept: 'application/vnd.kubernetes.protobuf,application/json',
      compare: () => 'either',
      what: 'get as protobuf or JSON',
    }),
    ask(`GET ${maps}/n?pretty=true`, { what: 'indented' }),
    ...['None', 'Metadata', 'Object', 'Some'].map((include) =>
      ask(`GET ${one}&includeObject=${include}`, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }),
    ),
    create(`${maps}?dryRun=All`, configMap('t'), {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
      what: 'a table of the created object',
    }),
    ask(`DELETE ${maps}/n?dryRun=All`, {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
      what: 'a table of a Status',
    }),
  ];
}

/**
 * Reduces a YAML response to its sorted kind and name lines, because the order of YAML fields does
 * not matter.
 */
function unlessYaml(body: unknown): unknown {
  if (typeof body !== 'string') return body;
  const lines = body.split('\n').map((line) => line.replace(/^[- ]+/, ''));
  return lines.filter((line) => /^(?:kind|name): /.test(line)).toSorted();
}

function sending(): readonly Step[] {
  const yaml = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: written\ndata:\n  a: b\n';
  const json = JSON.stringify(configMap('j'));
  const bodies: readonly (readonly [string, string, string])[] = [
    ['yaml', 'application/yaml', yaml],
    ['yaml called JSON', 'application/json', yaml],
    ['no type', '', json],
    ['text', 'text/plain', json],
    ['CBOR', 'application/cbor', json],
    ['nonsense', 'nonsense', json],
    ['a character set', 'application/json; charset=utf-8', json],
    ['nothing', 'application/json', ''],
    ['an empty object', 'application/json', '{}'],
    ['a list', 'application/json', '[]'],
    ['null', 'application/json', 'null'],
    ['a text', 'application/json', '"x"'],
    ['what breaks off', 'application/json', '{"kind":'],
    ['what goes on', 'application/json', `${json}{}`],
    ['another kind', 'application/json', '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"}}'],
    [
      'another group',
      'application/json',
      '{"kind":"ConfigMap","apiVersion":"apps/v1","metadata":{"name":"x"}}',
    ],
    [
      'a kind nobody knows',
      'application/json',
      '{"kind":"Nothing","apiVersion":"v1","metadata":{"name":"x"}}',
    ],
    ['a kind without a version', 'application/json', '{"kind":"ConfigMap","metadata":{"name":"x"}}'],
    ['a version without a kind', 'application/json', '{"apiVersion":"v1","metadata":{"name":"x"}}'],
    [
      'wrong types',
      'application/json',
      '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":5},"data":{"a":true}}',
    ],
    ['a text for metadata', 'application/json', '{"kind":"ConfigMap","apiVersion":"v1","metadata":"x"}'],
    ['a number for a kind', 'application/json', '{"kind":5,"apiVersion":"v1"}'],
    ['protobuf that is none', 'application/vnd.kubernetes.protobuf', json],
  ];
  return [
    ...bodies.map(([what, type, text]) =>
      ask(`POST ${maps}?dryRun=All`, { raw: { text }, type, what: `send ${what}` }),
    ),
    ask(`POST ${maps}`, {
      raw: { base64: protobufMap },
      type: 'application/vnd.kubernetes.protobuf',
      what: 'send protobuf',
    }),
    create(
      `${core}/pods?dryRun=All`,
      boundPod('p', { containers: [{ name: 'c', image: 'a', ports: [{ containerPort: 'x' }] }] }),
    ),
    create(`${core}/pods?dryRun=All`, boundPod('p', { containers: {} })),
    create(`${core}/pods?dryRun=All`, boundPod('p', { terminationGracePeriodSeconds: 1.5 })),
    create(
      `${core}/pods?dryRun=All`,
      boundPod('p', { containers: [{ name: 'c', image: 'a', resources: { limits: { cpu: 'much' } } }] }),
    ),
    create(`${maps}?dryRun=All`, { data: { a: 'x'.repeat(3 * 1024 * 1024) } }, { what: 'send too much' }),
  ];
}

function paths(): readonly Step[] {
  const rows = [
    'GET /nothing',
    'GET /api/v2',
    'GET /apis/nothing.org',
    'GET /apis/nothing.org/v1',
    'GET /apis/nothing.org/v1/things',
    'GET /apis/coordination.k8s.io/v9/leases',
    'GET /api/v1/nothings',
    `GET ${core}/nothings/x`,
    `GET ${maps}/n/status`,
    `GET ${maps}/n/nothing`,
    `GET ${core}/pods/x/nothing`,
    `GET ${core}/pods/x/status`,
    `GET ${core}/pods/not-there`,
    'GET /api/v1/namespaces/not-there',
    'GET /api/v1/namespaces/not-there/pods',
    'GET /api/v1/namespaces/not-there/pods/x',
    'GET /api/v1/nodes/x/y/z',
    'PUT /api/v1/nodes',
    'PATCH /api/v1/nodes',
    `POST ${maps}/n`,
    `PUT ${core}/pods/x/binding`,
    `GET ${core}/pods/x/binding`,
    `GET ${core}/pods/x/eviction`,
    `GET ${core}/serviceaccounts/default/token`,
    'GET /api/v1/pods/x',
    'DELETE /api/v1/pods/x',
    'GET /apis/authorization.k8s.io/v1/subjectaccessreviews',
    'GET /apis/authentication.k8s.io/v1/tokenreviews/x',
    'OPTIONS /api/v1/pods',
    'POST /version',
    'POST /healthz',
    `HEAD ${maps}/n`,
    'GET /api/v1//pods',
    `GET ${core}/pods/`,
  ];
  return rows.map((row) => ask(row));
}

export const negotiation = chapter('negotiation', [...accepting(), ...sending(), ...paths()]);
