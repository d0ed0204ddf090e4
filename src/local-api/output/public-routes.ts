import { createHash } from 'node:crypto';
import { kindTable } from '../../kinds/index.ts';
import type { ResourceEntry } from '../core/index.ts';
import { aggregatedDiscovery, aggregatedType, wantsAggregated } from './discovery/aggregated.ts';
import { type GroupVersion, groupVersionPath, groupVersions } from './discovery/groups.ts';
import { apiGroup, apiGroupList, apiResourceList, apiVersions } from './discovery/legacy.ts';
import { descriptionText } from './openapi/descriptions.ts';
import { openApiDocument } from './openapi/document.ts';
import type { VersionFacts } from './version.ts';

export interface PublicRoutesOptions {
  readonly catalogue: { readonly all: readonly ResourceEntry[] };
  readonly version: VersionFacts;
  /** Host and port at which the server is found; only old clients look at it. */
  readonly serverAddress?: string;
}

export interface PublicAnswer {
  readonly contentType: string;
  readonly body: string;
  /** Without quotes: it is a mark of the content, and of nothing else. */
  readonly etag: string;
}

/** By path, without a query. Answers depend on what is accepted; undefined for a path that is none of these. */
export type PublicRoutes = (path: string, accept: string | undefined) => PublicAnswer | undefined;

const json = 'application/json';
const emptySwagger = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

/** What everybody may know of a server: its groups, its kinds and its version. */
export function publicRoutes(options: PublicRoutesOptions): PublicRoutes {
  const groups = groupVersions(options.catalogue.all);
  const pages = new Map<string, (accept: string | undefined) => PublicAnswer>([
    ...discoveryPages(groups, options.serverAddress ?? ''),
    ...openApiPages(groups, options),
    ['/version', () => answer(json, options.version)],
  ]);
  return (path, accept) => pages.get(path)?.(accept);
}

type Page = [string, (accept: string | undefined) => PublicAnswer];

function discoveryPages(groups: readonly GroupVersion[], serverAddress: string): Page[] {
  const named = groups.filter(({ group }) => group !== '');
  const legacy = (path: string, make: () => object): Page => [path, () => answer(json, make())];
  const either = (path: string, of: 'core' | 'named', make: () => object): Page => [
    path,
    (accept) =>
      wantsAggregated(accept)
        ? answer(aggregatedType, aggregatedDiscovery(groups, of))
        : answer(json, make()),
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

function openApiPages(groups: readonly GroupVersion[], { catalogue, version }: PublicRoutesOptions): Page[] {
  const marks = new Marks(catalogue.all, version);
  const release = `${version.major}.${version.minor}`;
  return [
    ['/openapi/v2', (accept) => emptyDocument(accept, release)],
    ['/openapi/v3', () => answer(json, openApiIndex(groups, marks))],
    ...groups.map((each): Page => {
      const make = remembered(() => JSON.stringify(openApiDocument(each, catalogue.all, release)));
      const answered = { contentType: json, etag: marks.of(each) };
      return [`/openapi/v3/${groupVersionPath(each)}`, () => new LateAnswer(answered, make)];
    }),
  ];
}

function openApiIndex(groups: readonly GroupVersion[], marks: Marks): object {
  const paths = groups.map((each) => {
    const path = groupVersionPath(each);
    return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${marks.of(each)}` }];
  });
  return { paths: Object.fromEntries(paths) };
}

/** Nobody needs the older form: an empty document says that there is nothing to check against. */
function emptyDocument(accept: string | undefined, release: string): PublicAnswer {
  if (accept?.includes('proto-openapi') === true)
    return { contentType: emptySwagger, body: '', etag: digest('') };
  return answer(json, { swagger: '2.0', info: { title: 'Kubernetes', version: release }, paths: {} });
}

function answer(contentType: string, content: object): PublicAnswer {
  const body = JSON.stringify(content);
  return { contentType, body, etag: digest(body) };
}

/** Whoever has the document already needs only its mark, and then it is not made. */
class LateAnswer implements PublicAnswer {
  readonly contentType: string;
  readonly etag: string;
  readonly #make: () => string;

  constructor({ contentType, etag }: Omit<PublicAnswer, 'body'>, make: () => string) {
    this.contentType = contentType;
    this.etag = etag;
    this.#make = make;
  }

  get body(): string {
    return this.#make();
  }
}

/** A document's mark comes from all that goes into it, so that it is known before the document is made. */
class Marks {
  readonly #inputs: string;
  readonly #known = new Map<string, string>();

  constructor(all: readonly ResourceEntry[], version: VersionFacts) {
    const entries = all.map(({ rules: _, view: __, ...plain }) => plain);
    const inputs = [version.gitVersion, JSON.stringify(entries), kindTable, descriptionText()];
    this.#inputs = digest(inputs.join('\n'));
  }

  of(groupVersion: GroupVersion): string {
    const path = groupVersionPath(groupVersion);
    const known = this.#known.get(path) ?? digest(`${path}\n${this.#inputs}`);
    this.#known.set(path, known);
    return known;
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').toUpperCase();
}

/** Kept for as long as there is memory to spare. */
function remembered(make: () => string): () => string {
  let kept: WeakRef<{ readonly text: string }> | undefined;
  return () => {
    const known = kept?.deref() ?? { text: make() };
    kept = new WeakRef(known);
    return known.text;
  };
}
