import { constants } from 'node:os';

/** What is still to be done. */
const removals = new Set<() => void>();

function removeAll(): void {
  // The last first, as a node is inside the network that was opened before it.
  for (const remove of [...removals].reverse()) {
    try {
      remove();
    } catch (error) {
      console.error(error);
    }
  }
}

/**
 * Done as the process ends unless it was disposed by then: a test that is cut off by a limit or a signal disposes nothing
 * of its own. Nothing in it can be waited for.
 */
export function whenLeftBehind(remove: () => void): Disposable {
  if (!process.listeners('exit').includes(removeAll)) {
    process.on('exit', removeAll);
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) endOn(signal);
  }
  removals.add(remove);
  return { [Symbol.dispose]: () => void removals.delete(remove) };
}

/** Whoever listens already ends in his own way. Being told again must not cut off a removal that is under way. */
function endOn(signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): void {
  if (process.listenerCount(signal) > 0) return;
  process.on(signal, () => process.exit(128 + constants.signals[signal]));
}
