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
export function rulesOfNetwork(
  listing: string,
  network: string,
  isMeant: (sandboxId: string) => boolean = () => true,
): RuleCleanup {
  const ours = commentedRules(listing, network).filter((words) => isMeant(sandboxOf(commentOf(words))));
  // A plugin that was cut short has filled a pod's chain to which nothing jumps yet.
  const touched = ours.flatMap((words) => [words[1] ?? '', words[words.indexOf('-j') + 1] ?? '']);
  const chains = new Set(touched.filter((chain) => /^CNI-(DN-)?[0-9a-f]{8,}$/.test(chain)));
  // Rules inside those chains go with them.
  const rules = ours.map((words) => words.slice(1)).filter(([chain = '']) => !chains.has(chain));
  return { rules, chains: [...chains] };
}

/** The sandboxes that have rules in our network, by their ids. */
export function sandboxesWithRules(listing: string, network: string): readonly string[] {
  const ids = commentedRules(listing, network).map((words) => sandboxOf(commentOf(words)));
  return [...new Set(ids)].filter((id) => id !== '');
}

function commentedRules(listing: string, network: string): readonly (readonly string[])[] {
  const all = listing.split('\n').filter((line) => line.startsWith('-A '));
  return all.map(splitArguments).filter((words) => commentOf(words).includes(`"${network}"`));
}

/** The plugins write the sandbox's id into the comment too: name: "klg0" id: "0123". */
function sandboxOf(comment: string): string {
  return /\bid: "([^"]+)"/.exec(comment)?.[1] ?? '';
}

function commentOf(words: readonly string[]): string {
  const at = words.indexOf('--comment');
  return at < 0 ? '' : (words[at + 1] ?? '');
}

/** Splits a line as iptables prints it: words, or double quotes with backslashes before quotes and backslashes. */
export function splitArguments(line: string): string[] {
  return Array.from(line.matchAll(/"((?:[^"\\]|\\.)*)"?|(\S+)/g), ([, quoted, plain]) =>
    quoted === undefined ? String(plain) : quoted.replaceAll(/\\(.)/g, '$1'),
  );
}

const nat = ['-w', '10', '-t', 'nat'];

export async function listRules(iptables: string, run: Run, signal: AbortSignal): Promise<string> {
  return (await run(iptables, [...nat, '-S'], signal)).stdout;
}

/** Deletes our network's rules in the nat table: all, or those of the sandboxes that are meant. */
export async function removeRules(
  iptables: string,
  network: string,
  run: Run,
  signal: AbortSignal,
  isMeant: (sandboxId: string) => boolean = () => true,
): Promise<Removal> {
  const { rules, chains } = rulesOfNetwork(await listRules(iptables, run, signal), network, isMeant);
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
