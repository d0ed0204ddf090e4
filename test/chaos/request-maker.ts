import { KindTable, tableNameOf } from '../../src/kinds/index.ts';
import { pick, type Random, randomInt } from '../../src/lib/index.ts';
import type { ResourceEntry } from '../../src/local-api/api/api-types.ts';
import { type Catalogue, createCatalogue } from '../../src/local-api/registry/catalogue.ts';
import { anyObject, encodeObject } from '../fakes/protobuf-objects.ts';

/** A generated request, valid or not. */
export interface MadeRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
}

type JsonMap = Record<string, unknown>;

const names = [
  'a',
  'b',
  'c',
  'default',
  'x.y',
  'UPPER',
  '-',
  'z'.repeat(300),
  '..',
  '%F0%9F%90%9F',
  'a%20b',
  '0',
];
const namespaces = [
  'default',
  'default',
  'default',
  'default',
  'fuzz',
  'fuzz',
  'kube-system',
  'nowhere',
  'Bad_Name',
];
const methods = [
  'GET',
  'GET',
  'GET',
  'POST',
  'POST',
  'PUT',
  'PATCH',
  'PATCH',
  'DELETE',
  'DELETE',
  'HEAD',
  'OPTIONS',
];
const words = [
  '',
  '0',
  '1',
  '-1',
  'true',
  'x',
  '99999999999999999999',
  'NaN',
  '\u0000',
  'ü',
  'null',
  '{}',
  "' or 1=1",
];
const accepts = [
  undefined,
  'application/json',
  'application/yaml',
  '*/*',
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json',
  'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
  'application/vnd.kubernetes.protobuf,application/json',
  'application/cbor',
  ';;;,,,q=',
];
const patchTypes = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
];
const pages = [
  '/',
  '/api',
  '/apis',
  '/version',
  '/openapi/v2',
  '/openapi/v3',
  '/healthz',
  '/readyz?verbose',
  '/metrics',
];
const streams = ['exec', 'attach', 'portforward', 'log', 'proxy', 'proxy/a//b%2f..', 'exec/x'];
const upgrades = ['websocket', 'SPDY/3.1', 'h2c', 'WebSocket, x', ''];
const protocols = [
  'v5.channel.k8s.io',
  'v4.channel.k8s.io, channel.k8s.io',
  'base64.binary.k8s.io',
  'SPDY/3.1+portforward.k8s.io',
  'base64url.bearer.authorization.k8s.io.YQ',
  'x',
  ',,',
];
const credentials: readonly Readonly<Record<string, string>>[] = [
  { authorization: 'Bearer a.b.c' },
  { authorization: 'Bearer eyJhbGciOiJub25lIn0.e30.' },
  { authorization: 'Basic YTpi' },
  { 'impersonate-user': 'u' },
  { 'impersonate-user': 'system:serviceaccount:a:b' },
  { 'impersonate-user': 'u', 'impersonate-group': 'a,b,,c', 'impersonate-extra-%zz': 'x' },
];
const signs = 'ab.=!,()\\ in notin\t"/-_0';
const selectors = [
  'a=b',
  'a!=b',
  'a in (b,c)',
  'a notin (b',
  '!a',
  'a,b',
  '=',
  'metadata.name=a',
  'spec.nodeName!=',
  ',',
];

/** Generates random requests; the same seed generates the same requests. */
export class RequestMaker {
  readonly #random: Random;
  readonly #table = new KindTable();
  readonly #catalogue: Catalogue = createCatalogue({});

  constructor(random: Random) {
    this.#random = random;
  }

  next(): MadeRequest {
    if (this.#chance(20))
      return { method: this.#any(methods), path: this.#page(), headers: this.#headers(), body: undefined };
    if (this.#chance(12)) return this.#stream();
    const entry = this.#any(this.#catalogue.all);
    const method = this.#chance(8) ? this.#any(methods) : this.#any(methodsOf(entry));
    const created = {
      method,
      path: `${this.#path(entry, method)}?${this.#query(method)}`,
      headers: this.#headers(),
    };
    if (method === 'GET' || method === 'HEAD') return { ...created, body: undefined };
    return this.#withBody(created, entry);
  }

  /** Generates upgrade requests for existing and missing pods, with valid and invalid protocols. */
  #stream(): MadeRequest {
    const resource = this.#any(['pods', 'pods', 'pods', 'nodes', 'services']);
    const inside = resource === 'nodes' ? '' : `/namespaces/${this.#any(namespaces)}`;
    const name = this.#any([...names, 'https:a:80', 'a:', 'x:y:z', 'node']);
    const method = this.#any(['GET', 'POST', 'PUT', 'CONNECT'].slice(0, 3));
    const headers = {
      ...this.#headers(),
      connection: this.#any(['Upgrade', 'keep-alive, Upgrade']),
      upgrade: this.#any(upgrades),
      'sec-websocket-version': this.#any(['13', '8', 'x']),
      'sec-websocket-key': this.#any(['dGhlIHNhbXBsZSBub25jZQ==', 'x']),
      'sec-websocket-protocol': this.#any(protocols),
      'x-stream-protocol-version': this.#any(protocols),
    };
    const path = `/api/v1${inside}/${resource}/${name}/${this.#any(streams)}?${this.#query('POST')}`;
    return { method, path, headers: this.#chance(4) ? this.#headers() : headers, body: undefined };
  }

  /**
   * Generates bytes that resemble an HTTP request, with headers missing and often with damaged
   * bytes.
   */
  garbage(): Buffer {
    const lines = [
      `${this.#any(methods)} ${this.#page()} HTTP/1.1`,
      'Host: a',
      `Connection: ${this.#any(['Upgrade', 'close', 'keep-alive, Upgrade', ''])}`,
      `Upgrade: ${this.#any(['websocket', 'SPDY/3.1', 'h2c', 'x'])}`,
      `Sec-WebSocket-Key: ${this.#any(words.slice(0, 8))}`,
      `Sec-WebSocket-Protocol: ${this.#any(['v5.channel.k8s.io', 'SPDY/3.1+portforward.k8s.io', 'x'])}`,
      `Content-Length: ${this.#any(['0', '5', '-5', '99999999999', 'x'])}`,
      `Transfer-Encoding: ${this.#any(['chunked', 'gzip', 'chunked, chunked'])}`,
    ];
    const retained = lines.filter((_, index) => index === 0 || this.#chance(2));
    const bytes = Buffer.from(`${retained.join('\r\n')}\r\n\r\n${this.#any(words)}`, 'latin1');
    return this.#chance(2) ? bytes : this.#scrambled(bytes);
  }

  #withBody(made: Omit<MadeRequest, 'body'>, entry: ResourceEntry): MadeRequest {
    const isPatch = made.method === 'PATCH';
    const type = isPatch && !this.#chance(20) ? this.#any(patchTypes) : this.#bodyType();
    const usual = () => (isPatch ? this.#patch(entry, type) : this.#object(entry, type));
    const body = this.#chance(100) ? this.#deep() : usual();
    const bytes = this.#chance(15) ? this.#scrambled(body) : body;
    return { ...made, headers: { ...made.headers, 'content-type': type }, body: bytes };
  }

  #bodyType(): string {
    const usual = [
      'application/json',
      'application/json',
      'application/vnd.kubernetes.protobuf',
      'application/yaml',
    ];
    return this.#chance(15)
      ? this.#any(['text/plain', 'application/cbor', ';', 'x/y;z=1'])
      : this.#any(usual);
  }

  #path({ resource, subresources }: ResourceEntry, method: string): string {
    const root =
      resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
    const isInside = (resource.scope === 'namespace') !== this.#chance(40);
    const inside = isInside && !this.#chance(15) ? `/namespaces/${this.#any(namespaces)}` : '';
    const named =
      method === 'POST' ? this.#chance(10) : !this.#chance(method === 'GET' || method === 'DELETE' ? 4 : 20);
    const name = named ? `/${this.#any(this.#chance(4) ? names : names.slice(0, 3))}` : '';
    const part =
      named && this.#chance(3)
        ? `/${this.#any([...subresources.map((each) => each.name), 'status', 'x'])}`
        : '';
    const rest = part === '/proxy' ? '/a//b' : '';
    return `${root}${inside}/${resource.plural}${name}${part}${rest}`;
  }

  #page(): string {
    const page = this.#any(pages);
    return this.#chance(4)
      ? `${page}${this.#any(words.map(encodeURIComponent))}/%zz`.slice(0, 1 + randomInt(this.#random, 40))
      : page;
  }

  #query(method: string): string {
    const query = new URLSearchParams();
    const add = (name: string, values: readonly string[]) => {
      if (this.#chance(6)) query.append(name, this.#chance(4) ? this.#any(words) : this.#any(values));
    };
    if (method === 'GET' && this.#chance(5)) {
      query.set('watch', this.#any(['true', '1', 'yes']));
      query.set('timeoutSeconds', '1');
    }
    add('limit', ['1', '2', '500']);
    add('continue', ['abc', 'eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0']);
    add('resourceVersion', ['0', '1', '5', '100000000']);
    add('resourceVersionMatch', ['Exact', 'NotOlderThan']);
    add('sendInitialEvents', ['true', 'false']);
    add('allowWatchBookmarks', ['true']);
    add('fieldSelector', [...selectors, this.#signs()]);
    add('labelSelector', [...selectors, this.#signs(), this.#signs()]);
    add('dryRun', ['All']);
    add('fieldValidation', ['Strict', 'Warn', 'Ignore']);
    add('gracePeriodSeconds', ['0', '30', '-5']);
    add('propagationPolicy', ['Foreground', 'Orphan']);
    add('includeObject', ['None', 'Object']);
    add('command', ['sh', 'ls']);
    add('tailLines', ['5', '-5']);
    add('pretty', ['true']);
    return query.toString();
  }

  #headers(): Readonly<Record<string, string>> {
    const accept = this.#chance(2) ? undefined : this.#any(accepts);
    const rest = this.#chance(20) ? this.#any(credentials) : {};
    return { ...(accept === undefined ? {} : { accept }), ...rest };
  }

  #object({ resource, subresources }: ResourceEntry, type: string): Buffer {
    const part = this.#chance(3) ? pick(this.#random, subresources) : undefined;
    const kind = this.#chance(15) ? 'DeleteOptions' : (part?.kind ?? resource.kind);
    const group = part?.group ?? resource.group;
    const version = part?.version ?? resource.version;
    const apiVersion = group === '' ? version : `${group}/${version}`;
    const name = tableNameOf(group, kind);
    if (!this.#table.has(name)) return Buffer.from('{}');
    const object = this.#likely(anyObject(this.#table, name, this.#random), name) as JsonMap;
    if (type.includes('protobuf')) return envelope(apiVersion, kind, encodeObject(this.#table, name, object));
    const headed = { apiVersion, kind, ...object };
    return Buffer.from(JSON.stringify(this.#chance(3) ? this.#bent(headed) : headed));
  }

  /** Most objects get a valid name, because a server that rejects the name checks nothing else. */
  #likely(object: JsonMap, kind: string): JsonMap {
    if (kind === 'DeleteOptions' || this.#chance(10)) return object;
    const metadata = { name: this.#any(names.slice(0, 4)), labels: { a: 'b' } };
    const spec =
      this.#chance(2) && kind === 'Pod' ? { spec: { containers: [{ name: 'c', image: 'i' }] } } : {};
    const empty = this.#chance(3) ? {} : object;
    return { ...empty, metadata, ...spec };
  }

  #patch(entry: ResourceEntry, type: string): Buffer {
    if (type !== 'application/json-patch+json') {
      const object = JSON.parse(this.#object(entry, 'application/json').toString()) as JsonMap;
      return Buffer.from(JSON.stringify(this.#directed(this.#bent(object))));
    }
    const paths = [
      '/metadata/labels/a',
      '/metadata',
      '/spec/containers/0',
      '/spec',
      '/data/x',
      '',
      '/a~2b',
      '/status/-',
    ];
    const operations = Array.from({ length: randomInt(this.#random, 4) }, () => ({
      op: this.#any(['add', 'remove', 'replace', 'move', 'copy', 'test', 'x']),
      path: this.#any(paths),
      from: this.#any(paths),
      value: this.#any<unknown>([1, 'x', null, {}, [], { name: 'x' }]),
    }));
    return Buffer.from(JSON.stringify(operations));
  }

  #directed(value: unknown): unknown {
    if (typeof value !== 'object' || value === null || !this.#chance(4)) return value;
    const directives = [
      { $patch: 'replace' },
      { $patch: 'delete' },
      { $patch: 'x' },
      { '$setElementOrder/containers': [{ name: 'c' }] },
      { '$deleteFromPrimitiveList/finalizers': ['x'] },
      { $retainKeys: ['x'] },
      { $retainKeys: 5 },
    ];
    return { ...value, metadata: this.#any<unknown>(directives), spec: this.#any<unknown>(directives) };
  }

  /** Changes a random nested field of an object. */
  #bent(value: JsonMap): JsonMap {
    const copy = structuredClone(value);
    let at: JsonMap = copy;
    for (let depth = randomInt(this.#random, 6); depth > 0; depth--) {
      const inner = pick(
        this.#random,
        Object.values(at).filter((each) => typeof each === 'object' && each !== null),
      );
      if (inner === undefined) break;
      at = inner as JsonMap;
    }
    const key = pick(this.#random, Object.keys(at)) ?? 'x';
    at[this.#chance(5) ? this.#any(['__proto__', 'constructor', 'toString', 'unknown']) : key] =
      this.#any<unknown>([null, 0, -1, 1e300, 'x', [], {}, [null], [[]], true, '\ud800']);
    return copy;
  }

  #signs(): string {
    return Array.from({ length: randomInt(this.#random, 20) }, () => this.#any([...signs])).join('');
  }

  /** Generates JSON that is nested deeper than a recursive algorithm can handle. */
  #deep(): Buffer {
    const [open, close] = this.#any([
      ['[', ']'],
      ['{"spec":', '}'],
      ['{"metadata":{"labels":', '}}'],
    ] as const);
    const times = this.#any([100, 5_000, 100_000]);
    return Buffer.from(`${open.repeat(times)}null${close.repeat(times)}`);
  }

  #scrambled(bytes: Buffer): Buffer {
    const copy = Buffer.from(
      bytes.subarray(0, this.#chance(3) ? randomInt(this.#random, bytes.length + 1) : bytes.length),
    );
    for (let count = randomInt(this.#random, 5); count > 0 && copy.length > 0; count--)
      copy[randomInt(this.#random, copy.length)] = randomInt(this.#random, 256);
    return copy;
  }

  #chance(oneIn: number): boolean {
    return randomInt(this.#random, oneIn) === 0;
  }

  #any<T>(items: readonly T[]): T {
    return pick(this.#random, items) as T;
  }
}

/** Returns the methods to send to a resource, supported writes first. */
function methodsOf({ verbs }: ResourceEntry): readonly string[] {
  const all = verbs.map((verb) => methodOfVerb[verb] ?? 'GET');
  return all.includes('POST') ? [...all, 'POST', 'POST'] : all;
}

const methodOfVerb: Readonly<Record<string, string>> = {
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETE',
};

function envelope(apiVersion: string, kind: string, raw: Buffer): Buffer {
  const part = (number: number, bytes: Buffer) =>
    Buffer.concat([Buffer.from([(number << 3) | 2]), varint(bytes.length), bytes]);
  const type = Buffer.concat([part(1, Buffer.from(apiVersion)), part(2, Buffer.from(kind))]);
  return Buffer.concat([Buffer.from('6b387300', 'hex'), part(1, type), part(2, raw)]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
}
