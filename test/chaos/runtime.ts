/**
 * Kills containerd under running pods. usage: runtime.ts [--pods N] [--kills N] [--away SECONDS]
 */
import { parseArgs } from 'node:util';
import { RuntimeRounds } from './runtime-rounds.ts';
import { runScript } from './script-end.ts';

const { values } = parseArgs({
  options: { pods: { type: 'string' }, kills: { type: 'string' }, away: { type: 'string' } },
});
const pods = Number(values.pods ?? 20);
const kills = Number(values.kills ?? 3);
const awaySeconds = Number(values.away ?? 120);
console.log(`${pods} pods, ${kills} kills of containerd, then ${awaySeconds} s without it`);

await runScript(async (interrupted) => {
  await RuntimeRounds.run({ pods, kills, absenceMs: awaySeconds * 1_000, tell: console.log, interrupted });
  console.log('no pod was restarted, kubeling stayed up, all was told and carried out, the node is clean');
});
