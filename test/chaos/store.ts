/** Kills a store's writer at random moments. usage: store.ts [--kills N] [--seed N] */
import { parseArgs } from 'node:util';
import { runScript } from './script-end.ts';
import { StoreRounds } from './store-rounds.ts';

const { values } = parseArgs({ options: { kills: { type: 'string' }, seed: { type: 'string' } } });
const kills = Number(values.kills ?? 50);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
console.log(`${kills} kills of a writer, seed ${seed}`);

await runScript(async (interrupted) => {
  const report = await StoreRounds.run({ kills, seed, tell: console.log, interrupted });
  console.log(`
kills                  ${report.kills}, of them ${report.killsAtStart} before or while the store was opened
writes that were safe  ${report.writes}, ${report.perSecond.toFixed(0)} in a second
objects at the end     ${report.objects} in ${(report.fileBytes / 2 ** 20).toFixed(1)} MB

every one of them is there, no version was given twice, the log has no gap`);
});
