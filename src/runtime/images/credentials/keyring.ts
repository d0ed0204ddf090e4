import { createHash } from 'node:crypto';
import type { AuthConfig } from '../../../cri/index.ts';
import type { Pod } from '../../../pods/index.ts';
import type { MessageInit } from '../../../protocols/protobuf/index.ts';
import { goJson } from '../../containers/go-format.ts';
import { isDockerHub, matchesRegistry, registryKey } from '../image-name.ts';
import type { DockerConfig, RegistryLogin } from './docker-config.ts';

/** Under this name logins of Docker Hub are used for every image of it. */
export const dockerHub = 'index.docker.io';

/** Registry logins and their lookup by image repository. */
export class Keyring {
  readonly #keys = new Map<string, PullCredential[]>();

  add(source: CredentialSource, config: DockerConfig): void {
    for (const [location, login] of config) {
      const key = registryKey(location);
      const held = this.#keys.get(key);
      const credential = pullCredential(login, source);
      if (held === undefined) this.#keys.set(key, [credential]);
      else held.push(credential);
    }
  }

  /** All that fit, the most specific registry first; of one registry in the order they were added. */
  lookup(repository: string): readonly PullCredential[] {
    const fitting = [...this.#keys]
      .filter(([key]) => matchesRegistry(key, repository))
      .sort(([one], [other]) => (one < other ? 1 : -1))
      .flatMap(([, credentials]) => credentials);
    if (fitting.length > 0 || !isDockerHub(repository)) return fitting;
    return this.#keys.get(dockerHub) ?? [];
  }
}

/** An object of the API by which a pod came to its credentials. */
export interface Coordinates {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/** Whose the credentials are. Those of the node are for every pod on it. */
export type CredentialSource =
  | { readonly kind: 'node' }
  | ({ readonly kind: 'secret' } & Coordinates)
  | ({ readonly kind: 'service-account' } & Coordinates);

export interface PullCredential {
  readonly auth: MessageInit<AuthConfig>;
  /** SHA-256 of the login: the same login gives the same, wherever it comes from. */
  readonly hash: string;
  readonly source: CredentialSource;
}

/** Who may pull what. */
export interface CredentialProvider {
  /**
   * To be tried in this order; none for an anonymous pull. Rejects when what the pod names cannot be used at all. The
   * image is as the pod writes it.
   */
  credentialsFor(pod: Pod, image: string, signal: AbortSignal): Promise<readonly PullCredential[]>;
  /** Changes when the pod's own secrets do; costs no more than a look at them. */
  fingerprint(pod: Pod, signal: AbortSignal): Promise<string>;
}

/** For a node on which every pull is anonymous. */
export const noCredentials: CredentialProvider = {
  credentialsFor: async () => [],
  fingerprint: async () => '',
};

export function pullCredential(
  { username, password, email }: RegistryLogin,
  source: CredentialSource,
): PullCredential {
  return { auth: { username, password }, hash: loginHash({ username, password, email }), source };
}

/** Over the same bytes as in the reference, so that records of either are good for the other. */
function loginHash({ username, password, email }: RegistryLogin): string {
  const filled = Object.entries({ username, password, email }).filter(([, value]) => value !== '');
  return createHash('sha256')
    .update(goJson(Object.fromEntries(filled)))
    .digest('hex');
}
