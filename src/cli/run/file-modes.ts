import { stat } from 'node:fs/promises';
import type { LoadedConfig } from '../../config/index.ts';
import type { Logger } from '../../lib/index.ts';

/** A file that other users must not change, or not even read. */
interface ProtectedFile {
  readonly path: string;
  /** The maximum permissions. */
  readonly mode: 0o600 | 0o644;
}

/** The files with the node's credentials and configuration. */
export function protectedFiles({
  config,
  configFiles,
  flags,
}: Pick<LoadedConfig, 'config' | 'configFiles' | 'flags'>): readonly ProtectedFile[] {
  const own = [flags.kubeconfig, flags.bootstrapKubeconfig, ...configFiles];
  return [
    ...own.map((path) => ({ path, mode: 0o600 }) as const),
    { path: config.authentication.x509.clientCAFile, mode: 0o644 } as const,
  ].filter(({ path }) => path !== '');
}

/** Logs each file with too wide permissions or another owner. Never rejects. */
export async function reportLooseModes(files: readonly ProtectedFile[], logger: Logger): Promise<void> {
  for (const { path, mode } of files) {
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) continue;
    const given = found.mode & 0o777;
    const must = `0${mode.toString(8)}`;
    if ((given & ~mode & 0o077) !== 0)
      logger.warn('File permissions are too wide', { path, mode: `0${given.toString(8)}`, must });
    if (found.uid !== 0 && process.getuid?.() === 0)
      logger.warn('File does not belong to root', { path, uid: found.uid });
  }
}
