import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../kubeling-node.ts';

const pauseMs = 100;

/**
 * Like `eventually`, with a longer interval and timeout, for checks that start a process or a TLS
 * handshake, and for busy machines.
 */
export function patiently<T>(
  what: string,
  look: () => Promise<T | undefined>,
  told: () => string = () => '',
  limitMs = 90_000,
): Promise<T> {
  const lookAndRest = async () => {
    const found = await look();
    if (found === undefined) await delay(pauseMs);
    return found;
  };
  return eventually(what, lookAndRest, limitMs, told);
}
