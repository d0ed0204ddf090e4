/** Kills kubeling at random moments. usage: kill.ts [--kills N] [--seed N] */
import { parseArgs } from 'node:util';
import { KillRounds } from './kill-rounds.ts';
import { runScript } from './script-end.ts';

const { values } = parseArgs({ options: { kills: { type: 'string' }, seed: { type: 'string' } } });
const kills = Number(values.kills ?? 100);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
console.log(`${kills} kills of kubeling, seed ${seed}`);

await runScript(async (interrupted) => {
  const report = await KillRounds.run({ kills, seed, tell: console.log, interrupted });
  console.log(`
kills                         ${report.kills}, of them ${report.killsAtStart} before kubeling was ready
pods asked for                ${report.versions}
containers started            ${report.starts}, of them again ${report.restarts}
started, cut short by a kill  ${report.cutShort}
found running as before       ${report.kept}

nothing was started twice, nothing was lost, counts of restarts are right, the node is clean`);
});
