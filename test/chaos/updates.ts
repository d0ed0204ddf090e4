/** Updates volumes of a pod, and reads them in it. usage: updates.ts [--updates N] */
import { parseArgs } from 'node:util';
import { runScript } from './script-end.ts';
import { UpdateRounds } from './update-rounds.ts';

const { values } = parseArgs({ options: { updates: { type: 'string' } } });
const updates = Number(values.updates ?? 1_000);
console.log(`${updates} updates of a config map, a secret and a label, each read in the pod before the next`);

await runScript(async (interrupted) => {
  const report = await UpdateRounds.run({ updates, tell: console.log, interrupted });
  console.log(`
updates    ${report.updates}, the slowest read after ${report.slowestMs} ms
looks      ${report.looks} at all files

no file was torn or missing, none went back, and every update was read`);
});
