/**
 * Stops the API server of a node, flaps it, makes it slow and silent, and restarts the node. usage:
 * api.ts [--away SECONDS] [--flaps N] [--pods N] [--only ROUND,ROUND]
 */
import { parseArgs } from 'node:util';
import { noCluster } from '../cluster/programs.ts';
import { type ApiRound, apiRounds, runApiRounds } from './api-rounds.ts';
import { runScript } from './script-end.ts';

const { values } = parseArgs({
  options: {
    away: { type: 'string' },
    flaps: { type: 'string' },
    pods: { type: 'string' },
    only: { type: 'string' },
  },
});
const missing = noCluster();
if (missing !== false) throw new Error(`Cannot start a cluster: ${missing}`);
const all = Object.keys(apiRounds) as ApiRound[];
const rounds = all.filter((round) => values.only === undefined || values.only.split(',').includes(round));
const plan = {
  outage: { awayMs: Number(values.away ?? 300) * 1_000, calm: 10 },
  flaps: { times: Number(values.flaps ?? 10), everyMs: 3_000, pods: 10 },
  slowness: { delayMs: 2_000, pods: 10, slowMs: 90_000 },
  silence: { frozenMs: 60_000 },
  restarts: { pods: Number(values.pods ?? 50) },
};
console.log(`${rounds.join(', ')}: ${JSON.stringify(plan)}`);

await runScript(async (interrupted) => {
  await runApiRounds({ plan, rounds, tell: console.log, interrupted });
  console.log('\npods lived on, nothing was lost, restarted, leaked or told twice, the machine is clean');
});
