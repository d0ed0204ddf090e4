import { createHash } from 'node:crypto';
import type { Secret } from '../../../kinds/index.ts';
import { KubelingError, YieldingCounter } from '../../../lib/index.ts';
import type { Pod, PodJournal } from '../../../pods/index.ts';
import { matchesRegistry, registryKey, repositoryOf } from '../image-name.ts';
import type { DockerConfig, RegistryLogin } from './docker-config.ts';
import { parseDockerCfg, parseDockerConfigJson } from './docker-config.ts';
import type { CredentialProvider, PullCredential } from './keyring.ts';
import { dockerHub, Keyring } from './keyring.ts';
import type { PluginProvider } from './plugin-provider.ts';

export interface PodCredentialsDeps {
  readonly journal: Pick<PodJournal, 'event'>;
  readonly secrets: PullSecrets;
  /** Returns the node's registry logins. */
  readonly nodeLogins: () => Promise<DockerConfig>;
  readonly plugins: readonly PluginProvider[];
}

/**
 * The maximum number of pull secrets of a pod; further names are ignored, because each secret is
 * read and searched at every pull.
 */
const maxPullSecrets = 64;
/**
 * The maximum number of registries in a pull secret, because each login is decoded and its pattern
 * compared with the image.
 */
const maxRegistriesPerSecret = 4_096;
/**
 * How many characters of registry patterns are compared with an image before yielding to the event
 * loop.
 */
const charactersPerTurn = 65_536;

/**
 * Collects a pod's pull credentials: its imagePullSecrets, the node's docker config, then
 * credential plugins.
 */
export class PodCredentials implements CredentialProvider {
  readonly #deps: PodCredentialsDeps;
  /**
   * The parsed logins by Secret object: an object never changes, so each version is parsed and
   * hashed once.
   */
  readonly #logins = new WeakMap<Secret, DockerConfig>();
  readonly #digests = new WeakMap<Secret, string>();

  constructor(deps: PodCredentialsDeps) {
    this.#deps = deps;
  }

  async credentialsFor(pod: Pod, image: string, signal: AbortSignal): Promise<readonly PullCredential[]> {
    const repository = repositoryOf(image);
    const own = await this.#ownKeyring(pod, repository, signal);
    const node = new Keyring();
    node.add({ kind: 'node' }, await this.#deps.nodeLogins());
    return [
      ...own.lookup(repository),
      ...node.lookup(repository),
      ...(await this.#fromPlugins(pod, repository, signal)),
    ];
  }

  async fingerprint(pod: Pod, signal: AbortSignal): Promise<string> {
    if (secretNames(pod).length === 0) return '';
    // Records no event about missing secrets, because the image pull before this check has already
    // recorded one.
    const secrets = await readPullSecrets(pod, this.#deps.secrets, { event() {} }, signal);
    const turns = new YieldingCounter(1);
    const hash = createHash('sha256');
    for (const secret of secrets) {
      const digest = this.#digests.get(secret) ?? fingerprintOf(secret);
      if (!this.#digests.has(secret) && turns.count()) await turns.yield();
      this.#digests.set(secret, digest);
      hash.update(digest);
    }
    return hash.digest('hex');
  }

  /**
   * Returns a keyring with only those logins of the pod's secrets that the repository may need,
   * because a secret may contain thousands of others.
   */
  async #ownKeyring(pod: Pod, repository: string, signal: AbortSignal): Promise<Keyring> {
    const { secrets, journal } = this.#deps;
    const keyring = new Keyring();
    for (const secret of await readPullSecrets(pod, secrets, journal, signal)) {
      const logins = this.#logins.get(secret) ?? loginsOf(secret) ?? new Map<string, RegistryLogin>();
      this.#logins.set(secret, logins);
      const { uid = '', namespace = pod.metadata.namespace, name = '' } = secret.metadata ?? {};
      keyring.add({ kind: 'secret', uid, namespace, name }, await loginsFor(repository, logins));
      signal.throwIfAborted();
    }
    return keyring;
  }

  /**
   * Combines the logins of all plugins in one keyring, so that the login of the most specific
   * registry is tried first.
   */
  async #fromPlugins(pod: Pod, repository: string, signal: AbortSignal): Promise<readonly PullCredential[]> {
    const keyring = new Keyring();
    for (const plugin of this.#deps.plugins) {
      const found = await plugin.provide(pod, repository, signal);
      if (found !== undefined) keyring.add(found.source, found.logins);
    }
    return keyring.lookup(repository);
  }
}

/** Reads image pull secrets; rejects when a secret is missing or cannot be read. */
export interface PullSecrets {
  get(namespace: string, name: string, signal: AbortSignal): Promise<Secret>;
}

/** Rejects all requests; used on nodes without an API server. */
export const noPullSecrets: PullSecrets = {
  async get(namespace, name) {
    throw new KubelingError(
      'IMAGE_CREDENTIALS',
      `Cannot read the secret ${namespace}/${name} as this node has no API server`,
    );
  },
};

/**
 * Reads the pull secrets of the pod. Secrets that cannot be read are skipped and named in an event.
 */
async function readPullSecrets(
  pod: Pod,
  secrets: PullSecrets,
  journal: Pick<PodJournal, 'event'>,
  signal: AbortSignal,
): Promise<readonly Secret[]> {
  const found: Secret[] = [];
  const missing: string[] = [];
  const names = secretNames(pod);
  if (names.length > maxPullSecrets) {
    const message = `Ignored ${names.length - maxPullSecrets} image pull secrets: kubeling uses the first ${maxPullSecrets} of a pod.`;
    journal.event(pod, { type: 'Warning', reason: 'FailedToRetrieveImagePullSecret', message });
  }
  for (const name of names.slice(0, maxPullSecrets)) {
    try {
      found.push(await secrets.get(pod.metadata.namespace, name, signal));
    } catch {
      signal.throwIfAborted();
      missing.push(name);
    }
  }
  if (missing.length > 0) {
    const list = missing.join(', ');
    const message = `Unable to retrieve some image pull secrets (${list}); attempting to pull the image may not succeed.`;
    journal.event(pod, { type: 'Warning', reason: 'FailedToRetrieveImagePullSecret', message });
  }
  return found;
}

/** Reads each secret once, because a pod may list the same name several times. */
function secretNames({ spec }: Pod): readonly string[] {
  const names = new Set((spec.imagePullSecrets ?? []).map(({ name = '' }) => name));
  names.delete('');
  return [...names];
}

/** Returns the logins that can match the repository. */
async function loginsFor(repository: string, logins: DockerConfig): Promise<DockerConfig> {
  const turns = new YieldingCounter(charactersPerTurn);
  const found = new Map<string, RegistryLogin>();
  for (const [location, login] of logins) {
    const key = registryKey(location);
    if (key === dockerHub || matchesRegistry(key, repository)) found.set(location, login);
    if (turns.count(location.length + 16)) await turns.yield();
  }
  return found;
}

/**
 * Returns the logins in a secret; undefined for other secret types. Throws IMAGE_CREDENTIALS for an
 * invalid secret.
 */
function loginsOf(secret: Secret): DockerConfig | undefined {
  const what = `the secret ${secret.metadata?.namespace ?? ''}/${secret.metadata?.name ?? ''}`;
  const text = (key: string) => Buffer.from(secret.data?.[key] ?? '', 'base64').toString('utf8');
  if (secret.type === 'kubernetes.io/dockerconfigjson') {
    const json = text('.dockerconfigjson');
    return json === '' ? undefined : parseDockerConfigJson(json, what, maxRegistriesPerSecret);
  }
  if (secret.type !== 'kubernetes.io/dockercfg') return undefined;
  const json = text('.dockercfg');
  return json === '' ? undefined : parseDockerCfg(json, what, maxRegistriesPerSecret);
}

/** Returns a fingerprint that changes with each change of the secret. */
function fingerprintOf({ metadata, type, data = {} }: Secret): string {
  const fields = Object.entries(data).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify([metadata?.uid, metadata?.namespace, metadata?.name, type, fields]))
    .digest('hex');
}
