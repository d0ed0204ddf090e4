import { type GroupOwnership, walkForGroup } from './group-walk.ts';

/*
 * A walk in a process of its own: one that hangs, or takes hours, keeps none of the threads that others need. It loads next
 * to nothing. What it says are lines: how much it has seen, and in the end what came of it.
 */

/** Whoever reads may have gone: then the next line ends us, too. */
const lineEach = 1_000;

async function main([directory = '', gift = '{}']: readonly string[]): Promise<void> {
  const result = await walkForGroup(directory, JSON.parse(gift) as GroupOwnership, (seen) => {
    if (seen % lineEach === 0) process.stdout.write(`${seen}\n`);
  });
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

// To be loaded is not to be run.
if (import.meta.main) await main(process.argv.slice(2));
