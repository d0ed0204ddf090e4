import { describeError } from '../lib/index.ts';
import type { Run } from './machine.ts';
import type { Removal } from './mounts.ts';

/** The iptables rules and chains to delete: rules first, because they reference the chains. */
export interface RuleCleanup {
  /** The arguments of `iptables -D` for each rule. */
  readonly rules: readonly (readonly string[])[];
  readonly chains: readonly string[];
}

/**
 * Finds the rules of the given network in the output of `iptables -S`. CNI plugins put the quoted
 * network name in the comment of each rule; chains referenced by such rules belong to one pod.
 * Chains shared by all networks are left out.
 */
export function rulesOfNetwork(
  listing: string,
  network: string,
  isMeant: (sandboxId: string) => boolean = () => true,
): RuleCleanup {
  const ours = commentedRules(listing, network).filter((words) => isMeant(sandboxOf(commentOf(words))));
  // An interrupted plugin may have filled the chain of a pod without adding the rule that
  // references the chain.
  const touched = ours.flatMap((words) => [words[1] ?? '', words[words.indexOf('-j') + 1] ?? '']);
  const chains = new Set(touched.filter((chain) => /^CNI-(DN-)?[0-9a-f]{8,}$/.test(chain)));
  // The rules inside the chains to delete are not listed, because they are deleted with their
  // chain.
  const rules = ours.map((words) => words.slice(1)).filter(([chain = '']) => !chains.has(chain));
  return { rules, chains: [...chains] };
}

/** Returns the IDs of sandboxes with rules in the given network. */
export function sandboxesWithRules(listing: string, network: string): readonly string[] {
  const ids = commentedRules(listing, network).map((words) => sandboxOf(commentOf(words)));
  return [...new Set(ids)].filter((id) => id !== '');
}

function commentedRules(listing: string, network: string): readonly (readonly string[])[] {
  const all = listing.split('\n').filter((line) => line.startsWith('-A '));
  return all.map(splitArguments).filter((words) => commentOf(words).includes(`"${network}"`));
}

/** Parses the sandbox ID from a rule comment: name: "klg0" id: "0123". */
function sandboxOf(comment: string): string {
  return /\bid: "([^"]+)"/.exec(comment)?.[1] ?? '';
}

function commentOf(words: readonly string[]): string {
  const at = words.indexOf('--comment');
  return at < 0 ? '' : (words[at + 1] ?? '');
}

/**
 * Splits a line of iptables output into words; quoted words may contain escaped quotes and
 * backslashes.
 */
export function splitArguments(line: string): string[] {
  return Array.from(line.matchAll(/"((?:[^"\\]|\\.)*)"?|(\S+)/g), ([, quoted, plain]) =>
    quoted === undefined ? String(plain) : quoted.replaceAll(/\\(.)/g, '$1'),
  );
}

const nat = ['-w', '10', '-t', 'nat'];

export async function listRules(iptables: string, run: Run, signal: AbortSignal): Promise<string> {
  return (await run(iptables, [...nat, '-S'], signal)).stdout;
}

/**
 * Deletes rules of the given network in the nat table: all of them, or those of the given
 * sandboxes.
 */
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
