import { constants } from 'node:os';

/** The registered clean-ups, which run when the process exits. */
const removals = new Set<() => void>();

function removeAll(): void {
  // Clean-ups run in reverse order of registration: a node must be removed before the network that
  // was created for it.
  for (const remove of [...removals].reverse()) {
    try {
      remove();
    } catch (error) {
      console.error(error);
    }
  }
}

/**
 * Registers a clean-up that runs when the process exits, unless the returned object has been
 * disposed before. It is needed because a test that is interrupted by a time limit or a signal
 * disposes nothing. The clean-up must be synchronous.
 */
export function whenLeftBehind(remove: () => void): Disposable {
  if (!process.listeners('exit').includes(removeAll)) {
    process.on('exit', removeAll);
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) endOn(signal);
  }
  removals.add(remove);
  return { [Symbol.dispose]: () => void removals.delete(remove) };
}

/**
 * If the program has its own listener for the signal, that listener handles the signal. A second
 * signal must not interrupt a removal in progress.
 */
function endOn(signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): void {
  if (process.listenerCount(signal) > 0) return;
  process.on(signal, () => process.exit(128 + constants.signals[signal]));
}
