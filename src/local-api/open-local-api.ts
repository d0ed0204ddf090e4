import { join } from 'node:path';
import { apiResources, type JsonObject } from '../api/index.ts';
import { KindTable } from '../kinds/index.ts';
import {
  abortable,
  type Clock,
  joinHostPort,
  KubelingError,
  type Logger,
  metricsContentType,
  type Random,
  type SampledFamily,
} from '../lib/index.ts';
import {
  type ApiCall,
  type ApiLoop,
  Catalogue,
  LocalApi,
  type ObjectReader,
  ObjectStore,
  type StoredObject,
  unavailable,
} from './api/index.ts';
import { ApiFront, type FrontApi } from './http/index.ts';
import type { OwnService } from './kinds/index.ts';
import { type ManifestKeeper, manifestKeeper } from './manifest-objects.ts';
import { publicPages, versionFacts } from './output/index.ts';
import { type OpenedStore, openStore, storeMetrics } from './persistence/index.ts';
import {
  type Authorities,
  followCertificates,
  type Grant,
  issuerPages,
  makeAuthenticator,
  makeAuthorizer,
  makeFrontSecurity,
  makeSigningDesk,
  makeTokenDesk,
  openAuthorities,
  realAuthorityFiles,
  tlsOptions,
} from './security/index.ts';
import { makeRules, type Rules } from './strategies.ts';
import { createStreams, type KubeletAddress, type KubeletDialer, metricsEntries } from './streams/index.ts';

export interface LocalApiOptions {
  /** All that the API keeps; it is the API's own. */
  readonly directory: string;
  readonly adminKubeconfig: string;
  /** What becomes of the objects of an earlier run: they are here again unless said otherwise, or their file is set aside. */
  readonly before?: 'kept' | 'set-aside' | undefined;
  readonly listen: {
    readonly host: string;
    readonly port: number;
    /** What to do when somebody else has the port; nothing is opened unless said otherwise. */
    readonly ifTaken?: 'refuse' | 'another-port';
  };
  /** Of the one node that is expected to join. */
  readonly nodeName: string;
  /** By which others may call the server, besides loopback; read again and again. */
  readonly hostnames: () => readonly string[];
  readonly addresses: () => readonly string[];
  /** Where the kubelet of a node answers, if that is not where the node says. */
  readonly kubeletAt: (node: StoredObject) => KubeletAddress | undefined;
  /** What service accounts may besides asking who they are. */
  readonly grants?: readonly Grant[] | undefined;
  /** How long certificates hold at most that it signs for others; a year unless given. */
  readonly signedForMs?: number | undefined;
  readonly version: { readonly kubernetes: string; readonly own: string };
  /** Counts and sizes of all parts of the process, in the words of `/metrics`, which is not there without it. */
  readonly exposeMetrics?: (() => Promise<string>) | undefined;
  /** How long events are kept after they last happened; an hour unless given. */
  readonly eventsKeptForMs?: number | undefined;
  /** What happened to an object is remembered for watchers so long, and of each resource so many times at most. */
  readonly history?: { readonly limit: number; readonly ms: number } | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** An API that answers. */
export interface OpenLocalApi extends AsyncDisposable {
  readonly url: string;
  /** The node's own way in. */
  readonly nodeKubeconfig: string;
  /** Of who vouches for everybody here. */
  readonly authorityFile: string;
  /** Whether it was there already: what an earlier one signed is of no use here. */
  readonly authority: 'kept' | 'made';
  /** Where the objects of an earlier run are, if they were set aside. */
  readonly aside: string | undefined;
  readonly objects: ObjectReader;
  /** Calls back after each change. */
  onChange(told: () => void): Disposable;
  isNodeReady(name: string): boolean;
  readonly manifestKeeper: ManifestKeeper;
  /** What there is to know of its store now. */
  metrics(): readonly SampledFamily[];
  /** Does what the server does by itself until aborted. Rejects when nothing can be kept any more, ever. */
  run(signal: AbortSignal): Promise<void>;
}

const usualHistory = { limit: 50_000, ms: 5 * 60_000 };
/** Of each resource, however young it is: what is remembered must not grow with the zeal of a client. */
const historyBytes = 32 * 2 ** 20;

/** Rejects with SERVER_LISTEN when the address is taken, STORE_* when what it kept cannot be used. */
export async function openLocalApi(options: LocalApiOptions, signal: AbortSignal): Promise<OpenLocalApi> {
  const { directory, logger, listen } = options;
  await using opened = new AsyncDisposableStack();
  const parts = await openParts(options, opened, signal);
  const { api, authorities, catalogue, front, kept, place, rules, store } = parts;
  const port = await listenAt(front, listen, tlsOptions(authorities));
  // Nobody has been answered yet: what must be there is made before anything else happens.
  const loops = rules.begin(api.world, catalogue, ownService(listen.host, options.addresses(), port));
  const { url, nodeKubeconfig } = await publish(port, authorities, options);
  place.url = url;
  opened.use(followCertificates(front, authorities));
  const certificates: ApiLoop = { name: 'certificates', run: (each) => authorities.run(each) };
  const moved = opened.move();
  return {
    url,
    nodeKubeconfig,
    authorityFile: join(directory, 'pki', 'ca.crt'),
    authority: authorities.origin,
    aside: kept.aside,
    objects: store,
    onChange: (told) => store.subscribe(() => told()),
    isNodeReady: (name) => isReady(store.get(apiResources.nodes, undefined, name)),
    manifestKeeper: manifestKeeper(api.world, catalogue, parts.table),
    metrics: () => storeMetrics(kept.figures()),
    run: (inner) => runAll([...loops, certificates, parts.storeEnd], logger, inner),
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  };
}

/** All that was opened before stays as it is: what was set aside is not set aside again. */
async function listenAt(
  front: Pick<ApiFront, 'listen'>,
  { host, port, ifTaken = 'refuse' }: LocalApiOptions['listen'],
  tls: ReturnType<typeof tlsOptions>,
): Promise<number> {
  try {
    return (await front.listen({ host, port, tls })).port;
  } catch (error) {
    const isTaken = error instanceof KubelingError && error.code === 'SERVER_LISTEN';
    if (!isTaken || ifTaken === 'refuse' || port === 0) throw error;
    return (await front.listen({ host, port: 0, tls })).port;
  }
}

interface Parts {
  readonly api: LocalApi;
  readonly authorities: Authorities;
  readonly catalogue: Catalogue;
  readonly front: ApiFront;
  readonly kept: OpenedStore;
  /** Ends when the store has ended by itself. */
  readonly storeEnd: ApiLoop;
  /** Where the front answers, once it does. */
  readonly place: { url: string };
  readonly rules: Rules;
  readonly store: ObjectStore;
  readonly table: KindTable;
}

/** All parts, joined; whatever has to be closed again is told. */
async function openParts(
  options: LocalApiOptions,
  opened: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Parts> {
  const { clock, random, logger } = options;
  const { kept, authorities, storeEnd } = await openKept(options, opened, signal);
  const nowMs = () => clock.monotonicMs();
  const { limit: historyLimit, ms: historyMs } = options.history ?? usualHistory;
  const store = ObjectStore.restore(kept.restored, { historyLimit, historyMs, historyBytes, nowMs });
  const tokens = makeTokenDesk({ keys: authorities.tokenKeys, objects: store, clock });
  const signing = makeSigningDesk(authorities.authority);
  const judge = makeAuthorizer({ objects: store, grants: options.grants });
  const place = { url: '' };
  const kubelet = doorOf(options, authorities);
  const authorityPem = () => authorities.authorityPem;
  const rules = makeRules({ ...options, tokens, signing, judge, authorityPem });
  const catalogue = new Catalogue([...rules.catalogue.all, ...metricsEntries({ kubelet, clock })]);
  const api = opened.use(new LocalApi({ clock, random, logger, store, durability: kept, catalogue }));
  const authority = () => authorities.authorityCertificate;
  const table = new KindTable();
  const authenticator = makeAuthenticator({ authority, tokens, clock });
  const front = opened.use(
    new ApiFront({
      api: guarded(api, kept),
      catalogue,
      table,
      security: makeFrontSecurity({ authenticator, judge, log: logger }),
      published: publicPages({ catalogue, version: versionOf(options) }),
      streams: createStreams({ ...options, kubelet, objects: store }),
      checks: { store: () => kept.refusal()?.message },
      pages: {
        ...issuerPages({ tokens, keys: authorities.tokenKeys, server: () => place.url }),
        ...countPages(options),
      },
      clock,
      random,
      logger,
    }),
  );
  return { api, authorities, catalogue, front, kept, place, rules, store, storeEnd, table };
}

/** What outlives the process. */
async function openKept(options: LocalApiOptions, opened: AsyncDisposableStack, signal: AbortSignal) {
  const { directory, logger } = options;
  const path = join(directory, 'store', 'objects.db');
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => {});
  const storeEnd: ApiLoop = { name: 'store', run: (each) => abortable(ended.promise, each) };
  const kept = opened.use(await openStore({ ...options, path, onFailed: ended.reject }, signal));
  const files = realAuthorityFiles();
  const authorities = await openAuthorities({
    ...options,
    directory: join(directory, 'pki'),
    files,
    log: logger,
  });
  return { kept, authorities, storeEnd };
}

function doorOf({ kubeletAt }: LocalApiOptions, authorities: Authorities): KubeletDialer {
  return {
    locate: kubeletAt,
    credentials() {
      const { certificatePem: cert, keyPem: key } = authorities.pairOf('admin');
      return { cert, key, ca: authorities.authorityPem };
    },
  };
}

/** What is counted is for who may see it; nothing unless somebody counts. */
function countPages({ exposeMetrics }: LocalApiOptions) {
  if (exposeMetrics === undefined) return {};
  const headers = { 'Content-Type': metricsContentType };
  return { '/metrics': async () => ({ status: 200, headers, body: await exposeMetrics() }) };
}

function versionOf({ version }: LocalApiOptions) {
  return versionFacts({
    kubernetes: version.kubernetes,
    kubeling: version.own,
    node: process.version,
    platform: process.platform,
    arch: process.arch,
  });
}

/** Tells those who are to come where. */
async function publish(port: number, authorities: Authorities, options: LocalApiOptions) {
  const { listen, directory, adminKubeconfig: path } = options;
  const url = `https://${joinHostPort(isAnywhere(listen.host) ? '127.0.0.1' : listen.host, port)}`;
  const nodeKubeconfig = join(directory, 'pki', 'node.kubeconfig');
  await authorities.keepKubeconfig({ path, server: url, who: 'admin', holds: 'certificate' });
  await authorities.keepKubeconfig({ path: nodeKubeconfig, server: url, who: 'node', holds: 'file' });
  return { url, nodeKubeconfig };
}

function isAnywhere(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** Pods come to the address of the node, but never to its loopback. */
function ownService(host: string, addresses: readonly string[], port: number): OwnService {
  const isLoopback = (address: string) => address.startsWith('127.') || address === '::1';
  const address = isAnywhere(host) ? addresses.find((each) => !isLoopback(each)) : host;
  return address === undefined || isLoopback(address)
    ? { kind: 'unreachable', port }
    : { kind: 'at', address, port };
}

const reading: ReadonlySet<string> = new Set(['get', 'list', 'watch']);

/** While nothing can be kept nothing is taken: reading goes on. */
function guarded(api: LocalApi, kept: Pick<OpenedStore, 'refusal'>): FrontApi {
  return {
    watch: (call, signal) => api.watch(call, signal),
    async handle(call: ApiCall, signal) {
      const problem = reading.has(call.verb) || call.entry.kept === 'answered' ? undefined : kept.refusal();
      if (problem !== undefined) throw unavailable(problem.message);
      return await api.handle(call, signal);
    },
  };
}

function isReady(node: StoredObject | undefined): boolean {
  const { conditions = [] } = (node?.status ?? {}) as { readonly conditions?: readonly JsonObject[] };
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}

/** One that fails ends all of it: half an API is worse than none. */
async function runAll(loops: readonly ApiLoop[], logger: Logger, signal: AbortSignal): Promise<void> {
  await Promise.all(
    loops.map(async (loop) => {
      try {
        await loop.run(signal);
      } catch (error) {
        if (!signal.aborted) logger.error('A part of the API has ended', error, { name: loop.name });
        if (!signal.aborted) throw error;
      }
    }),
  );
}
