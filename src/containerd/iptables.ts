import { describeError } from '../lib/index.ts';
import type { Run } from './machine.ts';
import type { Removal } from './mounts.ts';

/** What must be deleted: rules first, as they hold on to the chains. */
export interface RuleCleanup {
  /** Each the arguments after -D. */
  readonly rules: readonly (readonly string[])[];
  readonly chains: readonly string[];
}

/**
 * The rules of our network in a listing of `iptables -S`. The plugins write the network's name in quotes into each
 * comment; the chains those rules jump to belong to one pod each. Chains shared by all networks are left.
 */
export function rulesOfNetwork(listing: string, network: string): RuleCleanup {
  const all = listing.split('\n').filter((line) => line.startsWith('-A '));
  const ours = all.map(splitArguments).filter((words) => commentOf(words).includes(`"${network}"`));
  // A plugin that was cut short has filled a pod's chain to which nothing jumps yet.
  const touched = ours.flatMap((words) => [words[1] ?? '', words[words.indexOf('-j') + 1] ?? '']);
  const chains = new Set(touched.filter((chain) => /^CNI-(DN-)?[0-9a-f]{8,}$/.test(chain)));
  // Rules inside those chains go with them.
  const rules = ours.map((words) => words.slice(1)).filter(([chain = '']) => !chains.has(chain));
  return { rules, chains: [...chains] };
}

function commentOf(words: readonly string[]): string {
  const at = words.indexOf('--comment');
  return at < 0 ? '' : (words[at + 1] ?? '');
}

/** Splits a line as iptables prints it: words, or double quotes with backslashes before quotes and backslashes. */
export function splitArguments(line: string): string[] {
  return Array.from(line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g), ([, quoted, plain]) =>
    quoted === undefined ? String(plain) : quoted.replaceAll(/\\(.)/g, '$1'),
  );
}

/** Deletes what is left of our network's rules in the nat table. */
export async function removeRules(
  iptables: string,
  network: string,
  run: Run,
  signal: AbortSignal,
): Promise<Removal> {
  const nat = ['-w', '10', '-t', 'nat'];
  const listing = await run(iptables, [...nat, '-S'], signal);
  const { rules, chains } = rulesOfNetwork(listing.stdout, network);
  const commands = [
    ...rules.map((rule) => ['-D', ...rule]),
    ...chains.flatMap((chain) => [
      ['-F', chain],
      ['-X', chain],
    ]),
  ];
  const removed: string[] = [];
  const problems: string[] = [];
  for (const command of commands) {
    try {
      await run(iptables, [...nat, ...command], signal);
      removed.push(command.join(' '));
    } catch (error) {
      signal.throwIfAborted();
      problems.push(describeError(error));
    }
  }
  return { removed, problems };
}
