import { createHash } from 'node:crypto';
import type { AuthConfig } from '../../../cri/index.ts';
import type { Pod } from '../../../pods/index.ts';
import type { MessageInit } from '../../../protocols/protobuf/index.ts';
import { goJson } from '../../containers/go-format.ts';
import { isDockerHub, matchesRegistry, registryKey } from '../image-name.ts';
import type { DockerConfig, RegistryLogin } from './docker-config.ts';

/** The registry key of Docker Hub logins, which are used for all images of Docker Hub. */
export const dockerHub = 'index.docker.io';

/** The registry logins, looked up by image repository. */
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

  /**
   * Returns all logins that match the image, the most specific registry first; logins of the same
   * registry are in the order in which they were added.
   */
  lookup(repository: string): readonly PullCredential[] {
    const fitting = [...this.#keys]
      .filter(([key]) => matchesRegistry(key, repository))
      .sort(([one], [other]) => (one < other ? 1 : -1))
      .flatMap(([, credentials]) => credentials);
    if (fitting.length > 0 || !isDockerHub(repository)) return fitting;
    return this.#keys.get(dockerHub) ?? [];
  }
}

/** The API object from which a pod got its pull credentials: a Secret or a ServiceAccount. */
export interface Coordinates {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/** The origin of a credential. Credentials of the node are valid for all pods of the node. */
export type CredentialSource =
  | { readonly kind: 'node' }
  | ({ readonly kind: 'secret' } & Coordinates)
  | ({ readonly kind: 'service-account' } & Coordinates);

export interface PullCredential {
  readonly auth: MessageInit<AuthConfig>;
  /** The SHA-256 of the login; equal logins from different origins have the same hash. */
  readonly hash: string;
  readonly source: CredentialSource;
}

/** Provides image pull credentials of pods. */
export interface CredentialProvider {
  /**
   * Returns the credentials to try, in order; empty for an anonymous pull. Rejects when a
   * credential that the pod refers to is invalid. `image` is the name in the pod's spec.
   */
  credentialsFor(pod: Pod, image: string, signal: AbortSignal): Promise<readonly PullCredential[]>;
  /** Returns a fingerprint that changes when the pod's pull secrets change. */
  fingerprint(pod: Pod, signal: AbortSignal): Promise<string>;
}

export function pullCredential(
  { username, password, email }: RegistryLogin,
  source: CredentialSource,
): PullCredential {
  return { auth: { username, password }, hash: loginHash({ username, password, email }), source };
}

/** Hashes a login over the same bytes as the Go kubelet, so that its pull records stay valid. */
function loginHash({ username, password, email }: RegistryLogin): string {
  const filled = Object.entries({ username, password, email }).filter(([, value]) => value !== '');
  return createHash('sha256')
    .update(goJson(Object.fromEntries(filled)))
    .digest('hex');
}
