/** Drops the runtime's events for a while. usage: events.ts */
import { EventRounds } from './event-rounds.ts';
import { runScript } from './script-end.ts';

await runScript(async (interrupted) => {
  await EventRounds.run({ exits: 10, until: 'restored', tell: console.log, interrupted });
  console.log('exits were answered by events; their lack and their return were noticed');
});
