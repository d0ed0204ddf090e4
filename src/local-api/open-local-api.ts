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
  Catalogue,
  type Controller,
  heapStorageLimits,
  LocalApi,
  type ObjectReader,
  type StorageLimits,
  type StoredObject,
  unavailable,
  VersionedStore,
} from './api/index.ts';
import { type ApiBackend, ApiServer } from './http/index.ts';
import type { ServerEndpoint } from './kinds/index.ts';
import { createManifestApplier, type ManifestApplier } from './manifest-applier.ts';
import { createDocumentServer, createVersionInfo } from './output/index.ts';
import { type OpenedStore, openStore, storeMetrics } from './persistence/index.ts';
import {
  createAuthenticator,
  createAuthorizer,
  createCertificateSigner,
  createRequestSecurity,
  createTokenIssuer,
  diskCredentialFiles,
  followCertificates,
  type Grant,
  issuerDocuments,
  openServerCredentials,
  type ServerCredentials,
  tlsOptions,
} from './security/index.ts';
import { createStrategies, type Strategies } from './strategies.ts';
import { createStreams, type KubeletDialer, type KubeletEndpoint, metricsEntries } from './streams/index.ts';

export interface LocalApiOptions {
  /** The state directory of the API server. */
  readonly directory: string;
  readonly adminKubeconfig: string;
  /**
   * Whether an existing store is loaded (default) or set aside, which renames it and creates a new
   * store.
   */
  readonly existingStore?: 'kept' | 'set-aside' | undefined;
  readonly listen: {
    readonly host: string;
    readonly port: number;
    /** Whether the start fails (default) or uses another port if the port is in use. */
    readonly ifPortInUse?: 'refuse' | 'another-port';
  };
  /** The name of the only node. */
  readonly nodeName: string;
  /**
   * Returns further DNS names for the server certificate besides loopback; called again at each
   * check of the certificates.
   */
  readonly hostnames: () => readonly string[];
  readonly addresses: () => readonly string[];
  /** The address of a node's kubelet, if it differs from the one in the node status. */
  readonly kubeletAt: (node: StoredObject) => KubeletEndpoint | undefined;
  /** The roles of service accounts. Without roles they can only review their own access. */
  readonly grants?: readonly Grant[] | undefined;
  /** The maximum lifetime of certificates that the server signs for clients; a year by default. */
  readonly maxCertificateLifetimeMs?: number | undefined;
  readonly version: { readonly kubernetes: string; readonly own: string };
  /** Returns the metrics of the process for `/metrics`; without it the path does not exist. */
  readonly exposeMetrics?: (() => Promise<string>) | undefined;
  /** How long events are retained after they last occurred; an hour by default. */
  readonly eventTtlMs?: number | undefined;
  /** The maximum age and number of changes that are retained for watches, per resource. */
  readonly history?: { readonly limit: number; readonly ms: number } | undefined;
  /**
   * The limits of the memory for stored objects; by default derived from the limit of the
   * JavaScript heap.
   */
  readonly storageLimits?: StorageLimits | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** A running API server. */
export interface OpenLocalApi extends AsyncDisposable {
  readonly url: string;
  /** The path of the kubeconfig for the node. */
  readonly nodeKubeconfig: string;
  /** The path of the CA certificate. */
  readonly authorityFile: string;
  /**
   * Whether the CA was loaded or created. After it was created, certificates of the previous CA are
   * invalid.
   */
  readonly authority: 'kept' | 'made';
  /** The path of the previous store, if it was set aside at the start. */
  readonly aside: string | undefined;
  readonly objects: ObjectReader;
  /** Calls the listener after each change of a stored object. */
  onChange(listener: () => void): Disposable;
  isNodeReady(name: string): boolean;
  readonly manifestObjects: ManifestApplier;
  /** The metrics of the store. */
  metrics(): readonly SampledFamily[];
  /** Runs the controllers until aborted. Rejects when the store has failed permanently. */
  run(signal: AbortSignal): Promise<void>;
}

const defaultHistory = { limit: 50_000, ms: 5 * 60_000 };
/**
 * The maximum size of the history of each resource, so that a busy client cannot exhaust memory.
 */
const historyBytes = 32 * 2 ** 20;

/**
 * Opens the API server and starts to listen. Rejects with SERVER_LISTEN if the address is in use,
 * and with STORE_* if the store cannot be opened.
 */
export async function openLocalApi(options: LocalApiOptions, signal: AbortSignal): Promise<OpenLocalApi> {
  const { directory, logger, listen } = options;
  await using opened = new AsyncDisposableStack();
  const parts = await openParts(options, opened, signal);
  const { api, credentials, catalogue, server, fileStore, place, strategies, store } = parts;
  const port = await listenAt(server, listen, tlsOptions(credentials));
  // The bootstrap objects are created before the server sends its first response.
  const loops = strategies.start(
    api.context,
    catalogue,
    serverEndpoint(listen.host, options.addresses(), port),
  );
  const { url, nodeKubeconfig } = await publish(port, credentials, options);
  place.url = url;
  opened.use(followCertificates(server, credentials));
  const certificates: Controller = { name: 'certificates', run: (each) => credentials.run(each) };
  const moved = opened.move();
  return {
    url,
    nodeKubeconfig,
    authorityFile: join(directory, 'pki', 'ca.crt'),
    authority: credentials.origin,
    aside: fileStore.aside,
    objects: store,
    onChange: (listener) => store.subscribe(() => listener()),
    isNodeReady: (name) => isReady(store.get(apiResources.nodes, undefined, name)),
    manifestObjects: createManifestApplier(api.context, catalogue, parts.table),
    metrics: () => storeMetrics(fileStore.stats()),
    run: (inner) => runAll([...loops, certificates, parts.storeEnd], logger, inner),
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  };
}

/**
 * If the port is in use, only `listen` is called again, with port 0: the store, which may have been
 * set aside already, stays open.
 */
async function listenAt(
  server: Pick<ApiServer, 'listen'>,
  { host, port, ifPortInUse = 'refuse' }: LocalApiOptions['listen'],
  tls: ReturnType<typeof tlsOptions>,
): Promise<number> {
  try {
    return (await server.listen({ host, port, tls })).port;
  } catch (error) {
    const isTaken = error instanceof KubelingError && error.code === 'SERVER_LISTEN';
    if (!isTaken || ifPortInUse === 'refuse' || port === 0) throw error;
    return (await server.listen({ host, port: 0, tls })).port;
  }
}

interface Parts {
  readonly api: LocalApi;
  readonly credentials: ServerCredentials;
  readonly catalogue: Catalogue;
  readonly server: ApiServer;
  readonly fileStore: OpenedStore;
  /** A promise that rejects when the store has failed permanently. */
  readonly storeEnd: Controller;
  /** The URL of the server, set once it listens. */
  readonly place: { url: string };
  readonly strategies: Strategies;
  readonly store: VersionedStore;
  readonly table: KindTable;
}

/** Creates and connects all parts of the API server; disposables are added to `opened`. */
async function openParts(
  options: LocalApiOptions,
  opened: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Parts> {
  const { clock, random, logger } = options;
  const { kept, authorities, storeEnd } = await openState(options, opened, signal);
  const store = restoreObjects(kept, options);
  const access = createAccessControl(options, authorities, store);
  const place = { url: '' };
  const kubelet = kubeletDialer(options, authorities);
  const rules = createStrategies({
    ...options,
    tokens: access.tokens,
    signer: createCertificateSigner(authorities.authority),
    authorizer: access.authorizer,
    authorityPem: () => authorities.authorityPem,
  });
  const catalogue = new Catalogue([...rules.catalogue.all, ...metricsEntries({ kubelet, clock })]);
  const storageLimits = options.storageLimits ?? heapStorageLimits();
  const api = opened.use(
    new LocalApi({ clock, random, logger, store, durability: kept, catalogue, storageLimits }),
  );
  const parts = {
    api,
    credentials: authorities,
    catalogue,
    fileStore: kept,
    place,
    strategies: rules,
    store,
    storeEnd,
    table: new KindTable(),
  };
  return { ...parts, server: opened.use(createServer(options, parts, access, kubelet)) };
}

function restoreObjects(kept: OpenedStore, { clock, history = defaultHistory }: LocalApiOptions) {
  const { limit: historyLimit, ms: historyMs } = history;
  const nowMs = () => clock.monotonicMs();
  return VersionedStore.restore(kept.restored, { historyLimit, historyMs, historyBytes, nowMs });
}

interface AccessControl {
  readonly tokens: ReturnType<typeof createTokenIssuer>;
  readonly authenticator: ReturnType<typeof createAuthenticator>;
  readonly authorizer: ReturnType<typeof createAuthorizer>;
}

function createAccessControl(
  { clock, grants }: LocalApiOptions,
  authorities: ServerCredentials,
  objects: ObjectReader,
): AccessControl {
  const tokens = createTokenIssuer({ keys: authorities.tokenKeys, objects, clock });
  const authority = () => authorities.authorityCertificate;
  return {
    tokens,
    authenticator: createAuthenticator({ authority, tokens, clock }),
    authorizer: createAuthorizer({ objects, grants }),
  };
}

/** Creates the HTTP server of the API, which does not listen yet. */
function createServer(
  options: LocalApiOptions,
  { api, catalogue, credentials, fileStore, place, store, table }: Omit<Parts, 'server'>,
  { tokens, authenticator, authorizer }: AccessControl,
  kubelet: KubeletDialer,
): ApiServer {
  const { clock, random, logger } = options;
  return new ApiServer({
    api: withWriteCheck(api, fileStore),
    catalogue,
    table,
    security: createRequestSecurity({ authenticator, authorizer, log: logger }),
    documents: createDocumentServer({ catalogue, version: versionOf(options) }),
    streams: createStreams({ ...options, kubelet, objects: store }),
    checks: { store: () => fileStore.writeProblem()?.message },
    extraDocuments: {
      ...issuerDocuments({ tokens, keys: credentials.tokenKeys, server: () => place.url }),
      ...metricsDocument(options),
    },
    clock,
    random,
    logger,
  });
}

/** Opens the persistent state: the store and the credentials. */
async function openState(options: LocalApiOptions, opened: AsyncDisposableStack, signal: AbortSignal) {
  const { directory, logger } = options;
  const path = join(directory, 'store', 'objects.db');
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => {});
  const storeEnd: Controller = { name: 'store', run: (each) => abortable(ended.promise, each) };
  const kept = opened.use(await openStore({ ...options, path, onFailed: ended.reject }, signal));
  const files = diskCredentialFiles();
  const authorities = await openServerCredentials({
    ...options,
    directory: join(directory, 'pki'),
    files,
    log: logger,
  });
  return { kept, authorities, storeEnd };
}

function kubeletDialer({ kubeletAt }: LocalApiOptions, authorities: ServerCredentials): KubeletDialer {
  return {
    locate: kubeletAt,
    credentials() {
      const { certificatePem: cert, keyPem: key } = authorities.pairOf('admin');
      return { cert, key, ca: authorities.authorityPem };
    },
  };
}

/** Metrics need authorization, unlike the documents of discovery and version. */
function metricsDocument({ exposeMetrics }: LocalApiOptions) {
  if (exposeMetrics === undefined) return {};
  const headers = { 'Content-Type': metricsContentType };
  return { '/metrics': async () => ({ status: 200, headers, body: await exposeMetrics() }) };
}

function versionOf({ version }: LocalApiOptions) {
  return createVersionInfo({
    kubernetes: version.kubernetes,
    kubeling: version.own,
    node: process.version,
    platform: process.platform,
    arch: process.arch,
  });
}

/** Writes the kubeconfigs of the administrator and the node. */
async function publish(port: number, authorities: ServerCredentials, options: LocalApiOptions) {
  const { listen, directory, adminKubeconfig: path } = options;
  const url = `https://${joinHostPort(isWildcard(listen.host) ? '127.0.0.1' : listen.host, port)}`;
  const nodeKubeconfig = join(directory, 'pki', 'node.kubeconfig');
  await authorities.maintainKubeconfig({ path, server: url, user: 'admin', credentials: 'certificate' });
  await authorities.maintainKubeconfig({
    path: nodeKubeconfig,
    server: url,
    user: 'node',
    credentials: 'file',
  });
  return { url, nodeKubeconfig };
}

function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** Pods can reach the address of the node, but not its loopback address. */
function serverEndpoint(host: string, addresses: readonly string[], port: number): ServerEndpoint {
  const isLoopback = (address: string) => address.startsWith('127.') || address === '::1';
  const address = isWildcard(host) ? addresses.find((each) => !isLoopback(each)) : host;
  return address === undefined || isLoopback(address)
    ? { kind: 'unreachable', port }
    : { kind: 'at', address, port };
}

const reading: ReadonlySet<string> = new Set(['get', 'list', 'watch']);

/** Rejects writes while the store cannot persist them; reads are still allowed. */
function withWriteCheck(api: LocalApi, kept: Pick<OpenedStore, 'writeProblem'>): ApiBackend {
  return {
    watch: (call, signal) => api.watch(call, signal),
    async handle(call: ApiCall, signal) {
      const problem =
        reading.has(call.verb) || call.entry.storage === 'virtual' ? undefined : kept.writeProblem();
      if (problem !== undefined) throw unavailable(problem.message);
      return await api.handle(call, signal);
    },
  };
}

function isReady(node: StoredObject | undefined): boolean {
  const { conditions = [] } = (node?.status ?? {}) as { readonly conditions?: readonly JsonObject[] };
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}

/** The API server stops when one of its background tasks fails. */
async function runAll(loops: readonly Controller[], logger: Logger, signal: AbortSignal): Promise<void> {
  await Promise.all(
    loops.map(async (loop) => {
      try {
        await loop.run(signal);
      } catch (error) {
        if (!signal.aborted) logger.error('Part of the API server failed', error, { name: loop.name });
        if (!signal.aborted) throw error;
      }
    }),
  );
}
