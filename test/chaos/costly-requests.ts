import { pick, type Random, randomInt } from '../../src/lib/index.ts';
import type { MadeRequest } from './request-maker.ts';

/** A request that is designed to be expensive for the server, and the reason. */
export interface CostlyRequest extends MadeRequest {
  readonly kind: string;
}

const costlyNamespace = 'costly';

/** Whether the object at an API path is one of the fixtures, which later requests read and change. */
export function isFixture(path: string): boolean {
  return new RegExp(`/namespaces/${costlyNamespace}/(configmaps|pods)/(wide|[msp]\\d+)$`).test(path);
}
/** The maximum size of a generated request body: the limit of the server minus a reserve. */
const mostBytes = 3 * 1024 * 1024 - 2_000;
const maps = `/api/v1/namespaces/${costlyNamespace}/configmaps`;
const pods = `/api/v1/namespaces/${costlyNamespace}/pods`;
/** API paths at which any authenticated caller may create objects. */
const reviews = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
const patchTypes = ['json-patch', 'merge-patch', 'strategic-merge-patch'] as const;

type Make = (size: (least: number, most: number) => number) => Omit<CostlyRequest, 'kind'>;

const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const fill = (text: string, bytes: number) => text.repeat(Math.max(1, Math.floor(bytes / text.length)));
const get = (path: string, headers: Readonly<Record<string, string>> = {}) => ({
  method: 'GET',
  path,
  headers,
  body: undefined,
});
const send = (method: string, path: string, type: string, body: string | Buffer) => ({
  method,
  path,
  headers: { 'content-type': type },
  body: Buffer.from(body),
});
const postJson = (path: string, value: unknown) =>
  send('POST', path, 'application/json', JSON.stringify(value));
const yaml = (text: string) => send('POST', reviews, 'application/yaml', text);
const patch = (type: (typeof patchTypes)[number], path: string, value: unknown) =>
  send('PATCH', path, `application/${type}+json`, JSON.stringify(value));
const container = (parts: object = {}) => ({ name: 'c', image: 'i', ...parts });
const pod = (spec: object, metadata: object = {}) =>
  postJson(pods, { metadata: { generateName: 'p-', ...metadata }, spec });
const simplePod = (parts: object) => pod({ containers: [container(parts)] });

const bodies: Readonly<Record<string, Make>> = {
  'YAML: a long map': (n) => yaml(fill('a: b\n', n(20, 24) * 4_096)),
  'YAML: a long list': (n) => yaml(fill('- a\n', n(20, 24) * 4_000)),
  'YAML: a flow list': (n) => yaml(`spec: [${fill('a,', n(15, 16) * 4_000)}]`),
  'YAML: objects in a list': (n) => yaml(`spec: [${fill('{},', n(15, 16) * 6_000)}]`),
  'YAML: brackets in brackets': (n) => yaml(fill('[', n(90, 200_000))),
  'YAML: indentation': (n) => yaml(times(n(90, 1_000), (level) => `${' '.repeat(level)}a:`).join('\n')),
  'YAML: aliases': (n) => yaml(`a: &a [b]\nspec: [${fill('*a,', n(40, 60) * 1_000)}]`),
  'YAML: aliases of aliases': (n) =>
    yaml(
      `a0: &a0 [x]\n${times(n(5, 50), (i) => `a${i + 1}: &a${i + 1} [${`*a${i},`.repeat(9)}]`).join('\n')}`,
    ),
  'YAML: anchors': (n) => yaml(fill('- &a x\n- *a\n', n(40, 90) * 1_000)),
  'YAML: merges': (n) =>
    yaml(`a: &a {${times(n(300, 900), (i) => `k${i}: 1`).join()}}\nb: {<<: [${'*a,'.repeat(n(30, 90))}]}`),
  'YAML: mistakes': (n) => yaml(`[${fill('}', n(50, 95) * 1_000)}`),
  'YAML: tags': (n) => yaml(fill('!a ', n(20, 90) * 1_000)),
  'YAML: quotes': (n) => yaml(`"${fill('\\n', n(100, 1_000) * 1_000)}"`),
  'YAML: a long text': (n) => yaml(`a: ${fill('x: ', n(1_000, 3_000) * 1_000)}`),
  'YAML: comments': (n) => yaml(`${fill('#\n', n(50, 98) * 1_000)}a: b`),
  'YAML: documents': (n) => yaml(fill('---\n', n(20, 300) * 1_000)),
  'YAML: blanks': (n) => yaml(`${fill(' ', n(500, 3_000) * 1_000)}a`),
  'YAML: a config map': (n) =>
    send(
      'POST',
      maps,
      'application/yaml',
      `metadata: {generateName: y-}\ndata:\n${times(n(5_000, 14_000), (i) => `  k${i}: v`).join('\n')}`,
    ),
  'JSON: numbers in a list': (n) => postJson(maps, { data: times(n(100, 1_400) * 1_000, () => 1) }),
  'JSON: lists in a list': (n) => postJson(maps, { x: times(n(100, 900) * 1_000, () => []) }),
  'JSON: many fields': (n) =>
    postJson(reviews, Object.fromEntries(times(n(20, 200) * 1_000, (i) => [`k${i}`, 1]))),
  'JSON: many labels': (n) =>
    postJson(maps, {
      metadata: { labels: Object.fromEntries(times(n(10, 150) * 1_000, (i) => [`k${i}`, 'a'])) },
    }),
  'JSON: fields written twice': (n) =>
    send('POST', maps, 'application/json', `{${fill('"a":1,', n(500, 3_000) * 1_000)}"a":1}`),
  'JSON: brackets in brackets': (n) => {
    const deep = n(1, 700) * 1_000;
    return send('POST', maps, 'application/json', `{"data":${'['.repeat(deep)}${']'.repeat(deep)}}`);
  },
  'JSON: objects in objects': (n) => {
    const deep = n(100, 300_000);
    return send('POST', maps, 'application/json', `${'{"a":'.repeat(deep)}1${'}'.repeat(deep)}`);
  },
  'JSON: escapes': (n) =>
    send('POST', maps, 'application/json', `{"data":{"a":"${fill('\\u0041', n(500, 3_000) * 1_000)}"}}`),
  'JSON: digits': (n) =>
    send('POST', maps, 'application/json', `{"data":${fill('1', n(100, 3_000) * 1_000)}}`),
  'JSON: managed fields': (n) =>
    postJson(maps, {
      metadata: { generateName: 'm-', managedFields: times(n(1_000, 30_000), (i) => ({ manager: `m${i}` })) },
    }),
  'JSON: owners and finalizers': (n) =>
    postJson(maps, {
      metadata: {
        generateName: 'o-',
        finalizers: times(n(1_000, 40_000), (i) => `a.b/${i}`),
        ownerReferences: times(n(1_000, 20_000), (i) => ({
          apiVersion: 'v1',
          kind: 'A',
          name: `a${i}`,
          uid: 'u',
        })),
      },
    }),
  'protobuf: fields of one byte': (n) => protobuf(Buffer.alloc(n(500, 3_000) * 1_000, 0x08)),
  'protobuf: empty messages': (n) => protobuf(repeated(Buffer.from([0x0a, 0x00]), n(500, 3_000) * 1_000)),
  'protobuf: entries of a map': (n) =>
    protobuf(repeated(Buffer.from([0x12, 0x06, 0x0a, 0x01, 0x61, 0x12, 0x01, 0x62]), n(500, 3_000) * 1_000)),
  'protobuf: labels': (n) =>
    protobuf(field(1, repeated(Buffer.from('5a060a0161120162', 'hex'), n(500, 2_900) * 1_000))),
  'protobuf: messages in messages': (n) => {
    let inner: Buffer = Buffer.alloc(0);
    for (let level = n(100, 3_000); level > 0; level--) inner = field(1, inner);
    return protobuf(inner);
  },
  'protobuf: managed fields': (n) =>
    protobuf(field(1, repeated(Buffer.from('8a01030a0161', 'hex'), n(500, 2_900) * 1_000))),
};

const objects: Readonly<Record<string, Make>> = {
  'pod: 1,000 containers': (n) =>
    pod({ containers: times(n(500, 1_000), (i) => container({ name: `c${i}` })) }),
  'pod: 10,000 containers of one name': (n) =>
    pod({ containers: times(n(5_000, 10_000), () => container()) }),
  'pod: 1,000 containers with ports': (n) =>
    pod({
      containers: times(n(500, 1_000), (i) =>
        container({ name: `c${i}`, ports: times(10, (p) => ({ containerPort: p + 1, hostPort: p + 1 })) }),
      ),
    }),
  'pod: 1,000 containers with mounts': (n) =>
    pod({
      volumes: times(1_000, (i) => ({ name: `v${i}`, emptyDir: {} })),
      containers: times(n(100, 1_000), (i) =>
        container({ name: `c${i}`, volumeMounts: times(10, (v) => ({ name: `v${v}`, mountPath: `/${v}` })) }),
      ),
    }),
  'pod: 10,000 variables': (n) =>
    simplePod({ env: times(n(5_000, 10_000), (i) => ({ name: `n${i}`, value: 'v' })) }),
  'pod: variables of variables': (n) =>
    simplePod({ env: times(n(500, 5_000), (i) => ({ name: `n${i}`, value: `$(n${i - 1})$(n${i - 1})` })) }),
  'pod: fields as variables': (n) =>
    simplePod({
      env: times(n(500, 5_000), (i) => ({
        name: `n${i}`,
        valueFrom: { fieldRef: { fieldPath: `metadata.labels['${"['".repeat(20)}']` } },
      })),
    }),
  'pod: a long field path': (n) =>
    simplePod({
      env: [{ name: 'a', valueFrom: { fieldRef: { fieldPath: fill("a['", n(500, 2_900) * 1_000) } } }],
    }),
  'pod: volumes and mounts': (n) => {
    const count = n(1_000, 8_000);
    const volumes = times(count, (i) => ({ name: `v${i}`, emptyDir: {} }));
    const volumeMounts = times(count, (i) => ({ name: `v${i}`, mountPath: `/m/${i}` }));
    return pod({ volumes, containers: [container({ volumeMounts })] });
  },
  'pod: sources of a volume': (n) =>
    pod({
      containers: [container()],
      volumes: [
        {
          name: 'v',
          projected: { sources: times(n(1_000, 20_000), (i) => ({ configMap: { name: `m${i}` } })) },
        },
      ],
    }),
  'pod: paths of a volume': (n) =>
    pod({
      containers: [container()],
      volumes: [
        {
          name: 'v',
          configMap: { name: 'm', items: times(n(5_000, 40_000), (i) => ({ key: `k${i}`, path: `a/${i}` })) },
        },
      ],
    }),
  'pod: tolerations': (n) =>
    pod({
      containers: [container()],
      tolerations: times(n(5_000, 40_000), (i) => ({ key: `k${i}`, operator: 'Exists' })),
    }),
  'pod: affinity': (n) => {
    const matchExpressions = times(n(1_000, 10_000), (i) => ({
      key: `k${i}`,
      operator: 'In',
      values: ['a', 'b'],
    }));
    const terms = [{ labelSelector: { matchExpressions }, topologyKey: 'a' }];
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } };
    return pod({ containers: [container()], affinity });
  },
  'pod: aliases of hosts': (n) =>
    pod({
      containers: [container()],
      hostAliases: times(n(1_000, 20_000), (i) => ({ ip: '1.2.3.4', hostnames: [`h${i}`] })),
    }),
  'pod: ports of one number': (n) =>
    simplePod({ ports: times(n(1_000, 20_000), (i) => ({ containerPort: 1, protocol: `P${i}` })) }),
  'pod: 1 MB of annotations': (n) =>
    pod({ containers: [container()] }, { annotations: { a: fill('x', n(200, 1_000) * 1_000) } }),
  'pod: many annotations': (n) =>
    pod(
      { containers: [container()] },
      { annotations: Object.fromEntries(times(n(1_000, 100_000), (i) => [`k${i}`, 'v'])) },
    ),
  'pod: gates and claims': (n) =>
    pod({
      containers: [container({ resources: { claims: times(n(100, 5_000), (i) => ({ name: `c${i}` })) } })],
      schedulingGates: times(n(100, 10_000), (i) => ({ name: `a.b/${i}` })),
      resourceClaims: times(n(100, 5_000), (i) => ({ name: `c${i}`, resourceClaimName: 'x' })),
    }),
  'pod: sysctls': (n) =>
    pod({
      containers: [container()],
      securityContext: { sysctls: times(n(1_000, 20_000), (i) => ({ name: `net.a${i}`, value: '1' })) },
    }),
  'pod: 10,000 containers of different names': (n) =>
    pod({ containers: times(n(5_000, 10_000), (i) => container({ name: `c${i}` })) }),
  'pod: sidecars': (n) =>
    pod({
      containers: [container()],
      initContainers: times(n(2_000, 8_000), (i) => container({ name: `s${i}`, restartPolicy: 'Always' })),
    }),
  'pod: resources of many names': (n) =>
    pod({
      containers: times(n(1_000, 5_000), (i) =>
        container({ name: `c${i}`, resources: { limits: { [`example.com/r${i}`]: '1' } } }),
      ),
    }),
  'pod: mounts inside mounts': (n) => {
    const base = (depth: number) => '/x'.repeat(depth);
    const nested = times(100, (i) => ({ name: 'm', mountPath: base(i + 1) }));
    const inner = times(n(1_000, 8_000), (i) => ({ name: 'e', mountPath: `${base(100)}/p${i}` }));
    const volumes = [
      { name: 'e', emptyDir: {} },
      { name: 'm', configMap: { name: 'm' } },
    ];
    return pod({ volumes, containers: [container({ volumeMounts: [...inner, ...nested] })] });
  },
  'pod: deep paths of a volume': (n) => {
    const items = times(n(500, 2_000), (i) => ({ key: 'k', path: `${i}${'/a'.repeat(127)}` }));
    return pod({ containers: [container()], volumes: [{ name: 'v', secret: { secretName: 's', items } }] });
  },
  'pod: volumes in memory': (n) => {
    const volumes = times(n(500, 5_000), (i) => ({ name: `v${i}`, emptyDir: { medium: 'Memory' } }));
    const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
    return pod({ volumes, containers: [container({ volumeMounts })] });
  },
  'pod: a pull secret named many times': (n) =>
    pod({ containers: [container()], imagePullSecrets: times(n(1_000, 15_000), () => ({ name: 's' })) }),
  'pod: headers of a probe': (n) => {
    const httpHeaders = times(n(1_000, 13_000), (i) => ({ name: 'X-A', value: `${i}` }));
    return simplePod({ livenessProbe: { httpGet: { port: 1, httpHeaders } } });
  },
  'pod: host ports': (n) =>
    simplePod({ ports: times(n(1_000, 9_900), (i) => ({ containerPort: 1 + i, hostPort: 1 + i })) }),
  'pod: a long subPath': (n) =>
    pod({
      volumes: [{ name: 'v', emptyDir: {} }],
      containers: [
        container({
          volumeMounts: [{ name: 'v', mountPath: '/v', subPath: `${fill('a/', n(100, 2_800) * 1_000)}b` }],
        }),
      ],
    }),
  'pod: gates, groups, options and constraints': (n) => {
    const count = n(500, 4_000);
    return pod({
      containers: [container({ securityContext: { capabilities: { add: times(count, (i) => `C${i}`) } } })],
      readinessGates: times(count, (i) => ({ conditionType: `a.b/g${i}` })),
      securityContext: { supplementalGroups: times(count, (i) => i) },
      dnsConfig: { options: times(count, (i) => ({ name: `o${i}` })) },
      topologySpreadConstraints: times(count, (i) => ({
        maxSkew: 1,
        topologyKey: `k${i}`,
        whenUnsatisfiable: 'ScheduleAnyway',
      })),
    });
  },
  'config map: 1 MB in many keys': (n) =>
    postJson(maps, {
      metadata: { generateName: 'k-' },
      data: Object.fromEntries(times(n(10_000, 90_000), (i) => [`k${i}`, 'v'])),
    }),
  'config map: bytes': (n) =>
    postJson(maps, {
      metadata: { generateName: 'b-' },
      binaryData: { a: fill('AAAA', n(500, 1_390) * 1_000) },
    }),
  'service: many ports': (n) =>
    postJson(`/api/v1/namespaces/${costlyNamespace}/services`, {
      metadata: { generateName: 's-' },
      spec: { ports: times(n(1_000, 30_000), (i) => ({ name: `p${i}`, port: 1 + (i % 65_535) })) },
    }),
  'network: slices of endpoints': (n) =>
    postJson(`/apis/discovery.k8s.io/v1/namespaces/${costlyNamespace}/endpointslices`, {
      metadata: { generateName: 'e-' },
      addressType: 'IPv4',
      endpoints: times(n(900, 20_000), () => ({ addresses: ['10.0.0.1'] })),
    }),
  'role: many rules': (n) =>
    postJson(`/apis/rbac.authorization.k8s.io/v1/namespaces/${costlyNamespace}/roles`, {
      metadata: { generateName: 'r-' },
      rules: times(n(1_000, 20_000), () => ({ apiGroups: [''], resources: ['pods'], verbs: ['get'] })),
    }),
  'signing request: a long request': (n) =>
    postJson('/apis/certificates.k8s.io/v1/certificatesigningrequests', {
      metadata: { generateName: 'c-' },
      spec: {
        signerName: 'a.b/c',
        usages: ['client auth'],
        request: Buffer.from(fill('-----BEGIN CERTIFICATE REQUEST-----\n', n(100, 1_500) * 1_000)).toString(
          'base64',
        ),
      },
    }),
  'token review: a long token': (n) =>
    postJson('/apis/authentication.k8s.io/v1/tokenreviews', {
      spec: { token: fill('a.', n(500, 2_900) * 1_000) },
    }),
};

/** Texts that make regular expressions backtrack, in fields that are validated by one. */
const pumps = [
  'a',
  '1',
  '.',
  '-',
  'a.',
  'a-',
  '1.',
  '11s',
  '/a',
  'a:',
  '::',
  ' ',
  '\n',
  '[',
  "['",
  '\\',
  '"',
  '%25',
  'A=',
  'ü',
];
const pumped: Readonly<Record<string, (text: string) => Omit<CostlyRequest, 'kind'>>> = {
  image: (image) => simplePod({ image }),
  'name of a container': (name) => simplePod({ name }),
  'name of an object': (name) => postJson(maps, { metadata: { name } }),
  'name and namespace': (name) => postJson(maps, { metadata: { name, namespace: name, generateName: name } }),
  'key of a label': (key) => postJson(maps, { metadata: { generateName: 'l-', labels: { [key]: key } } }),
  'key of an annotation': (key) =>
    postJson(maps, { metadata: { generateName: 'l-', annotations: { [key]: key } } }),
  'key of a config map': (key) => postJson(maps, { metadata: { generateName: 'l-' }, data: { [key]: 'a' } }),
  quantity: (cpu) => simplePod({ resources: { limits: { cpu, [cpu.slice(0, 1_000)]: cpu } } }),
  variable: (value) => simplePod({ env: [{ name: value, value }], command: [value] }),
  path: (text) =>
    pod({
      volumes: [{ name: 'v', hostPath: { path: text } }],
      containers: [container({ volumeMounts: [{ name: 'v', mountPath: text, subPath: text }] })],
    }),
  'host name and addresses': (text) =>
    pod({
      hostname: text,
      subdomain: text,
      dnsConfig: { nameservers: [text], searches: [text], options: [{ name: text, value: text }] },
      hostAliases: [{ ip: text, hostnames: [text] }],
      containers: [container()],
    }),
  sysctl: (name) => pod({ securityContext: { sysctls: [{ name, value: name }] }, containers: [container()] }),
  probe: (text) =>
    simplePod({
      livenessProbe: {
        httpGet: { path: text, port: text, host: text, httpHeaders: [{ name: text, value: text }] },
      },
    }),
  'address of a service': (text) =>
    postJson(`/api/v1/namespaces/${costlyNamespace}/services`, {
      metadata: { name: 'x' },
      spec: {
        clusterIP: text,
        externalIPs: [text],
        externalName: text,
        loadBalancerSourceRanges: [text],
        ports: [{ port: 1 }],
      },
    }),
  'path of a patch': (text) =>
    patch('json-patch', `${maps}/m0`, [{ op: 'add', path: `/${text}`, value: text }]),
  time: (text) =>
    postJson(`/apis/coordination.k8s.io/v1/namespaces/${costlyNamespace}/leases`, {
      metadata: { generateName: 'l-' },
      spec: { renewTime: text, holderIdentity: text },
    }),
  event: (text) =>
    postJson(`/api/v1/namespaces/${costlyNamespace}/events`, {
      metadata: { generateName: 'e-', namespace: costlyNamespace },
      involvedObject: { namespace: costlyNamespace, name: text, kind: text },
      message: text,
      reason: text,
      firstTimestamp: text,
    }),
  version: (text) =>
    send(
      'PUT',
      `${maps}/m0`,
      'application/json',
      JSON.stringify({ metadata: { name: 'm0', resourceVersion: text, uid: text } }),
    ),
};

/** The maximum length of a path: the request line and headers share a limit of one megabyte. */
const mostPath = 900_000;
const query = (path: string, name: string, value: string) =>
  get(`${path}?${name}=${encodeURIComponent(value).slice(0, mostPath)}`);

/**
 * Objects created by the requests are deleted regularly; otherwise the server would store more and
 * more of them.
 */
const leftBehind: readonly string[] = [
  maps,
  pods,
  `/api/v1/namespaces/${costlyNamespace}/services`,
  `/api/v1/namespaces/${costlyNamespace}/events`,
  `/apis/coordination.k8s.io/v1/namespaces/${costlyNamespace}/leases`,
  `/apis/discovery.k8s.io/v1/namespaces/${costlyNamespace}/endpointslices`,
  `/apis/rbac.authorization.k8s.io/v1/namespaces/${costlyNamespace}/roles`,
  '/apis/certificates.k8s.io/v1/certificatesigningrequests',
];

const questions: Readonly<Record<string, Make>> = {
  'selector: many labels': (n) => query(maps, 'labelSelector', fill('a=b,', n(10, 300) * 1_000)),
  'selector: many values': (n) => query(maps, 'labelSelector', `a in (${fill('b,', n(10, 290) * 1_000)}c)`),
  'selector: values of labels nobody has': (n) =>
    query(maps, 'labelSelector', `x notin (${times(n(1, 50) * 1_000, (i) => `v${i}`).join()})`),
  'selector: signs': (n) => query(maps, 'labelSelector', fill('!', n(10, 900) * 1_000)),
  'selector: brackets': (n) => query(maps, 'labelSelector', fill('a in (', n(10, 300) * 1_000)),
  'selector: blanks': (n) => query(maps, 'labelSelector', `a${fill(' ', n(10, 290) * 1_000)}b`),
  'selector: fields': (n) => query(maps, 'fieldSelector', fill('metadata.name=a,', n(10, 600) * 1_000)),
  'selector: escapes of fields': (n) =>
    query(maps, 'fieldSelector', `metadata.name=${fill('\\,', n(10, 150) * 1_000)}`),
  'selector: of a watch': (n) =>
    get(`${maps}?watch=true&timeoutSeconds=1&labelSelector=${fill('a!=b,', n(10, 800) * 1_000)}a`),
  'query: many parameters': (n) => get(`${maps}?${fill('a=1&', n(10, 900) * 1_000)}`),
  'query: many selectors': (n) => get(`${maps}?${fill('labelSelector=a&', n(10, 900) * 1_000)}`),
  'query: escapes': (n) => get(`${maps}?x=${fill('%25', n(10, 900) * 1_000)}`),
  'query: a long number': (n) => get(`${maps}?limit=${fill('1', n(10, 900) * 1_000)}`),
  'query: a long version': (n) =>
    get(`${maps}?watch=true&timeoutSeconds=1&resourceVersion=${fill('1', n(10, 900) * 1_000)}`),
  'query: a continue token': (n) => get(`${maps}?limit=5&continue=${fill('YWFh', n(10, 900) * 1_000)}`),
  'query: a deep continue token': (n) =>
    get(`${maps}?limit=5&continue=${Buffer.from(fill('[', n(10, 600) * 1_000)).toString('base64url')}`),
  'path: a long name': (n) => get(`${maps}/${fill('a', n(10, 900) * 1_000)}`),
  'path: escapes': (n) => get(`${maps}/${fill('%41', n(10, 900) * 1_000)}`),
  'path: many parts': (n) => get(`/api/v1/${fill('a/', n(10, 900) * 1_000)}`),
  'path: slashes': (n) => get(fill('/', n(10, 900) * 1_000)),
  'header: accepted types': (n) => get(maps, { accept: fill('a/b;q=0.1,', n(10, 500) * 1_000) }),
  'header: parameters of a type': (n) =>
    get(maps, { accept: `application/json${fill(';a=b', n(10, 500) * 1_000)}` }),
  'header: a type of blanks': (n) => ({
    ...postJson(maps, {}),
    headers: { 'content-type': `a/b;${fill(' \t', n(10, 500) * 1_000)}x` },
  }),
  'header: a long token': (n) => get(maps, { authorization: `Bearer ${fill('a.', n(10, 900) * 1_000)}` }),
  'header: a token of JSON': (n) =>
    get(maps, {
      authorization: `Bearer ${Buffer.from(fill('[', n(10, 400) * 1_000)).toString('base64url')}.e30.x`,
    }),
  'header: groups': (n) =>
    get(maps, { 'impersonate-user': 'u', 'impersonate-group': fill('a,', n(10, 500) * 1_000) }),
  'header: an agent': (n) => get(maps, { 'user-agent': fill('Mozilla/', n(10, 500) * 1_000) }),
  'list: whole': () => get(maps),
  'list: of everything': () => get('/api/v1/configmaps'),
  'list: as a table': () => get(maps, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }),
  'list: as a table with objects': () =>
    get(`${maps}?includeObject=Object`, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }),
  'list: parts': () =>
    get(maps, { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' }),
  'list: as YAML': () => get(maps, { accept: 'application/yaml' }),
  'list: indented': () => get(`${maps}?pretty=true`),
  'list: a page': (n) => get(`${maps}?limit=${n(1, 500)}`),
  'list: pods as a table': () => get(pods, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }),
  'list: pods as YAML': () => get(pods, { accept: 'application/yaml' }),
  'list: pods by a field': () => query(pods, 'fieldSelector', 'spec.nodeName=x,status.phase!=Running'),
  'object: as YAML': (n) => get(`${maps}/m${n(0, 49)}`, { accept: 'application/yaml' }),
  'object: indented': (n) => get(`${maps}/m${n(0, 49)}?pretty=true`),
  'object: many keys as YAML': () => get(`${maps}/wide`, { accept: 'application/yaml' }),
  'object: many keys indented': () => get(`${maps}/wide?pretty=true`),
  'object: a wide pod': () => get(`${pods}/wide`),
  'object: a wide pod as a table': () =>
    get(`${pods}/wide`, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }),
  'object: a wide pod as YAML': () => get(`${pods}/wide`, { accept: 'application/yaml' }),
  'watch: everything there is': () => get(`${maps}?watch=true&timeoutSeconds=1&resourceVersion=0`),
  'watch: with the initial events': () =>
    get(
      `${maps}?watch=true&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
    ),
  'watch: as tables': () =>
    get(`${maps}?watch=true&timeoutSeconds=1&resourceVersion=0`, {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    }),
  'pages: the whole OpenAPI': () => get('/openapi/v2'),
  'pages: a group of OpenAPI': () => get('/openapi/v3/api/v1'),
  ...Object.fromEntries(
    leftBehind.map((path) => [
      `deletion of all ${path.split('/').at(-1)}`,
      () => ({ ...get(`${path}?labelSelector=!keep`), method: 'DELETE' }),
    ]),
  ),
};

const operation = (op: string, parts: object) => ({ op, ...parts });
const wideNames = (count: number) => times(count, (i) => ({ name: `n${i}`, value: 'b' }));

const patches: Readonly<Record<string, Make>> = {
  'patch (json): copies of copies': (n) =>
    patch(
      'json-patch',
      `${maps}/m0`,
      times(n(20, 60), (i) => operation('copy', { from: '/metadata', path: `/metadata/c${i}` })),
    ),
  'patch (json): 10,000 additions': (n) =>
    patch(
      'json-patch',
      `${maps}/m0`,
      times(n(5_000, 10_000), (i) => operation('add', { path: `/data/k${i}`, value: 'v' })),
    ),
  'patch (json): comparisons': (n) =>
    patch(
      'json-patch',
      `${maps}/wide`,
      times(n(1_000, 10_000), () => operation('test', { path: '/data', value: {} })),
    ),
  'patch (json): comparisons of a wide object': () => {
    const data = Object.fromEntries(times(5_000, (i) => [`k${i}`, 'v']));
    return patch(
      'json-patch',
      `${maps}/wide`,
      times(35, () => operation('test', { path: '/data', value: data })),
    );
  },
  'patch (json): moves': (n) =>
    patch(
      'json-patch',
      `${pods}/wide`,
      times(n(1_000, 10_000), () =>
        operation('move', { from: '/spec/containers/0', path: '/spec/containers/5' }),
      ),
    ),
  'patch (json): a deep path': (n) =>
    patch('json-patch', `${maps}/m0`, [
      operation('add', { path: fill('/a', n(10, 2_900) * 1_000), value: 1 }),
    ]),
  'patch (json): a long index': (n) =>
    patch('json-patch', `${pods}/wide`, [
      operation('add', { path: `/spec/containers/${fill('1', n(10, 2_900) * 1_000)}`, value: 1 }),
    ]),
  'patch (json): 100,000 operations': (n) =>
    patch(
      'json-patch',
      `${maps}/m0`,
      times(n(10_000, 90_000), () => operation('test', { path: '' })),
    ),
  'patch (merge): wide': (n) =>
    patch('merge-patch', `${maps}/m0`, {
      data: Object.fromEntries(times(n(10_000, 150_000), (i) => [`k${i}`, 'v'])),
    }),
  'patch (merge): removals': (n) =>
    patch('merge-patch', `${maps}/wide`, {
      data: Object.fromEntries(times(n(10_000, 150_000), (i) => [`x${i}`, null])),
    }),
  'patch (merge): deep': (n) => {
    const deep = n(100, 300_000);
    return send(
      'PATCH',
      `${maps}/m0`,
      'application/merge-patch+json',
      `{"metadata":${'{"a":'.repeat(deep)}1${'}'.repeat(deep)}}`,
    );
  },
  'patch (strategic): a list by names': (n) =>
    patch('strategic-merge-patch', `${pods}/wide`, {
      spec: { containers: times(n(500, 20_000), (i) => ({ name: `c${i}`, image: 'x' })) },
    }),
  'patch (strategic): variables': (n) =>
    patch('strategic-merge-patch', `${pods}/wide`, {
      spec: { containers: [{ name: 'c0', env: wideNames(n(5_000, 20_000)) }] },
    }),
  'patch (strategic): an order': (n) => {
    const containers = times(n(500, 10_000), (i) => ({ name: `c${i}` })).toReversed();
    return patch('strategic-merge-patch', `${pods}/wide`, {
      spec: { '$setElementOrder/containers': containers, containers },
    });
  },
  'patch (strategic): deletions': (n) =>
    patch('strategic-merge-patch', `${pods}/wide`, {
      spec: { containers: times(n(500, 10_000), (i) => ({ name: `x${i}`, $patch: 'delete' })) },
    }),
  'patch (strategic): primitives': (n) =>
    patch('strategic-merge-patch', `${maps}/m0`, {
      metadata: {
        '$deleteFromPrimitiveList/finalizers': times(n(1_000, 50_000), (i) => `a/${i}`),
        finalizers: times(n(1_000, 50_000), (i) => `a.b/${i}`),
      },
    }),
  'patch (strategic): ports of one number': (n) =>
    patch('strategic-merge-patch', `${pods}/wide`, {
      spec: {
        containers: [
          { name: 'c0', ports: times(n(1_000, 10_000), (i) => ({ containerPort: 1, protocol: `P${i}` })) },
        ],
      },
    }),
  'patch (apply): YAML': (n) =>
    send('PATCH', `${maps}/m0`, 'application/apply-patch+yaml', fill('a: b\n', n(20, 600) * 4_096)),
};

const families: readonly Readonly<Record<string, Make>>[] = [bodies, objects, questions, patches];
const kinds: readonly (readonly [string, Make])[] = families.flatMap((family) => Object.entries(family));

export class CostlyMaker {
  readonly #random: Random;
  #turn = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** The number of kinds of expensive requests, each of which is sent once per cycle. */
  get kinds(): number {
    return kinds.length + Object.keys(pumped).length;
  }

  /** Returns the next request: the kinds in rotation, with random sizes. */
  next(): CostlyRequest {
    const turn = this.#turn++ % this.kinds;
    const size = (least: number, most: number) => least + randomInt(this.#random, most - least + 1);
    const [kind, make] = kinds[turn] ?? [];
    if (kind !== undefined && make !== undefined) return bounded(kind, make(size));
    const fields = Object.entries(pumped);
    const [field = '', made] = fields[turn - kinds.length] ?? [];
    const pump = pick(this.#random, pumps) ?? 'a';
    const text = fill(pump, size(1, 280) * 1_000);
    return bounded(
      `${JSON.stringify(pump)} as ${field}`,
      (made as (text: string) => Omit<CostlyRequest, 'kind'>)(text),
    );
  }

  /** Returns requests that create the objects to read, list, patch and watch. */
  fixtures(): readonly CostlyRequest[] {
    const wideMap = Object.fromEntries(times(20_000, (i) => [`k${i}`, 'v']));
    const labels = { keep: 'yes' };
    const containers = times(400, (i) => container({ name: `c${i}`, env: wideNames(20) }));
    return [
      { kind: 'fixture', ...postJson('/api/v1/namespaces', { metadata: { name: costlyNamespace } }) },
      { kind: 'fixture', ...postJson(maps, { metadata: { name: 'wide', labels }, data: wideMap }) },
      { kind: 'fixture', ...postJson(pods, { metadata: { name: 'wide', labels }, spec: { containers } }) },
      ...times(50, (i) => ({
        kind: 'fixture',
        ...postJson(maps, { metadata: { name: `m${i}`, labels }, data: { a: fill('x', 300_000) } }),
      })),
      ...times(500, (i) => ({
        kind: 'fixture',
        ...postJson(maps, { metadata: { name: `s${i}`, labels }, data: { a: fill('x\n', 2_000) } }),
      })),
      ...times(200, (i) => ({
        kind: 'fixture',
        ...postJson(pods, { metadata: { name: `p${i}`, labels }, spec: { containers: [container()] } }),
      })),
    ];
  }
}

/**
 * Checks the size of the body: a body that the server rejects for its size would test nothing else.
 */
function bounded(kind: string, request: Omit<CostlyRequest, 'kind'>): CostlyRequest {
  const isTooLarge = (request.body?.length ?? 0) > mostBytes + 1_000;
  return { kind: isTooLarge ? `${kind}, over the limit` : kind, ...request };
}

function repeated(bytes: Buffer, length: number): Buffer {
  return Buffer.concat(times(Math.floor(length / bytes.length), () => bytes));
}

function field(number: number, bytes: Buffer): Buffer {
  const length: number[] = [];
  let rest = bytes.length;
  for (; rest > 0x7f; rest >>>= 7) length.push((rest & 0x7f) | 0x80);
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...length, rest]), bytes]);
}

function protobuf(raw: Buffer) {
  const type = Buffer.concat([field(1, Buffer.from('v1')), field(2, Buffer.from('ConfigMap'))]);
  const body = Buffer.concat([Buffer.from('6b387300', 'hex'), field(1, type), field(2, raw)]);
  return send('POST', maps, 'application/vnd.kubernetes.protobuf', body);
}
