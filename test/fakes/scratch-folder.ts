import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { whenLeftBehind } from './left-behind.ts';

/**
 * Creates a directory that is removed after its test. It must never contain mounts, because it is
 * removed recursively without a check.
 */
export function scratchFolder(prefix: string): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), prefix));
  const remove = () => rmSync(path, { recursive: true, force: true });
  const leftBehind = whenLeftBehind(remove);
  return {
    path,
    [Symbol.dispose]() {
      leftBehind[Symbol.dispose]();
      remove();
    },
  };
}
