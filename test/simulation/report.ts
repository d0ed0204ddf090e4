import type { SeedOptions, SeedResult } from './seed-options.ts';
import { simulate } from './simulate.ts';

/** How many lines of the history are shown; `--seed` prints the complete history. */
const shownLines = 120;
const shownLogs = 40;

/**
 * A readable report of a failed seed: the violated rule, the history of the affected pods, and the
 * kubelet's log about them.
 */
export async function describeFailure(
  { seed, violations }: SeedResult,
  options: SeedOptions = {},
): Promise<string> {
  const again = await simulate(seed, { ...options, logs: 'kept' });
  const uids = violations.flatMap((violation) => violation.match(/\b[0-9a-f]{32}\b/g) ?? []);
  const lines = linesAbout(again.history, uids);
  const logs = (again.logs?.records.toArray() ?? [])
    .map(({ severity, message, fields }) => `${severity} ${message} ${JSON.stringify(fields)}`)
    .filter((line) => uids.length === 0 || uids.some((uid) => line.includes(uid)));
  return [
    `Seed ${seed} failed:`,
    ...violations.map((violation) => `  ${violation}`),
    'History, in seconds from the start:',
    ...(lines.length > shownLines ? [`  (${lines.length - shownLines} earlier lines omitted)`] : []),
    ...lines.slice(-shownLines).map((line) => `  ${line}`),
    'Kubelet log:',
    ...logs.slice(-shownLogs).map((line) => `  ${line}`),
    `Full history: npm run simulate -- --seed ${seed}`,
  ].join('\n');
}

/**
 * The history lines about the given pods, their sandboxes and containers, and about the node
 * itself.
 */
function linesAbout(history: readonly string[], uids: readonly string[]): readonly string[] {
  if (uids.length === 0) return history;
  const own = history.filter((line) => uids.some((uid) => line.includes(`podUid=${uid.slice(0, 8)}`)));
  const ids = new Set(own.flatMap((line) => line.match(/\b[0-9a-f]{8}\b/g) ?? []));
  const names = new Set(own.flatMap((line) => /podName=(\S+)/.exec(line)?.[1] ?? []));
  return history.filter((line) => {
    if (!/podUid=| {2}call /.test(line)) return true;
    return [...ids, ...names].some((word) => line.includes(word));
  });
}
