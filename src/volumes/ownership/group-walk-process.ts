import { type GroupOwnership, walkForGroup } from './group-walk.ts';

/*
 * Runs the ownership walk of a volume in a separate process, so that a walk that hangs or takes
 * hours blocks no thread of the kubelet. Imports few modules, to start fast. Prints the number of
 * processed files in lines, and finally the result.
 */

/**
 * The number of processed files after which progress is printed again. If the kubelet has exited,
 * the write of the progress fails and ends this process as well.
 */
const lineEach = 1_000;

async function main([directory = '', gift = '{}']: readonly string[]): Promise<void> {
  const result = await walkForGroup(directory, JSON.parse(gift) as GroupOwnership, (visited) => {
    if (visited % lineEach === 0) process.stdout.write(`${visited}\n`);
  });
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

// Runs only as a program, not when imported.
if (import.meta.main) await main(process.argv.slice(2));
