/**
 * Opens watches in a separate process, so that their CPU time does not slow down the measured
 * writes. Opens the watches that the parent requests, and reports the number of lines each has
 * received whenever the parent asks.
 */
import { type CountedWatch, openWatch, type WayIn } from './local-api-client.ts';

export type ToWatchers =
  | { readonly do: 'open'; readonly way: WayIn; readonly watches: readonly WishedWatch[] }
  | { readonly do: 'count' };

export interface WishedWatch {
  readonly path: string;
  readonly accept: string;
}

const open: CountedWatch[] = [];

process.on('message', async (asked: ToWatchers) => {
  if (asked.do === 'open')
    open.push(...(await Promise.all(asked.watches.map((each) => openWatch(asked.way, each)))));
  process.send?.(open.map((watch) => watch.lines()));
});
process.once('disconnect', () => process.exit());
