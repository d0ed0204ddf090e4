import { join } from 'node:path';
import { scratchFolder } from './scratch-folder.ts';

/** A directory for sockets that is removed after its test. */
export function socketFolder(): Disposable & { path(name: string): string } {
  const folder = scratchFolder('kubeling-grpc-');
  return {
    path: (name) => join(folder.path, name),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}
