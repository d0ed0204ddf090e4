import type { Clock } from '../lib/index.ts';
import type { LoopInput } from './input-mux.ts';

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
