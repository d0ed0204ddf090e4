import { chmodSync, closeSync, fstatSync, mkdirSync, openSync } from 'node:fs';
import { errnoOf } from '../cgroups/index.ts';
import { itselfFlags, placeFlags, wayFlags } from './places.ts';

/** A directory that is held: names in it lead to what is in it, whatever becomes of the way to it. */
export interface HeldDirectory extends Disposable {
  /** The path of something in it; of the directory itself without a name. */
  at(name?: string): string;
}

/**
 * Holds the directory that the steps below the root lead to. The root may be reached through links; a step that is one is
 * refused (ENOTDIR), as whoever may write below the root may put one there at any moment. With a mode, steps that are
 * missing are made. Its calls do not go through the thread pool: for the local disk only.
 */
export function holdDirectory(root: string, steps: readonly string[], mode?: number): HeldDirectory {
  let fd = openSync(root, wayFlags);
  try {
    for (const step of steps) {
      if (step === '' || step === '.') continue;
      if (step === '..' || step.includes('/')) throw new Error(`${step} is no step down`);
      const below = openStep(`/proc/self/fd/${fd}/${step}`, mode);
      closeSync(fd);
      fd = below;
    }
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  const path = `/proc/self/fd/${fd}`;
  return {
    at: (name) => (name === undefined ? path : `${path}/${name}`),
    [Symbol.dispose]: () => closeSync(fd),
  };
}

function openStep(path: string, mode: number | undefined): number {
  try {
    return openSync(path, placeFlags);
  } catch (error) {
    if (mode === undefined || errnoOf(error) !== 'ENOENT') throw error;
  }
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
  }
  return openSync(path, placeFlags);
}

/** Gives a socket its mode; what has been put in its place meanwhile is left alone. */
export function chmodSocket(path: string, mode: number): void {
  const fd = openSync(path, itselfFlags);
  try {
    if (fstatSync(fd).isSocket()) chmodSync(`/proc/self/fd/${fd}`, mode);
  } finally {
    closeSync(fd);
  }
}
