import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import type { MetricRegistry } from '../../../lib/index.ts';
import {
  type Clock,
  describeError,
  KubelingError,
  type Logger,
  LruMap,
  SingleFlight,
} from '../../../lib/index.ts';
import type { Pod } from '../../../pods/index.ts';
import { matchesRegistry } from '../image-name.ts';
import type { DockerConfig } from './docker-config.ts';
import { decodeResponse, encodeRequest, type PluginResponse, type RunPlugin } from './exec-plugin.ts';
import type { CredentialSource } from './keyring.ts';

/** One credential provider plugin of the CredentialProviderConfig. */
export interface PluginSpec {
  readonly name: string;
  readonly matchImages: readonly string[];
  readonly defaultCacheDurationMs: number;
  readonly apiVersion: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly tokenAttributes:
    | {
        readonly serviceAccountTokenAudience: string;
        readonly cacheType: string;
        readonly requireServiceAccount: boolean;
        readonly requiredServiceAccountAnnotationKeys: readonly string[];
        readonly optionalServiceAccountAnnotationKeys: readonly string[];
      }
    | undefined;
}

export interface PluginObserver {
  ran(plugin: string, ms: number, outcome: 'worked' | 'failed'): void;
}

export interface PluginProviderDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly binDir: string;
  readonly run: RunPlugin;
  readonly serviceAccounts: ServiceAccounts;
  readonly observer?: PluginObserver | undefined;
}

export interface PluginLogins {
  readonly source: CredentialSource;
  readonly logins: DockerConfig;
}

/** The service account in a plugin request; all fields are empty for a request without one. */
interface Account {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly token: string;
  readonly annotations: Readonly<Record<string, string>>;
}

interface CachedLogins {
  readonly logins: DockerConfig;
  readonly untilMs: number;
}

const maxCachedResponses = 1_000;
const noAccount: Account = { uid: '', name: '', namespace: '', token: '', annotations: {} };

/** Requests credentials from one credential provider plugin and caches its responses. */
export class PluginProvider {
  readonly #spec: PluginSpec;
  readonly #deps: PluginProviderDeps;
  readonly #cache = new LruMap<string, CachedLogins>({ capacity: maxCachedResponses });
  readonly #flights = new SingleFlight<string, PluginResponse>();

  constructor(spec: PluginSpec, deps: PluginProviderDeps) {
    this.#spec = spec;
    this.#deps = deps;
  }

  /**
   * Returns the logins of the plugin for the image; undefined when the plugin does not match the
   * image or fails.
   */
  async provide(pod: Pod, repository: string, signal: AbortSignal): Promise<PluginLogins | undefined> {
    if (!this.#spec.matchImages.some((pattern) => matchesRegistry(pattern, repository))) return undefined;
    try {
      const account = await this.#account(pod, signal);
      if (account === undefined) return undefined;
      const { uid, namespace, name } = account;
      const source: CredentialSource =
        name === '' ? { kind: 'node' } : { kind: 'service-account', uid, namespace, name };
      return { source, logins: await this.#logins(repository, account, signal) };
    } catch (error) {
      signal.throwIfAborted();
      this.#deps.logger.error('Failed to get credentials from plugin', undefined, {
        plugin: this.#spec.name,
        image: repository,
        because: describeError(error),
      });
      return undefined;
    }
  }

  /**
   * Returns the service account for the plugin request; undefined when the plugin does not apply to
   * the pod.
   */
  async #account(pod: Pod, signal: AbortSignal): Promise<Account | undefined> {
    const attributes = this.#spec.tokenAttributes;
    if (attributes === undefined) return noAccount;
    const name = pod.spec.serviceAccountName ?? '';
    if (name === '') return attributes.requireServiceAccount ? undefined : noAccount;
    const { serviceAccounts } = this.#deps;
    const { namespace } = pod.metadata;
    const { uid, annotations: all } = await serviceAccounts.get(namespace, name, signal);
    const required = attributes.requiredServiceAccountAnnotationKeys;
    if (required.some((key) => !Object.hasOwn(all, key))) return undefined;
    const keys = [...required, ...attributes.optionalServiceAccountAnnotationKeys];
    const audience = attributes.serviceAccountTokenAudience;
    const request = { pod, serviceAccount: name, serviceAccountUid: uid, audience };
    const annotations = Object.fromEntries(
      keys.toSorted().flatMap((key) => (Object.hasOwn(all, key) ? [[key, all[key] ?? '']] : [])),
    );
    return { uid, name, namespace, annotations, token: await serviceAccounts.token(request, signal) };
  }

  async #logins(repository: string, account: Account, signal: AbortSignal): Promise<DockerConfig> {
    const owner = this.#ownerKey(account);
    const cached = this.#cached(repository, owner);
    if (cached !== undefined) return cached;
    const key = JSON.stringify([repository, hashOf(account.token), account.annotations, account.name]);
    const answer = await this.#flights.run(key, (inner) => this.#request(repository, account, inner), signal);
    const keepMs = answer.cacheMs ?? this.#spec.defaultCacheDurationMs;
    if (keepMs > 0) {
      const untilMs = this.#deps.clock.monotonicMs() + keepMs;
      this.#cache.set(cacheKey(answer.cacheKeyType, repository, owner), { logins: answer.logins, untilMs });
    }
    return answer.logins;
  }

  #cached(repository: string, owner: string): DockerConfig | undefined {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const type of ['Image', 'Registry', 'Global'] as const) {
      const key = cacheKey(type, repository, owner);
      const found = this.#cache.get(key);
      if (found !== undefined && nowMs <= found.untilMs) return found.logins;
      if (found !== undefined) this.#cache.delete(key);
    }
    return undefined;
  }

  /**
   * The service account is part of the cache key, so that credentials for one account are never
   * used for another.
   */
  #ownerKey({ namespace, name, uid, annotations, token }: Account): string {
    if (name === '') return '';
    const perToken = this.#spec.tokenAttributes?.cacheType === 'Token' ? hashOf(token) : '';
    return JSON.stringify([namespace, name, uid, annotations, perToken]);
  }

  async #request(
    image: string,
    { token, annotations }: Account,
    signal: AbortSignal,
  ): Promise<PluginResponse> {
    const { clock, observer } = this.#deps;
    const startMs = clock.monotonicMs();
    let outcome: 'worked' | 'failed' = 'failed';
    try {
      const answer = decodeResponse(
        await this.#run(image, token, annotations, signal),
        this.#spec.apiVersion,
      );
      this.#rejectEchoedToken(answer, token);
      outcome = 'worked';
      return answer;
    } finally {
      observer?.ran(this.#spec.name, clock.monotonicMs() - startMs, outcome);
    }
  }

  async #run(
    image: string,
    token: string,
    annotations: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<string> {
    const { name, args, env, apiVersion } = this.#spec;
    const command = {
      file: posix.join(this.#deps.binDir, name),
      args,
      env: Object.fromEntries(env.map((each) => [each.name, each.value])),
      input: encodeRequest({ apiVersion, image, token, annotations }),
    };
    const { exitCode, stdout, stderr } = await this.#deps.run(command, signal);
    if (exitCode === 0) return stdout;
    const ended = exitCode === undefined ? 'it was killed' : `it exited with ${exitCode}`;
    throw new KubelingError(
      'IMAGE_CREDENTIALS',
      `Cannot get credentials from the plugin ${name} as ${ended}${stderrTail(stderr)}`,
    );
  }

  /**
   * The cache type ServiceAccount would reuse the token, which is bound to one pod, for other pods of the
   * service account.
   */
  #rejectEchoedToken({ logins }: PluginResponse, token: string): void {
    if (token === '' || this.#spec.tokenAttributes?.cacheType === 'Token') return;
    if (![...logins.values()].some(({ password }) => password === token)) return;
    throw new KubelingError(
      'IMAGE_CREDENTIALS',
      'Cannot use the response of the credential plugin as it returns the service account token as password, which requires the cacheType Token',
    );
  }
}

const longestWords = 300;

function stderrTail(stderr: string): string {
  const text = stderr.trim().slice(-longestWords);
  return text === '' ? '' : `: ${text}`;
}

function cacheKey(type: 'Image' | 'Registry' | 'Global', repository: string, owner: string): string {
  const [registry = ''] = repository.split('/');
  const base = { Image: repository, Registry: registry, Global: '<global>' }[type];
  return JSON.stringify([base, owner]);
}

function hashOf(text: string): string {
  return text === '' ? '' : createHash('sha256').update(text).digest('hex');
}

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Registers the plugin metrics. `fingerprint` is the hash of the plugins' configuration. */
export function pluginMetrics(registry: MetricRegistry, fingerprint: string): PluginObserver {
  const labels = ['plugin_name'] as const;
  const errors = registry.counter({
    name: 'kubelet_credential_provider_plugin_errors_total',
    help: 'Failed runs of a credential provider plugin',
    labels,
  });
  const durations = registry.histogram({
    name: 'kubelet_credential_provider_plugin_duration',
    help: 'Duration of credential provider plugin runs in seconds',
    labels,
    buckets,
  });
  registry
    .gauge({
      name: 'kubelet_credential_provider_config_info',
      help: 'Fingerprint of the credential provider configuration; always 1.',
      labels: ['hash'],
    })
    .with({ hash: fingerprint })
    .set(1);
  return {
    ran(plugin, ms, outcome) {
      durations.with({ plugin_name: plugin }).observe(ms / 1_000);
      if (outcome === 'failed') errors.with({ plugin_name: plugin }).inc();
    },
  };
}

export interface ServiceAccountInfo {
  readonly uid: string;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface PodTokenRequest {
  readonly pod: Pod;
  readonly serviceAccount: string;
  readonly serviceAccountUid: string;
  readonly audience: string;
}

/**
 * Reads the service accounts of pods and requests tokens bound to a pod. Both methods may reject.
 */
export interface ServiceAccounts {
  get(namespace: string, name: string, signal: AbortSignal): Promise<ServiceAccountInfo>;
  token(request: PodTokenRequest, signal: AbortSignal): Promise<string>;
}

/** Rejects all requests; used on nodes without an API server. */
export const noServiceAccounts: ServiceAccounts = {
  async get(namespace, name) {
    throw new KubelingError(
      'IMAGE_CREDENTIALS',
      `Cannot read the service account ${namespace}/${name} as this node has no API server`,
    );
  },
  async token({ pod, serviceAccount }) {
    throw new KubelingError(
      'IMAGE_CREDENTIALS',
      `Cannot get a token of ${pod.metadata.namespace}/${serviceAccount} as this node has no API server`,
    );
  },
};
