import type { Pod, PodJournal } from '../../../pods/index.ts';
import { repositoryOf } from '../image-name.ts';
import type { DockerConfig } from './docker-config.ts';
import { Keyring } from './keyring.ts';
import type { PluginProvider } from './plugin-provider.ts';
import type { CredentialProvider, PullCredential } from './pull-credential.ts';
import { fingerprintOf, loginsOf, type PullSecrets, readPullSecrets, secretNames } from './pull-secrets.ts';

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
