/**
 * Those who watch, in a process of their own: what they spend must not be taken for what writers wait for. Opens the
 * watches it is told, and says how many lines each of them has seen whenever it is asked.
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
