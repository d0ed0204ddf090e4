import {
  type ApiClient,
  type ApiConnectionOptions,
  createApiClient,
  hostApiFiles,
  type KubeContext,
  loadKubeconfig,
  mainLimits,
  parseKubeconfig,
  rateLimitOf,
} from '../../api/index.ts';
import {
  bootstrapClientCertificate,
  type CertificateManager,
  clientCertificateMetrics,
  exposeTimeToLive,
  guardCredentials,
  kubeconfigCertificate,
  openClientCertificate,
  prepareClientAccess,
  realCertificateFiles,
  storedCertificate,
  withClientCertificate,
} from '../../certificates/index.ts';
import type { LoadedConfig } from '../../config/index.ts';
import { KubelingError, type MetricRegistry, type Random } from '../../lib/index.ts';

export interface ClientAccessOptions extends Omit<ApiConnectionOptions, 'kubeconfig'> {
  readonly loaded: Pick<LoadedConfig, 'config' | 'flags'>;
  readonly nodeName: string;
  readonly random: Random;
  readonly metrics: MetricRegistry;
}

/** The credentials of this node for the API server. */
export interface ClientAccess extends Disposable {
  /** Returns the credentials for new requests. */
  readonly kubeconfig: () => Promise<KubeContext>;
  /**
   * The rotated certificate of the node; undefined if the kubeconfig contains the complete
   * credentials.
   */
  readonly stored: StoredCertificate | undefined;
}

/** The rotated client certificate of the node. */
export interface StoredCertificate {
  readonly certificate: CertificateManager;
  /**
   * Makes the certificate manager request certificates with this client, once the node has a
   * certificate.
   */
  use(client: ApiClient): void;
  /** Exits with CERTIFICATE_LOST when the node has permanently lost its client certificate. */
  guard(signal: AbortSignal): Promise<never>;
}

/**
 * Opens the node's credentials. Waits for the API server only if a certificate must be
 * bootstrapped.
 */
export async function openClientAccess(
  options: ClientAccessOptions,
  signal: AbortSignal,
): Promise<ClientAccess> {
  const { config, flags } = options.loaded;
  if (config.rotateCertificates) return await rotatedAccess(options);
  const { bootstrapKubeconfig: bootstrapPath } = flags;
  if (bootstrapPath !== '') await bootstrapOnce(options, signal);
  return {
    kubeconfig: () => unrotated(options),
    stored: undefined,
    [Symbol.dispose]() {},
  };
}

/**
 * For a node that does not rotate its certificate: returns the credentials of the kubeconfig, or
 * with the stored certificate of a previous run if only that certificate is valid.
 */
async function unrotated({
  clock,
  logger: log,
  nodeName,
  loaded,
}: ClientAccessOptions): Promise<KubeContext> {
  const { kubeconfig, certDir: certDirectory } = loaded.flags;
  const context = await load(kubeconfig);
  const deps = { files: realCertificateFiles(), clock, log };
  return withClientCertificate(context, await storedCertificate(context, { certDirectory, nodeName }, deps));
}

async function rotatedAccess(options: ClientAccessOptions): Promise<ClientAccess> {
  const { clock, random, metrics, nodeName, loaded } = options;
  const settings = settingsOf(options);
  const certificateDeps = { files: realCertificateFiles(), clock, random, log: options.logger };
  const { requestPath, kubeconfigPath } = await prepareClientAccess(settings, {
    ...certificateDeps,
    parseKubeconfig,
  });
  const asking = clientOf(options, requestPath);
  let own: ApiClient | undefined;
  const certificate = await openClientCertificate(
    {
      nodeName,
      certDirectory: loaded.flags.certDir,
      kubeconfig: kubeconfigCertificate(await load(kubeconfigPath)),
      api: (current) => (current === undefined ? asking : (own ?? asking)),
    },
    { ...certificateDeps, observer: clientCertificateMetrics(metrics) },
  );
  const exposed = exposeTimeToLive(metrics, 'client', { clock, held: () => certificate.held() });
  return {
    kubeconfig: async () => withClientCertificate(await load(kubeconfigPath), certificate.current()),
    stored: {
      certificate,
      use(client) {
        own = client;
      },
      guard: (signal) => guardCredentials({ certificate, clock, log: options.logger }, signal),
    },
    [Symbol.dispose]() {
      exposed[Symbol.dispose]();
      asking.close();
    },
  };
}

async function bootstrapOnce(options: ClientAccessOptions, signal: AbortSignal): Promise<void> {
  const { clock, random, nodeName, logger, loaded } = options;
  const files = realCertificateFiles();
  let asking: ReturnType<typeof clientOf> | undefined;
  const connect = async () => {
    const client = clientOf(options, loaded.flags.bootstrapKubeconfig);
    asking = client;
    const isHealthy = async (inner: AbortSignal) => {
      const health = await client.text('/healthz', inner);
      if (health !== 'ok')
        throw new KubelingError('API_UNAVAILABLE', `The API server rejected the request: ${health}`);
    };
    return { api: client, isHealthy };
  };
  try {
    const deps = { files, clock, random, log: logger, parseKubeconfig, connect };
    await bootstrapClientCertificate({ ...settingsOf(options), nodeName }, deps, signal);
  } finally {
    asking?.close();
  }
}

function settingsOf({ loaded: { flags } }: ClientAccessOptions) {
  return {
    kubeconfigPath: flags.kubeconfig,
    bootstrapPath: flags.bootstrapKubeconfig,
    certDirectory: flags.certDir,
  };
}

function load(path: string): Promise<KubeContext> {
  return loadKubeconfig({ path, files: hostApiFiles });
}

function clientOf(options: ClientAccessOptions, path: string) {
  const { kubeAPIQPS: qps, kubeAPIBurst: burst } = options.loaded.config;
  const limits = { rate: rateLimitOf(qps, burst), ...mainLimits };
  return createApiClient({ ...options, kubeconfig: () => load(path), limits });
}
