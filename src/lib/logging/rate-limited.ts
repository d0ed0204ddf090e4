import type { Clock } from '../clock.ts';
import type { Logger } from './logger.ts';

export interface LogRate {
  readonly records: number;
  readonly perMs: number;
}

/**
 * Logs at most a number of errors in each period, so that callers without rights cannot fill the log. The first error of
 * a later period has the number of those that were left out.
 */
export function rateLimitedErrors(
  logger: Pick<Logger, 'error'>,
  clock: Pick<Clock, 'monotonicMs'>,
  { records, perMs }: LogRate,
): Pick<Logger, 'error'> {
  let startMs = Number.NEGATIVE_INFINITY;
  let logged = 0;
  let leftOut = 0;
  return {
    error(message, error, fields) {
      const nowMs = clock.monotonicMs();
      if (nowMs - startMs >= perMs) {
        startMs = nowMs;
        logged = 0;
      }
      if (logged >= records) {
        leftOut++;
        return;
      }
      logged++;
      logger.error(message, error, leftOut === 0 ? fields : { ...fields, notLogged: leftOut });
      leftOut = 0;
    },
  };
}
