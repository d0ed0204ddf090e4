import { type LockDeps, withLockFile } from '../../lib/index.ts';

/** Takes the lock file and answers what gives it back. Fails with LOCK_HELD when another process has it. */
export async function holdLock(
  path: string,
  deps: LockDeps,
  signal: AbortSignal,
): Promise<() => Promise<void>> {
  const release = Promise.withResolvers<void>();
  const taken = Promise.withResolvers<void>();
  const held = withLockFile(
    path,
    deps,
    () => {
      taken.resolve();
      return release.promise;
    },
    signal,
  );
  held.catch(taken.reject);
  await taken.promise;
  return () => {
    release.resolve();
    return held;
  };
}
