/** Sends random requests to the embedded API. usage: requests.ts [--requests 100000] [--seed 1] */
import { parseArgs } from 'node:util';
import { RequestRounds } from './request-rounds.ts';
import { runScript } from './script-end.ts';

/** The maximum duration for which a request may block the event loop. */
const mostHoldMs = 100;

const { values } = parseArgs({
  options: { requests: { type: 'string', default: '100000' }, seed: { type: 'string', default: '1' } },
});

await runScript(async () => {
  const [requests, seed] = [Number(values.requests), Number(values.seed)];
  await RequestRounds.run({ requests, seed, mostHoldMs, tell: console.log });
  console.log(`${requests} requests: all were answered, none failed, and what was kept is there`);
  // Exits explicitly, because leftovers of the requests could keep the process running.
  process.exit();
});
