import { createHash } from 'node:crypto';
import type { Secret } from '../../../kinds/index.ts';
import { KubelingError } from '../../../lib/index.ts';
import type { Pod, PodJournal } from '../../../pods/index.ts';
import { repositoryOf } from '../image-name.ts';
import type { DockerConfig } from './docker-config.ts';
import { parseDockerCfg, parseDockerConfigJson } from './docker-config.ts';
import type { CredentialProvider, PullCredential } from './keyring.ts';
import { Keyring } from './keyring.ts';
import type { PluginProvider } from './plugin-provider.ts';

export interface PodCredentialsDeps {
  readonly journal: Pick<PodJournal, 'event'>;
  readonly secrets: PullSecrets;
  /** The logins of the machine itself. */
  readonly nodeLogins: () => Promise<DockerConfig>;
  readonly plugins: readonly PluginProvider[];
}

/** All credentials a pod may pull with: its own secrets, then the node's files, then what plugins say. */
export class PodCredentials implements CredentialProvider {
  readonly #deps: PodCredentialsDeps;

  constructor(deps: PodCredentialsDeps) {
    this.#deps = deps;
  }

  async credentialsFor(pod: Pod, image: string, signal: AbortSignal): Promise<readonly PullCredential[]> {
    const repository = repositoryOf(image);
    const own = await this.#ownKeyring(pod, signal);
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
    // An event was written when the secrets were wanted for a pull; looking again is no news.
    return fingerprintOf(await readPullSecrets(pod, this.#deps.secrets, { event() {} }, signal));
  }

  async #ownKeyring(pod: Pod, signal: AbortSignal): Promise<Keyring> {
    const { secrets, journal } = this.#deps;
    const keyring = new Keyring();
    for (const secret of await readPullSecrets(pod, secrets, journal, signal)) {
      const logins = loginsOf(secret);
      if (logins === undefined) continue;
      const { uid = '', namespace = pod.metadata.namespace, name = '' } = secret.metadata ?? {};
      keyring.add({ kind: 'secret', uid, namespace, name }, logins);
    }
    return keyring;
  }

  /** All in one keyring: the most specific registry is tried first, whichever plugin named it. */
  async #fromPlugins(pod: Pod, repository: string, signal: AbortSignal): Promise<readonly PullCredential[]> {
    const keyring = new Keyring();
    for (const plugin of this.#deps.plugins) {
      const found = await plugin.provide(pod, repository, signal);
      if (found !== undefined) keyring.add(found.source, found.logins);
    }
    return keyring.lookup(repository);
  }
}

/** Where the secrets that pods name are read. Rejects when there is no such secret or it cannot be had. */
export interface PullSecrets {
  get(namespace: string, name: string, signal: AbortSignal): Promise<Secret>;
}

/** For a node without anybody to ask. */
export const noPullSecrets: PullSecrets = {
  async get(namespace, name) {
    throw new KubelingError(
      'IMAGE_CREDENTIALS',
      `Cannot read the secret ${namespace}/${name} as this node knows of no API server`,
    );
  },
};

/** Those that can be read; an event tells of the others, and the pull goes on without them. */
export async function readPullSecrets(
  pod: Pod,
  secrets: PullSecrets,
  journal: Pick<PodJournal, 'event'>,
  signal: AbortSignal,
): Promise<readonly Secret[]> {
  const found: Secret[] = [];
  const missing: string[] = [];
  for (const name of secretNames(pod)) {
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

export function secretNames({ spec }: Pod): readonly string[] {
  return (spec.imagePullSecrets ?? []).flatMap(({ name = '' }) => (name === '' ? [] : [name]));
}

/** The logins in a secret; undefined for one of another type. Throws IMAGE_CREDENTIALS for one that is broken. */
export function loginsOf(secret: Secret): DockerConfig | undefined {
  const what = `the secret ${secret.metadata?.namespace ?? ''}/${secret.metadata?.name ?? ''}`;
  const text = (key: string) => Buffer.from(secret.data?.[key] ?? '', 'base64').toString('utf8');
  if (secret.type === 'kubernetes.io/dockerconfigjson') {
    const json = text('.dockerconfigjson');
    return json === '' ? undefined : parseDockerConfigJson(json, what);
  }
  if (secret.type !== 'kubernetes.io/dockercfg') return undefined;
  const json = text('.dockercfg');
  return json === '' ? undefined : parseDockerCfg(json, what);
}

/** The same as long as nothing of the secrets changes. */
export function fingerprintOf(secrets: readonly Secret[]): string {
  const hash = createHash('sha256');
  for (const { metadata, type, data = {} } of secrets) {
    const fields = Object.entries(data).toSorted(([one], [other]) => (one < other ? -1 : 1));
    hash.update(JSON.stringify([metadata?.uid, metadata?.namespace, metadata?.name, type, fields]));
  }
  return hash.digest('hex');
}
