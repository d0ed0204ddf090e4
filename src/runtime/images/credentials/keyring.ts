import type { DockerConfig } from './docker-config.ts';
import { type CredentialSource, type PullCredential, pullCredential } from './pull-credential.ts';
import { isDockerHub, matchesRegistry, registryKey } from './registry-match.ts';

const dockerHub = 'index.docker.io';

/** Logins by registry, and which of them are for an image. */
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
