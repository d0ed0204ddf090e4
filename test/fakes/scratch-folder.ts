import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { whenLeftBehind } from './left-behind.ts';

/** A folder that goes with its test. Nothing may ever be mounted in it: it is emptied without a look. */
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
