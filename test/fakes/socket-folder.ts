import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder for sockets that goes with its test. */
export function socketFolder(): Disposable & { path(name: string): string } {
  const folder = mkdtempSync(join(tmpdir(), 'kubeling-grpc-'));
  return {
    path: (name) => join(folder, name),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
