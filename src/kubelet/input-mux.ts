import type { Clock } from '../lib/index.ts';
import { abortable } from '../lib/index.ts';

/** One of the things the sync loop listens to. `next` resolves with the next item, or undefined when it has ended. */
export interface LoopInput<Item> {
  next(signal: AbortSignal): Promise<Item | undefined>;
}

export interface TakenInput<Inputs> {
  readonly name: keyof Inputs & string;
  readonly item: unknown;
}

interface Slot {
  readonly name: string;
  item: unknown;
  state: 'waiting' | 'offered' | 'ended';
  taken: (() => void) | undefined;
}

/**
 * Waits on many inputs at once and hands out one item at a time. Each input has at most one item pending, so a source
 * is held back while the loop is busy; turns go round, so that none starves.
 */
export class InputMux<Inputs extends Readonly<Record<string, LoopInput<unknown>>>> {
  readonly #slots: readonly Slot[];
  #turn = 0;
  #wake: (() => void) | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(inputs: Inputs, signal: AbortSignal) {
    this.#slots = Object.keys(inputs).map((name) => ({
      name,
      item: undefined,
      state: 'waiting',
      taken: undefined,
    }));
    for (const slot of this.#slots) {
      const input = inputs[slot.name];
      if (input !== undefined) this.#pump(slot, input, signal);
    }
  }

  /** The next item of any input; undefined once one of them has ended. */
  async take(signal: AbortSignal): Promise<TakenInput<Inputs> | undefined> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure.error;
      if (this.#slots.some((slot) => slot.state === 'ended')) return undefined;
      const slot = this.#nextOffered();
      if (slot !== undefined) return this.#hand(slot);
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await abortable(woken, signal);
    }
  }

  #nextOffered(): Slot | undefined {
    for (let step = 0; step < this.#slots.length; step++) {
      const index = (this.#turn + step) % this.#slots.length;
      const slot = this.#slots[index];
      if (slot?.state !== 'offered') continue;
      this.#turn = index + 1;
      return slot;
    }
    return undefined;
  }

  #hand(slot: Slot): TakenInput<Inputs> {
    const { name, item, taken } = slot;
    Object.assign(slot, { item: undefined, state: 'waiting', taken: undefined });
    taken?.();
    return { name: name as keyof Inputs & string, item };
  }

  #pump(slot: Slot, input: LoopInput<unknown>, signal: AbortSignal): void {
    const run = async () => {
      for (;;) {
        const item = await input.next(signal);
        slot.item = item;
        slot.state = item === undefined ? 'ended' : 'offered';
        const taken = new Promise<void>((resolve) => {
          slot.taken = resolve;
        });
        this.#wake?.();
        if (item === undefined) return;
        await abortable(taken, signal);
      }
    };
    run().catch((error) => {
      if (signal.aborted) return;
      this.#failure ??= { error };
      this.#wake?.();
    });
  }
}

/** Ticks at a fixed pace; those that nobody took in time become one. */
export function ticker(clock: Clock, periodMs: number): LoopInput<'tick'> {
  let dueMs = clock.monotonicMs() + periodMs;
  return {
    async next(signal) {
      const nowMs = clock.monotonicMs();
      if (nowMs < dueMs) await clock.sleep(dueMs - nowMs, signal);
      const onTimeMs = dueMs + periodMs;
      dueMs = onTimeMs > clock.monotonicMs() ? onTimeMs : clock.monotonicMs() + periodMs;
      return 'tick';
    },
  };
}
