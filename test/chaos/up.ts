/** Kills `kubeling up` under clients of its API. usage: up.ts [--kills N] [--seed N] */
import { parseArgs } from 'node:util';
import { runScript } from './script-end.ts';
import { UpRounds } from './up-rounds.ts';

const { values } = parseArgs({ options: { kills: { type: 'string' }, seed: { type: 'string' } } });
const kills = Number(values.kills ?? 50);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
console.log(`${kills} kills of kubeling up, seed ${seed}`);

await runScript(async (interrupted) => {
  const report = await UpRounds.run({ kills, seed, tell: console.log, interrupted });
  console.log(`
kills                   ${report.kills}, of them ${report.killsAtStart} while it started
writes acknowledged     ${report.writes}, ${report.perSecond.toFixed(0)} in a second; the last version is ${report.newest}
watches resumed         ${report.resumed} times, ${report.expired} of them with a list; ${report.events} events

every write is there, no version says two things, no watch has a gap, the same containers run`);
});
