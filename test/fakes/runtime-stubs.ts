import { KubelingError } from '../../src/lib/index.ts';
import type { CredentialProvider, HookRunner, SubPaths } from '../../src/runtime/index.ts';

/** A hook runner that reports every hook as successful without running it. */
export const noHooks: HookRunner = { run: async () => {} };

/** A credential provider without credentials: all images are pulled anonymously. */
export const noCredentials: CredentialProvider = {
  credentialsFor: async () => [],
  fingerprint: async () => '',
};

/** The subpaths of simulated nodes: files are in memory, and mounts have no effect. */
export function memorySubPaths(read: (path: string) => string | undefined): SubPaths {
  return {
    bind: async () => {},
    unbind: async () => {},
    async readText(volume, part) {
      const text = read(`${volume}/${part}`);
      if (text === undefined) throw new KubelingError('VOLUME_UNUSABLE', 'the subpath does not exist');
      return text;
    },
  };
}
