import type { SeedOptions, SeedResult } from './seed-options.ts';
import { simulate } from './simulate.ts';

/** So much is shown; the rest of a long history is told with `--seed`. */
const shownLines = 120;
const shownLogs = 40;

/** A failed seed for people: what did not hold, what happened to the pods it is about, and what was said of them. */
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
    'What happened, in seconds from the start:',
    ...(lines.length > shownLines ? [`  (${lines.length - shownLines} lines before this)`] : []),
    ...lines.slice(-shownLines).map((line) => `  ${line}`),
    'What the kubelet said of it:',
    ...logs.slice(-shownLogs).map((line) => `  ${line}`),
    `All of it: npm run simulate -- --seed ${seed}`,
  ].join('\n');
}

/** Those of the pods, of their sandboxes and containers, and of the world around them. */
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
