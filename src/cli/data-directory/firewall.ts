import { programDirs } from '../../containerd/index.ts';
import type { CriClient } from '../../cri/index.ts';
import { type Clock, describeError, KubelingError, type Logger, runCommand } from '../../lib/index.ts';
import type { PacketFilter } from '../../node/index.ts';
import { HostFirewall, homeLoopbackRules, removeHomeLoopbackRules } from '../../node/index.ts';
import type { CommandContext } from '../command.ts';
import { statusPrinter } from '../command.ts';
import type { DataDirectory } from './data-directory.ts';
import { dataDirectoryName } from './runtime.ts';

/**
 * Adds a firewall rule that protects services on 127.0.0.0/8 from pods and the network, whatever
 * runtime the pods use. The rule is in place when this returns. If the machine has no packet
 * filter, the node runs without the rule and the user is informed.
 */
export async function openFirewall(
  directory: DataDirectory,
  logger: Logger,
  context: CommandContext,
): Promise<HostFirewall> {
  const { clock, signal } = context;
  const rules = homeLoopbackRules(dataDirectoryName(directory));
  const firewall = new HostFirewall({ filter: createPacketFilter(clock), rules, clock, logger });
  const problem = await firewall.ensure(signal);
  if (problem !== undefined)
    statusPrinter(context)(
      'network',
      `services on 127.0.0.0/8 of this machine are open to pods once a pod has a hostPort, because the packet filter could not be changed: ${problem}`,
    );
  return firewall;
}

/** Removes only the rule of this data directory. Returns why it could not be removed. */
export async function removeFirewall(
  directory: DataDirectory,
  context: CommandContext,
): Promise<readonly string[]> {
  const { clock, signal, stdout } = context;
  try {
    const removed = await removeHomeLoopbackRules(
      dataDirectoryName(directory),
      createPacketFilter(clock),
      signal,
    );
    if (removed > 0) stdout.write(`removed    ${removed} loopback firewall rules\n`);
    return [];
  } catch (error) {
    signal.throwIfAborted();
    // If the packet filter is not installed, no rule was added either.
    const isMissing = error instanceof KubelingError && error.code === 'COMMAND_NOT_FOUND';
    return isMissing ? [] : [describeError(error)];
  }
}

const withinMs = 15_000;
/** Exit codes of iptables when a rule or chain does not exist, or exists already. */
const refusals: readonly number[] = [1, 2];

/**
 * Creates access to the packet filter of this machine, or of the network namespace that the command
 * prefix enters. Also searches the usual system directories for the program, as runtimes do for
 * network plugins, because the PATH after su or sudo may lack /usr/sbin.
 */
export function createPacketFilter(clock: Clock, before: readonly string[] = []): PacketFilter {
  const env = { ...process.env, PATH: programDirs(process.env, undefined).join(':') };
  return {
    async run(program, rest, signal) {
      const [file = program, ...args] = [...before, program, ...rest];
      const { end, stderr } = await runCommand({ file, args, clock, env, deadlineMs: withinMs }, signal);
      if (end.kind === 'exited' && end.code === 0) return 'yes';
      if (end.kind === 'exited' && refusals.includes(end.code)) return 'no';
      throw new KubelingError('FIREWALL_REFUSED', `Cannot run ${program}: ${stderr.trim().slice(0, 200)}`);
    },
  };
}

export interface FirewallRuleCleanerDeps {
  readonly clock: Clock;
  readonly cri: Pick<CriClient, 'listPodSandbox'>;
  readonly rules: {
    sandboxesWithRules(signal: AbortSignal): Promise<readonly string[]>;
    removeRulesOf(sandboxIds: ReadonlySet<string>, signal: AbortSignal): Promise<number>;
  };
  readonly print: (text: string) => void;
}

const periodMs = 30_000;

/**
 * Removes firewall rules left by sandboxes of previous runs: a network plugin that was interrupted
 * does not remove its rules when it is called again. Rules of newer sandboxes stay, because the
 * runtime does not list a sandbox while it is being created.
 */
export class FirewallRuleCleaner {
  readonly #deps: FirewallRuleCleanerDeps;
  /** IDs of the sandboxes of previous runs that may leave firewall rules behind. */
  #early: ReadonlySet<string> = new Set();

  constructor(deps: FirewallRuleCleanerDeps) {
    this.#deps = deps;
  }

  /** Lists the sandboxes with rules. Must be called before this run creates its first sandbox. */
  async open(signal: AbortSignal): Promise<void> {
    const withRules = await this.#deps.rules.sandboxesWithRules(signal);
    this.#early = new Set([...withRules, ...(await this.#sandboxes(signal))]);
  }

  /**
   * Removes leftover rules periodically until all sandboxes of previous runs are deleted. Never
   * rejects.
   */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.#early.size > 0) {
      await this.#sweep(signal).catch((error) => {
        if (!signal.aborted)
          this.#deps.print(`cannot remove firewall rules of earlier pods: ${describeError(error)}`);
      });
      if (this.#early.size > 0) await this.#deps.clock.sleep(periodMs, signal).catch(() => {});
    }
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    const there = new Set(await this.#sandboxes(signal));
    const deleted = this.#early.difference(there);
    if (deleted.size === 0) return;
    const removed = await this.#deps.rules.removeRulesOf(deleted, signal);
    if (removed > 0) this.#deps.print('removed firewall rules that pods of an earlier run had left');
    this.#early = this.#early.difference(deleted);
  }

  async #sandboxes(signal: AbortSignal): Promise<readonly string[]> {
    return (await this.#deps.cri.listPodSandbox({}, signal)).items.map(({ id }) => id);
  }
}
