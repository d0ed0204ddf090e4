import { randomBytes } from 'node:crypto';

/** The only access to randomness: all code uses a Random instead of Math.random. */
export interface Random {
  /** Returns a number in [0, 1). */
  next(): number;
}

const poolBytes = 1_536;
const bytesPerNumber = 6;

/**
 * An unpredictable source, for production. Random bytes are read from the system in batches,
 * because each system call costs more than the bytes.
 */
export function systemRandom(): Random {
  let [pool, at] = [Buffer.alloc(0), 0];
  return {
    next() {
      if (at === pool.length) [pool, at] = [randomBytes(poolBytes), 0];
      const value = pool.readUIntBE(at, bytesPerNumber) / 2 ** 48;
      // Used random bytes must not remain in memory.
      pool.fill(0, at, at + bytesPerNumber);
      at += bytesPerNumber;
      return value;
    },
  };
}

/**
 * A source for tests: the same seed always gives the same numbers (mulberry32 with a 32-bit state).
 */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return {
    next() {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    },
  };
}

/** Returns an integer in [0, bound). */
export function randomInt(random: Random, bound: number): number {
  return Math.floor(random.next() * bound);
}

/** Returns one of the items at random, or undefined if the list is empty. */
export function pick<T>(random: Random, items: readonly T[]): T | undefined {
  return items[randomInt(random, items.length)];
}

/**
 * Returns the value extended by a random part of up to `share` of it: jitter(10, 0.5) is in [10,
 * 15).
 */
export function jitter(random: Random, value: number, share: number): number {
  return value * (1 + random.next() * share);
}

/** Returns `length` random lower-case hexadecimal digits. */
export function randomHex(random: Random, length: number): string {
  let text = '';
  while (text.length < length) text += randomInt(random, 16).toString(16);
  return text;
}
