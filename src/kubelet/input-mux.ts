import type { Clock } from '../lib/index.ts';
import { abortable } from '../lib/index.ts';

/**
 * An input of the sync loop. `next` resolves with the next item, or with undefined when the input
 * has ended.
 */
export interface LoopInput<Item> {
  next(signal: AbortSignal): Promise<Item | undefined>;
}

export interface NextInput<Inputs> {
  readonly name: keyof Inputs & string;
  readonly item: unknown;
}

interface Slot {
  readonly name: string;
  item: unknown;
  state: 'waiting' | 'offered' | 'ended';
  consumed: (() => void) | undefined;
}

/**
 * Waits on several inputs and returns one item at a time, round robin, so that no input starves. At
 * most one item of each input is pending, so that a busy loop slows its inputs down instead of
 * queueing.
 */
export class InputMux<Inputs extends Readonly<Record<string, LoopInput<unknown>>>> {
  readonly #slots: readonly Slot[];
  #nextIndex = 0;
  #wake: (() => void) | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(inputs: Inputs, signal: AbortSignal) {
    this.#slots = Object.keys(inputs).map((name) => ({
      name,
      item: undefined,
      state: 'waiting',
      consumed: undefined,
    }));
    for (const slot of this.#slots) {
      const input = inputs[slot.name];
      if (input !== undefined) this.#pump(slot, input, signal);
    }
  }

  /** Returns the next item of any input, or undefined once one of them has ended. */
  async take(signal: AbortSignal): Promise<NextInput<Inputs> | undefined> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure.error;
      if (this.#slots.some((slot) => slot.state === 'ended')) return undefined;
      const slot = this.#nextOffered();
      if (slot !== undefined) return this.#consume(slot);
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await abortable(woken, signal);
    }
  }

  #nextOffered(): Slot | undefined {
    for (let step = 0; step < this.#slots.length; step++) {
      const index = (this.#nextIndex + step) % this.#slots.length;
      const slot = this.#slots[index];
      if (slot?.state !== 'offered') continue;
      this.#nextIndex = index + 1;
      return slot;
    }
    return undefined;
  }

  #consume(slot: Slot): NextInput<Inputs> {
    const { name, item, consumed } = slot;
    Object.assign(slot, { item: undefined, state: 'waiting', consumed: undefined });
    consumed?.();
    return { name: name as keyof Inputs & string, item };
  }

  #pump(slot: Slot, input: LoopInput<unknown>, signal: AbortSignal): void {
    const run = async () => {
      for (;;) {
        const item = await input.next(signal);
        slot.item = item;
        slot.state = item === undefined ? 'ended' : 'offered';
        const taken = new Promise<void>((resolve) => {
          slot.consumed = resolve;
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

/** An input that ticks at a fixed period; ticks that were not consumed in time become one. */
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
