import { KubelingError } from '../../src/lib/index.ts';
import type { CredentialProvider, HookRunner, SubPaths } from '../../src/runtime/index.ts';

/** Reports every hook as successful without running it. */
export const noHooks: HookRunner = { run: async () => {} };

/** Pulls all images anonymously. */
export const noCredentials: CredentialProvider = {
  credentialsFor: async () => [],
  fingerprint: async () => '',
};

/** SubPaths of simulated nodes: files are in memory, mounts do nothing. */
export function memorySubPaths(read: (path: string) => string | undefined): SubPaths {
  return {
    bind: async () => {},
    unbind: async () => {},
    async readText(volume, part) {
      const text = read(`${volume}/${part}`);
      if (text === undefined) throw new KubelingError('VOLUME_UNUSABLE', 'it does not exist');
      return text;
    },
  };
}
