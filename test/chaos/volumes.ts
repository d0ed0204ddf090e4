/** Kills kubeling while it mounts and unmounts. usage: volumes.ts [--kills N] [--seed N] */
import { parseArgs } from 'node:util';
import { runScript } from './script-end.ts';
import { VolumeRounds } from './volume-rounds.ts';

const { values } = parseArgs({ options: { kills: { type: 'string' }, seed: { type: 'string' } } });
const kills = Number(values.kills ?? 100);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
console.log(`${kills} kills of kubeling among mounts, seed ${seed}`);

await runScript(async (interrupted) => {
  const report = await VolumeRounds.run({ kills, seed, tell: console.log, interrupted });
  console.log(`
kills      ${report.kills}: ${report.mounting} at a mount, ${report.unmounting} at an unmount, ${report.killsAtStart} while it started; ${report.driverKills} of the CSI driver with it
pods       ${report.made} made, ${report.removed} removed

every pod that was wanted ran with its volumes, of the others nothing is left, and no canary was touched`);
});
