import { createHash } from 'node:crypto';
import { kindTable } from '../../kinds/index.ts';
import type { ResourceEntry } from '../api/index.ts';
import {
  acceptsAggregated,
  aggregatedDiscovery,
  aggregatedType,
  apiGroup,
  apiGroupList,
  apiResourceList,
  apiVersions,
  type GroupVersion,
  groupVersionPath,
  groupVersions,
} from './discovery.ts';
import { descriptionText } from './openapi/descriptions.ts';
import { openApiDocument } from './openapi/document.ts';

export interface DocumentOptions {
  readonly catalogue: { readonly all: readonly ResourceEntry[] };
  readonly version: VersionInfo;
  /** Host and port of the server for the discovery document; only old clients use it. */
  readonly serverAddress?: string;
}

export interface Document {
  readonly contentType: string;
  readonly body: string;
  /** The ETag without quotes, which identifies the content. */
  readonly etag: string;
}

/**
 * Returns the document route for a path, which may depend on the Accept header; undefined for
 * unknown paths.
 */
export type DocumentRoutes = (path: string, accept: string | undefined) => Document | undefined;

const json = 'application/json';
const emptySwagger = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

/** The documents that every client may read: discovery, OpenAPI and version. */
export function createDocumentRoutes(options: DocumentOptions): DocumentRoutes {
  const groups = groupVersions(options.catalogue.all);
  const pages = new Map<string, (accept: string | undefined) => Document>([
    ...discoveryRoutes(groups, options.serverAddress ?? ''),
    ...openApiRoutes(groups, options),
    ['/version', () => createDocument(json, options.version)],
  ]);
  return (path, accept) => pages.get(path)?.(accept);
}

type Route = [string, (accept: string | undefined) => Document];

function discoveryRoutes(groups: readonly GroupVersion[], serverAddress: string): Route[] {
  const named = groups.filter(({ group }) => group !== '');
  const legacy = (path: string, build: () => object): Route => [path, () => createDocument(json, build())];
  const either = (path: string, of: 'core' | 'named', build: () => object): Route => [
    path,
    (accept) =>
      acceptsAggregated(accept)
        ? createDocument(aggregatedType, aggregatedDiscovery(groups, of))
        : createDocument(json, build()),
  ];
  return [
    either('/api', 'core', () => apiVersions(groups, serverAddress)),
    either('/apis', 'named', () => apiGroupList(groups)),
    ...named.map(({ group }) =>
      legacy(`/apis/${group}`, () => apiGroup(groups.filter((each) => each.group === group))),
    ),
    ...groups.map((each) => legacy(`/${groupVersionPath(each)}`, () => apiResourceList(each))),
  ];
}

function openApiRoutes(groups: readonly GroupVersion[], { catalogue, version }: DocumentOptions): Route[] {
  const marks = new DocumentEtags(catalogue.all, version);
  const release = `${version.major}.${version.minor}`;
  return [
    ['/openapi/v2', (accept) => emptyDocument(accept, release)],
    ['/openapi/v3', () => createDocument(json, openApiIndex(groups, marks))],
    ...groups.map((each): Route => {
      const build = weaklyCached(() => JSON.stringify(openApiDocument(each, catalogue.all, release)));
      const response = { contentType: json, etag: marks.etagOf(each) };
      return [`/openapi/v3/${groupVersionPath(each)}`, () => new LazyDocument(response, build)];
    }),
  ];
}

function openApiIndex(groups: readonly GroupVersion[], marks: DocumentEtags): object {
  const paths = groups.map((each) => {
    const path = groupVersionPath(each);
    return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${marks.etagOf(each)}` }];
  });
  return { paths: Object.fromEntries(paths) };
}

/** The OpenAPI v2 document is empty, so that clients skip client-side validation. */
function emptyDocument(accept: string | undefined, release: string): Document {
  if (accept?.includes('proto-openapi') === true)
    return { contentType: emptySwagger, body: '', etag: digest('') };
  return createDocument(json, { swagger: '2.0', info: { title: 'Kubernetes', version: release }, paths: {} });
}

function createDocument(contentType: string, content: object): Document {
  const body = JSON.stringify(content);
  return { contentType, body, etag: digest(body) };
}

/**
 * The body is generated only when it is read, because a client with a matching ETag does not need
 * it.
 */
class LazyDocument implements Document {
  readonly contentType: string;
  readonly etag: string;
  readonly #build: () => string;

  constructor({ contentType, etag }: Omit<Document, 'body'>, build: () => string) {
    this.contentType = contentType;
    this.etag = etag;
    this.#build = build;
  }

  get body(): string {
    return this.#build();
  }
}

/**
 * ETags are computed from the inputs of the documents, so that no document has to be generated for
 * them.
 */
class DocumentEtags {
  readonly #inputs: string;
  readonly #known = new Map<string, string>();

  constructor(all: readonly ResourceEntry[], version: VersionInfo) {
    const entries = all.map(({ strategy: _, view: __, ...plain }) => plain);
    const inputs = [version.gitVersion, JSON.stringify(entries), kindTable, descriptionText()];
    this.#inputs = digest(inputs.join('\n'));
  }

  etagOf(groupVersion: GroupVersion): string {
    const path = groupVersionPath(groupVersion);
    const known = this.#known.get(path) ?? digest(`${path}\n${this.#inputs}`);
    this.#known.set(path, known);
    return known;
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').toUpperCase();
}

/** Caches the value of a function through a weak reference. */
function weaklyCached(build: () => string): () => string {
  let cached: WeakRef<{ readonly text: string }> | undefined;
  return () => {
    const known = cached?.deref() ?? { text: build() };
    cached = new WeakRef(known);
    return known.text;
  };
}

interface DocumentQuery {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly accept: string | undefined;
  readonly ifNoneMatch: string | undefined;
}

interface DocumentResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Serves the documents with ETags: returns 304 to clients that have the current document. */
export function createDocumentServer(options: DocumentOptions): {
  document(request: DocumentQuery): DocumentResponse | undefined;
} {
  const routes = createDocumentRoutes(options);
  return {
    document({ path, query, accept, ifNoneMatch }) {
      const found = routes(path, accept);
      if (found === undefined) return undefined;
      const hash = path.startsWith('/openapi/v3/') ? query.get('hash') : null;
      if (hash !== null && hash !== found.etag) return redirect(`${path}?hash=${found.etag}`);
      const headers = { ETag: `"${found.etag}"`, Vary: 'Accept', ...(hash === null ? {} : immutableCaching) };
      if (matchesEtag(ifNoneMatch, found.etag)) return { status: 304, headers, body: '' };
      return { status: 200, headers: { 'Content-Type': found.contentType, ...headers }, body: found.body };
    },
  };
}

/** A document under the path with its hash never changes. */
const immutableCaching = { 'Cache-Control': 'public, immutable' };

function redirect(to: string): DocumentResponse {
  return { status: 301, headers: { Location: to }, body: '' };
}

function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  const known = (ifNoneMatch ?? '').split(',').map((each) => each.trim().replace(/^W\//, ''));
  return known.includes('*') || known.includes(`"${etag}"`);
}

/** The response of `/version`; the field names are those of kube-apiserver. */
export interface VersionInfo {
  readonly major: string;
  readonly minor: string;
  /** The emulated Kubernetes release and the oldest compatible one. */
  readonly emulationMajor: string;
  readonly emulationMinor: string;
  readonly minCompatibilityMajor: string;
  readonly minCompatibilityMinor: string;
  readonly gitVersion: string;
  readonly gitCommit: string;
  readonly gitTreeState: string;
  readonly buildDate: string;
  readonly goVersion: string;
  readonly compiler: string;
  readonly platform: string;
}

export interface VersionSources {
  /** The Kubernetes release of this API, such as `v1.36.4`. */
  readonly kubernetes: string;
  readonly kubeling: string;
  /** The Node.js version as in `process.version`. */
  readonly node: string;
  readonly platform: string;
  readonly arch: string;
}

export function createVersionInfo({
  kubernetes,
  kubeling,
  node,
  platform,
  arch,
}: VersionSources): VersionInfo {
  const [major = '', minor = ''] = kubernetes.replace(/^v/, '').split('.');
  return {
    major,
    minor,
    emulationMajor: major,
    emulationMinor: minor,
    minCompatibilityMajor: major,
    minCompatibilityMinor: String(Number(minor) - 1),
    gitVersion: `${kubernetes}+kubeling.${kubeling}`,
    gitCommit: '',
    gitTreeState: '',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: `node-${node}`,
    compiler: 'v8',
    platform: `${platform}/${arch === 'x64' ? 'amd64' : arch}`,
  };
}
