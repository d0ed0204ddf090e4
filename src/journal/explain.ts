import { formatDurationMs, printable } from '../lib/index.ts';
import type { PodStory, StoryEntry } from './flight-recorder.ts';
import type { NodeEntry, NodeStory } from './node-journal.ts';

/** Formats the history of a pod: one line per entry, with the time since the first entry. */
export function explainPod({ uid, fullName, entries, dropped }: PodStory): string {
  const [first] = entries;
  const start = first === undefined ? 0 : first.is === 'event' ? first.since : first.at;
  const lines = [
    `${fullName?.replace('_', ' in ') ?? 'a pod'} (${uid})`,
    ...(dropped === 0 ? [] : [`  … ${dropped} earlier lines were dropped`]),
    ...entries.map((entry) => `  ${line(entry, start)}`),
  ];
  return `${lines.join('\n')}\n`;
}

/** Formats the history of the node: one line per entry, with its time. */
export function explainNode({ name, entries, dropped }: NodeStory): string {
  const lines = [
    `the node ${name}`,
    ...(dropped === 0 ? [] : [`  … ${dropped} earlier lines were dropped`]),
    ...entries.map((entry) => `  ${new Date(entry.at).toISOString()}  ${nodeText(entry)}`),
  ];
  return `${lines.join('\n')}\n`;
}

function nodeText(entry: NodeEntry): string {
  return entry.is === 'event' ? eventText(entry) : printable(entry.message);
}

function line(entry: StoryEntry, startMs: number): string {
  const since = `+${((entry.at - startMs) / 1_000).toFixed(3)}s`.padStart(10);
  return `${since}  ${entry.is === 'step' ? stepText(entry) : eventText(entry)}`;
}

function stepText(entry: Extract<StoryEntry, { is: 'step' }>): string {
  const mark = { done: 'ok', failed: 'FAILED', waiting: 'waiting' }[entry.outcome];
  const what = entry.container === undefined ? entry.stage : `${entry.stage} ${entry.container}`;
  const took = entry.ms === undefined ? '' : ` (${formatDurationMs(Math.round(entry.ms))})`;
  return `${what.padEnd(18)} ${mark.padEnd(8)} ${printable(entry.message)}${took}`;
}

function eventText(
  entry: Extract<NodeEntry, { is: 'event' }> & { readonly fieldPath?: string | undefined },
): string {
  const times = entry.count === 1 ? '' : ` (${entry.count} times)`;
  const about = entry.fieldPath === undefined ? '' : ` ${entry.fieldPath}`;
  return `${'event'.padEnd(18)} ${entry.type.padEnd(8)} ${entry.reason}${about}: ${printable(entry.message)}${times}`;
}
