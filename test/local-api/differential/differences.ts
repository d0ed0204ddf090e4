/**
 * An intended difference: a row of docs/embedded-api-differences.md, named by its first column, and
 * the steps that show the difference.
 */
export interface Difference {
  readonly row: string;
  /** What is still equal in the responses of both servers despite the intended difference. */
  readonly alike: 'code' | 'nothing';
  readonly steps: Readonly<Record<string, readonly string[]>>;
}

const maps = '/api/v1/namespaces/<ns>/configmaps';
const pods = '/api/v1/namespaces/<ns>/pods';

function each(...names: readonly string[]): readonly string[] {
  return names.flatMap((name) => [`get as ${name}`, `list as ${name}`]);
}

/** The difference in rejections of malformed bodies, patches and options. */
const unreadable: Difference = {
  row: 'a body, patch or option that cannot be parsed',
  alike: 'code',
  steps: {
    lists: [`GET ${maps}?limit=1&continue=nonsense`, `GET ${maps}?limit=1&continue=bm9uc2Vuc2U`],
    patches: [
      'JSON patch [{"op":"add","path":"/data","value":"text"}]',
      'JSON patch [{"op":"add","path":"/data/x","value":1}]',
      'JSON patch [{"op":"replace","path":"/kind","value":"Secret"}]',
      'JSON patch [{"op":"replace","path":"/apiVersion","value":"v2"}]',
      'JSON patch {}',
      'JSON patch "text"',
      'JSON patch [1]',
      'a truncated JSON patch',
      'an empty JSON patch',
      'merge patch {"kind":"Secret"}',
      'merge patch {"data":{"x":1}}',
      'merge patch {"data":[]}',
      'merge patch []',
      'merge patch "x"',
      'merge patch 5',
      'a truncated merge patch',
      `PATCH merge ${maps}/m?fieldValidation=Strict`,
      'strategic patch {"metadata":{"$retainKeys":["labels"],"annotations":{"x":"y"}}}',
      'strategic patch {"spec":{"containers":"x"}}',
      'strategic patch {"spec":"x"}',
      'strategic patch []',
      'strategic patch "x"',
    ],
    writes: [
      `POST ${maps} (5)`,
      'of another kind',
      'of another version',
      `DELETE ${maps}/d?gracePeriodSeconds=x`,
      `DELETE ${maps}/d (3)`,
      'with a body that is not DeleteOptions',
      'with a truncated body',
    ],
    negotiation: [
      ...['yaml called JSON', 'nothing', 'a list', 'a text', 'what breaks off', 'what goes on'],
      ...['another kind', 'another group', 'a kind nobody knows', 'wrong types', 'a text for metadata'],
      ...['a number for a kind', 'protobuf that is none'],
    ]
      .map((what) => `send ${what}`)
      .concat(['', ' (2)', ' (3)', ' (4)'].map((number) => `POST ${pods}?dryRun=All${number}`)),
    subresources: [`POST ${pods}/wrong/eviction`],
    records: ['PATCH merge /apis/coordination.k8s.io/v1/namespaces/<ns>/leases/l (2)'],
  },
};

const ofRequests: readonly Difference[] = [
  unreadable,
  { row: 'a body of `null`', alike: 'nothing', steps: { negotiation: ['send null'] } },
  {
    row: 'an invalid request that causes an internal error',
    alike: 'nothing',
    steps: {
      lists: [`GET ${maps}/a?resourceVersion=x`],
      watches: [`watch ${maps}?watch=1&resourceVersion=x`],
      writes: ['with an invalid version'],
      patches: [
        'strategic patch {"spec":{"containers":[{"image":"example.org/a:3"}]}}',
        'strategic patch {"spec":{"$setElementOrder/containers":[{"name":"d"}],"containers":[{"name":"c","image":"example.org/a:5"}]}}',
        'strategic patch {"metadata":{"$patch":"jump"}}',
        'strategic patch {"spec":{"$setElementOrder":1}}',
      ],
    },
  },
  {
    row: 'a JSON patch that does not fit its object',
    alike: 'code',
    steps: {
      patches: [
        'JSON patch [{"op":"remove","path":"/data/x"}] (2)',
        'JSON patch [{"op":"test","path":"/data/n","value":"other"}]',
        'JSON patch [{"op":"move","from":"/data/m","path":"/data/l"}] (2)',
        'JSON patch [{"op":"add","path":"/nothing/here","value":"z"}]',
        'JSON patch [{"op":"jump","path":"/data/x"}]',
        'JSON patch [{"path":"/data/x"}]',
        'JSON patch [{"op":"add","path":"data"}]',
      ],
    },
  },
  {
    row: 'an unknown patch type',
    alike: 'code',
    steps: { patches: ['a patch of plain JSON', 'a patch of text'] },
  },
  {
    row: 'an unsupported Accept header',
    alike: 'code',
    steps: {
      watches: [`watch ${maps}?watch=1`],
      negotiation: [
        ...each('text/plain', 'application/xml', 'application/cbor', 'nonsense', ';;;'),
        ...each('application/json;as=Chair;v=v1;g=meta.k8s.io'),
        'list as application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
        'get as application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
      ],
    },
  },
  {
    row: '`application/*` and `q=0` in Accept',
    alike: 'nothing',
    steps: { negotiation: each('application/*', 'application/json;q=0') },
  },
  {
    row: 'tables of `v1beta1`',
    alike: 'nothing',
    steps: { negotiation: each('application/json;as=Table;v=v1beta1;g=meta.k8s.io') },
  },
  {
    row: 'responses in protobuf or CBOR',
    alike: 'code',
    steps: { negotiation: ['get as protobuf or JSON'] },
  },
  {
    row: 'an unknown path',
    alike: 'code',
    steps: {
      negotiation: [
        'GET /nothing',
        'GET /apis/nothing.org',
        'GET /apis/nothing.org/v1',
        'GET /apis/nothing.org/v1/things',
      ],
      discovery: ['GET /healthz/nothing', 'GET /openapi/v3/apis/nothing.org/v1'],
    },
  },
  {
    row: 'HEAD, and write methods on read-only paths',
    alike: 'nothing',
    steps: { negotiation: ['POST /healthz', `HEAD ${maps}/n`] },
  },
  {
    row: 'an unknown discovery format',
    alike: 'nothing',
    steps: { discovery: ['aggregated in an unknown format'] },
  },
  { row: 'the index of `/openapi/v3`', alike: 'code', steps: { discovery: ['GET /openapi/v3'] } },
  {
    row: 'a warning about an unknown field',
    alike: 'code',
    steps: {
      writes: [
        `POST ${maps}?dryRun=All&fieldValidation=Warn`,
        `POST ${maps}?dryRun=All&fieldValidation=`,
        'unknown fields with default validation',
      ],
    },
  },
];

const ofObjects: readonly Difference[] = [
  {
    row: 'ports with the same number in a strategic patch',
    alike: 'code',
    steps: {
      patches: [
        'PATCH strategic /api/v1/namespaces/<ns>/services/dns',
        'only the protocol of a port changes',
      ],
    },
  },
  {
    row: 'dependents of a deleted object',
    alike: 'nothing',
    steps: {
      writes: [
        `DELETE ${maps}/foreground?propagationPolicy=Foreground`,
        `GET ${maps}/foreground`,
        `DELETE ${maps}/orphan?propagationPolicy=Orphan`,
      ],
    },
  },
  {
    row: 'managed fields',
    alike: 'code',
    steps: {
      subresources: [
        `PATCH strategic ${pods}/c/ephemeralcontainers (6)`,
        `GET ${pods}/c/ephemeralcontainers`,
        `PATCH strategic ${pods}/c/resize (2)`,
        `GET ${pods}/c/resize`,
      ],
    },
  },
  {
    row: 'server-side apply',
    alike: 'nothing',
    steps: {
      apply: [
        `PATCH apply ${maps}/a?fieldManager=m`,
        `PATCH apply ${maps}/a?fieldManager=other`,
        `PATCH apply ${maps}/a?fieldManager=other&force=true`,
        `PATCH apply ${maps}/b?fieldManager=m`,
        `PATCH apply ${maps}/a`,
        'invalid YAML',
      ],
    },
  },
  {
    row: '`generation` of a new object of a kind without generations',
    alike: 'code',
    steps: {
      writes: [
        'create with {"name":"with-uid","uid":"mine","creationTimestamp":"2020-01-01T00:00:00Z","generation":7}',
      ],
    },
  },
  {
    row: 'the bookmark before a watch ends',
    alike: 'code',
    steps: { watches: ['a bookmark before the end'] },
  },
  {
    row: 'empty required lists and values',
    alike: 'code',
    steps: {
      tables: ['POST /apis/storage.k8s.io/v1/csinodes'],
      storage: [
        'POST /api/v1/namespaces/<ns>/persistentvolumeclaims (7)',
        'PATCH strategic /apis/storage.k8s.io/v1/csinodes/storage-n',
        'DELETE /apis/storage.k8s.io/v1/csinodes/storage-n',
      ],
    },
  },
  {
    row: 'a timestamp without exactly six fractional digits',
    alike: 'nothing',
    steps: { records: ['a time with other precision'] },
  },
  {
    row: 'a precondition conflict of a binding',
    alike: 'code',
    steps: { subresources: [`POST ${pods}/b/binding (4)`] },
  },
  {
    row: 'logs and streams of a pod whose node does not exist',
    alike: 'code',
    steps: { subresources: [`GET ${pods}/c/log`, `POST ${pods}/c/exec`] },
  },
  {
    row: 'a wrong value that is a whole object',
    alike: 'code',
    steps: {
      nodes: ['PATCH strategic /api/v1/nodes/n2 (3)'],
      storage: ['a driver that changes', 'PATCH merge /apis/storage.k8s.io/v1/volumeattachments/storage-att'],
    },
  },
  {
    row: 'deprecation warnings',
    alike: 'code',
    steps: {
      tables: ['GET /api/v1/namespaces/<ns>/endpoints/ep'],
      storage: ['POST /apis/storage.k8s.io/v1/csidrivers'],
    },
  },
  { row: 'a new node', alike: 'code', steps: { nodes: ['PATCH strategic /api/v1/nodes/n2'] } },
];

const ofAccess: readonly Difference[] = [
  {
    row: 'a token bound to an object of an unknown version',
    alike: 'nothing',
    steps: { access: ['POST /api/v1/namespaces/<ns>/serviceaccounts/robot/token (14)'] },
  },
  {
    row: 'a token with the wrong audience',
    alike: 'code',
    steps: { access: ['a token review with another audience'] },
  },
  {
    row: 'a node that writes the object of another node',
    alike: 'nothing',
    steps: { nodes: ['PATCH merge /api/v1/nodes/n2', 'PATCH merge /api/v1/nodes/n2/status'] },
  },
  {
    row: 'the message of a rejected node request',
    alike: 'code',
    steps: {
      nodes: [
        'a mirror pod with a secret',
        'a mirror pod with an account',
        'GET /api/v1/namespaces/<ns>/secrets',
        'the status of a pod of another node',
        'GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases',
        'GET /api/v1/namespaces/<ns>/serviceaccounts',
        'POST /api/v1/namespaces/<ns>/serviceaccounts/default/token',
      ],
    },
  },
];

export const differences: readonly Difference[] = [...ofRequests, ...ofObjects, ...ofAccess];

export function differenceOf(chapter: string, what: string): Difference | undefined {
  return differences.find(({ steps }) => steps[chapter]?.includes(what));
}
