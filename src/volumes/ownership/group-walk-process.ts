import { type GroupOwnership, walkForGroup } from './group-walk.ts';

/*
 * The ownership walk in a separate process, so that a walk that hangs or takes hours blocks no
 * thread of the kubelet. It imports next to nothing. It prints lines: the number of processed
 * files, and finally the result.
 */

/** The reader may have exited: then the next line ends this process as well. */
const lineEach = 1_000;

async function main([directory = '', gift = '{}']: readonly string[]): Promise<void> {
  const result = await walkForGroup(directory, JSON.parse(gift) as GroupOwnership, (visited) => {
    if (visited % lineEach === 0) process.stdout.write(`${visited}\n`);
  });
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

// Importing the module does not run it.
if (import.meta.main) await main(process.argv.slice(2));
