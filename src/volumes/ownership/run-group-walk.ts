import { fileURLToPath } from 'node:url';
import { absoluteArgument, type Clock, runCommand } from '../../lib/index.ts';
import type { GroupOwnership, GroupWalkResult } from './group-walk.ts';

/** A walk through millions of files on a slow disk ends sooner or later, and is cheap to repeat. */
const walkMs = 24 * 3_600_000;
/** As many looks as the walk takes beside each other. */
const walkThreads = '16';

/**
 * The walk in a process of its own. It goes on until it ends, whoever waits for it: begun anew, it would never end for a
 * volume that takes longer than anybody waits.
 */
export async function runGroupWalk(
  clock: Clock,
  directory: string,
  gift: GroupOwnership,
  told: (seen: number) => void,
): Promise<GroupWalkResult> {
  const script = fileURLToPath(new URL('./group-walk-process.ts', import.meta.url));
  const args = [
    '--disable-warning=ExperimentalWarning',
    script,
    absoluteArgument('node', directory),
    JSON.stringify(gift),
  ];
  const heard = (text: string) => {
    const [, last] = /(\d{1,15})\n$/.exec(text) ?? [];
    if (last !== undefined) told(Number(last));
  };
  const env = { PATH: process.env['PATH'], UV_THREADPOOL_SIZE: walkThreads };
  const command = { file: process.execPath, args, env, clock, deadlineMs: walkMs, heard };
  const { end, stdout, stderr } = await runCommand(command, new AbortController().signal);
  if (end.kind === 'exited' && end.code === 0)
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as GroupWalkResult;
  const [, why] = /Error: (.*)/.exec(stderr) ?? [];
  throw new Error(
    why ?? `the walk through its files ended with ${JSON.stringify(end)}: ${stderr.slice(-500)}`,
  );
}
