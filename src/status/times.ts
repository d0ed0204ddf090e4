import { apiTime } from '../lib/index.ts';

/** Of a time of the runtime, where zero stands for not yet. */
export function apiTimeOfNs(ns: bigint): string | undefined {
  return ns === 0n ? undefined : apiTime(Number(ns / 1_000_000n));
}

/** The same time in whole seconds, whatever it was written with. */
export function wholeSeconds(time: string | undefined): string | undefined {
  if (time === undefined || !time.includes('.')) return time;
  const ms = Date.parse(time);
  return Number.isNaN(ms) ? time : apiTime(ms);
}
