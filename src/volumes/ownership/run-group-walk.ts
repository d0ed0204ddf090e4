import { fileURLToPath } from 'node:url';
import { absoluteArgument, type Clock, runCommand } from '../../lib/index.ts';
import type { GroupOwnership, GroupWalkResult } from './group-walk.ts';

/**
 * The deadline of a walk: a walk through millions of files on a slow disk takes hours. Repeating a
 * completed walk is cheap.
 */
const walkMs = 24 * 3_600_000;
/** The number of libuv threads of the process, and so of its concurrent file calls. */
const walkThreads = '16';

/**
 * Runs the walk in a separate process. The walk continues to its end even if the caller stops
 * waiting: if each sync restarted it, the walk of a very large volume would never end.
 */
export async function runGroupWalk(
  clock: Clock,
  directory: string,
  gift: GroupOwnership,
  onProgress: (visited: number) => void,
): Promise<GroupWalkResult> {
  const script = fileURLToPath(new URL('./group-walk-process.ts', import.meta.url));
  const args = [
    '--disable-warning=ExperimentalWarning',
    script,
    absoluteArgument('node', directory),
    JSON.stringify(gift),
  ];
  const onOutput = (text: string) => {
    const [, last] = /(\d{1,15})\n$/.exec(text) ?? [];
    if (last !== undefined) onProgress(Number(last));
  };
  const env = { PATH: process.env['PATH'], UV_THREADPOOL_SIZE: walkThreads };
  const command = { file: process.execPath, args, env, clock, deadlineMs: walkMs, onOutput };
  const { end, stdout, stderr } = await runCommand(command, new AbortController().signal);
  if (end.kind === 'exited' && end.code === 0)
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as GroupWalkResult;
  const [, why] = /Error: (.*)/.exec(stderr) ?? [];
  throw new Error(
    why ?? `the walk through its files ended with ${JSON.stringify(end)}: ${stderr.slice(-500)}`,
  );
}
