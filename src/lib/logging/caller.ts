import { getCallSites } from 'node:util';
import type { Caller } from './format.ts';

const unknownCaller: Caller = { path: 'unknown', line: 0 };

/**
 * The place in the code that called the caller of this function: with 1 the function that calls `callerAt`'s own
 * caller, with 2 the one beyond. Costs a few microseconds, so it is asked only for lines that are written.
 */
export function callerAt(depth: number): Caller {
  const site = getCallSites(depth + 2)[depth + 1];
  return site === undefined ? unknownCaller : { path: site.scriptName, line: site.lineNumber };
}
