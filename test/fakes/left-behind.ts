import { constants } from 'node:os';

/** The pending clean-ups. */
const removals = new Set<() => void>();

function removeAll(): void {
  // In reverse order, because a node is inside the network that was opened before it.
  for (const remove of [...removals].reverse()) {
    try {
      remove();
    } catch (error) {
      console.error(error);
    }
  }
}

/**
 * Runs when the process exits unless it was disposed by then: a test that is interrupted by a limit
 * or a signal disposes nothing. It must be synchronous.
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
 * An existing listener handles the signal itself. A second signal must not interrupt a removal in
 * progress.
 */
function endOn(signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): void {
  if (process.listenerCount(signal) > 0) return;
  process.on(signal, () => process.exit(128 + constants.signals[signal]));
}
