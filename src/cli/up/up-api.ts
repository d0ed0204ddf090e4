import { rm } from 'node:fs/promises';
import { hostname, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { describeError, KubelingError, type Logger, type MetricRegistry } from '../../lib/index.ts';
import { type OpenLocalApi, openLocalApi, parseGrant } from '../../local-api/index.ts';
import { hostManifestFiles } from '../../sources/index.ts';
import type { CommandContext } from '../command.ts';
import { type DataDirectory, readUpState } from '../data-directory/data-directory.ts';
import { kubernetesVersion, ownVersion } from '../version.ts';
import { type ListenAddress, parseListen } from './listen-address.ts';
import { ManifestObjects } from './manifest-objects.ts';

export interface UpApiOptions {
  readonly directory: DataDirectory;
  /** The address to listen on; a free port near the default port if undefined. */
  readonly listen: string | undefined;
  readonly metrics: MetricRegistry;
  /** Whether the objects of the previous run are kept or moved aside. */
  readonly before: 'kept' | 'set-aside';
  /** The roles granted to service accounts, such as `default/builder=edit`. */
  readonly grants: readonly string[];
  /** How long events are stored; one hour by default. */
  readonly eventTtlMs?: number | undefined;
  readonly logger: Logger;
}

/** The embedded API of a data directory. It serves requests until it is disposed. */
export interface UpApi extends ApiAccess, AsyncDisposable {
  /** The URL and the kubeconfig of the API, for users. */
  readonly endpoints: { readonly url: string; readonly kubeconfig: string };
  /** The path to which the objects of the previous run were moved; undefined if they were kept. */
  readonly movedAside: string | undefined;
  /** Runs the controllers of the API until aborted. */
  run(signal: AbortSignal): Promise<void>;
  /** Resolves once the node has joined and is ready. */
  nodeReady(signal: AbortSignal): Promise<void>;
}

const loopback = '127.0.0.1';

export async function openUpApi(options: UpApiOptions, context: CommandContext): Promise<UpApi> {
  const { directory, logger } = options;
  const { clock } = context;
  const nodeName = hostname().toLowerCase();
  const kubelet: { port?: number } = {};
  const api = await open(await chooseAddress(options), { ...options, nodeName, kubelet }, context);
  const counted = options.metrics.collect(() => api.metrics());
  // A new CA invalidates the kubelet's certificates: they are deleted, and the kubelet requests new
  // ones.
  if (api.authority === 'made') await rm(join(directory.rootDir, 'pki'), { recursive: true, force: true });
  const manifests = new ManifestObjects({
    directory: directory.manifests,
    files: hostManifestFiles(),
    keeper: api.manifestObjects,
    clock,
    logger,
  });
  // The objects in manifests are applied before any pod that uses them starts.
  await manifests.scanOnce(context.signal);
  return {
    nodeKubeconfig: api.nodeKubeconfig,
    clientCaFile: api.authorityFile,
    setKubeletPort: (port) => {
      kubelet.port = port;
    },
    endpoints: { url: api.url, kubeconfig: directory.kubeconfig },
    movedAside: api.aside,
    async run(inner) {
      await Promise.all([api.run(inner), manifests.run(inner)]);
    },
    nodeReady: (inner) => nodeReady(api, nodeName, inner),
    async [Symbol.asyncDispose]() {
      counted[Symbol.dispose]();
      await api[Symbol.asyncDispose]();
    },
  };
}

/**
 * Chooses the address of the API. A requested address is used or fails. Otherwise the port of the
 * previous run is preferred, because kubeconfigs and kubectl's cache refer to it, and any free port
 * is used if it is taken, so that two kubelings can run on one machine.
 */
async function chooseAddress({ directory, listen }: UpApiOptions): Promise<ListenAddress> {
  const requested = parseListen(listen);
  if (listen !== undefined) return requested;
  const last = URL.parse((await readUpState(directory))?.api?.url ?? '')?.port ?? '';
  return { ...requested, port: last === '' ? requested.port : Number(last) };
}

interface OpenOptions extends UpApiOptions {
  readonly nodeName: string;
  /** The kubelet's loopback port, once it listens. */
  readonly kubelet: { readonly port?: number };
}

async function open(
  address: ListenAddress,
  { directory, before, listen, logger, metrics, nodeName, kubelet, grants, eventTtlMs }: OpenOptions,
  { clock, random, signal }: CommandContext,
): Promise<OpenLocalApi> {
  const opening = openLocalApi(
    {
      directory: directory.api,
      adminKubeconfig: directory.kubeconfig,
      // Certificates and tokens are kept even if the objects are moved aside, so that issued
      // kubeconfigs remain valid.
      existingStore: before,
      // Another port may be used only if no address was requested.
      listen: { ...address, ifPortInUse: listen === undefined ? 'another-port' : 'refuse' },
      nodeName,
      hostnames: () => [...new Set([nodeName, hostname()])],
      addresses: ownAddresses,
      kubeletAt: ({ metadata }) =>
        metadata.name === nodeName && kubelet.port !== undefined
          ? { host: loopback, port: kubelet.port, identity: nodeName }
          : undefined,
      grants: grants.map(parseGrant),
      eventTtlMs: eventTtlMs,
      version: { kubernetes: kubernetesVersion, own: await ownVersion() },
      exposeMetrics: () => metrics.expose(signal),
      clock,
      random,
      logger,
    },
    signal,
  );
  return await opening.catch((error) => {
    throw startError(error, address);
  });
}

/** Adds advice for the user to the error of a failed start. */
function startError(error: unknown, { host, port }: ListenAddress): unknown {
  if (!(error instanceof KubelingError)) return error;
  const advice = adviceFor(error.code, `${host}:${port}`);
  if (advice === undefined) return error;
  return new KubelingError(error.code, `${describeError(error)}; ${advice}`, { cause: error });
}

function adviceFor(code: KubelingError['code'], address: string): string | undefined {
  switch (code) {
    case 'SERVER_LISTEN':
      return `another kubeling or another program uses ${address}: choose another port with --listen`;
    case 'STORE_CORRUPT':
    case 'STORE_NEWER':
      return 'pods keep running; restore a valid file, or start with an empty API with --reset';
    default:
      return undefined;
  }
}

/** Returns all current names and addresses of this machine. */
function ownAddresses(): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ address }) => !address.startsWith('fe80'))
    .map(({ address }) => address);
}

function nodeReady(api: OpenLocalApi, nodeName: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = () => {
      watching[Symbol.dispose]();
      signal.removeEventListener('abort', stop);
    };
    const stop = () => {
      done();
      reject(signal.reason);
    };
    const check = () => {
      if (!api.isNodeReady(nodeName)) return;
      done();
      resolve();
    };
    const watching = api.onChange(check);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    else check();
  });
}

/**
 * What the kubelet needs to join the API in the same process, in the same way as it joins any other
 * API server.
 */
export interface ApiAccess {
  readonly nodeKubeconfig: string;
  /** The CA bundle with which the kubelet's server verifies clients. */
  readonly clientCaFile: string;
  /** Reports the kubelet's port to the API. */
  setKubeletPort(port: number): void;
}
