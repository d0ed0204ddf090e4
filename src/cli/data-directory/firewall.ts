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
 * Keeps pods and the network from services on 127.0.0.0/8, whichever runtime the pods are on: the rule is in place when
 * this returns. Without a packet filter the node runs all the same, and its user is told.
 */
export async function openFirewall(
  home: DataDirectory,
  logger: Logger,
  context: CommandContext,
): Promise<HostFirewall> {
  const { clock, signal } = context;
  const rules = homeLoopbackRules(dataDirectoryName(home));
  const firewall = new HostFirewall({ filter: createPacketFilter(clock), rules, clock, logger });
  const problem = await firewall.ensure(signal);
  if (problem !== undefined)
    statusPrinter(context)(
      'network',
      `services on 127.0.0.0/8 of this machine are open to pods once a pod has a hostPort, as the packet filter could not be changed: ${problem}`,
    );
  return firewall;
}

/** Removes the rule of this data directory and no other. Returns why it could not be removed. */
export async function removeFirewall(
  home: DataDirectory,
  context: CommandContext,
): Promise<readonly string[]> {
  const { clock, signal, stdout } = context;
  try {
    const removed = await removeHomeLoopbackRules(dataDirectoryName(home), createPacketFilter(clock), signal);
    if (removed > 0) stdout.write(`removed    ${removed} loopback firewall rules\n`);
    return [];
  } catch (error) {
    signal.throwIfAborted();
    // Without the program no rule was added either.
    const isMissing = error instanceof KubelingError && error.code === 'COMMAND_NOT_FOUND';
    return isMissing ? [] : [describeError(error)];
  }
}

const withinMs = 15_000;
/** How the programs end when a rule or chain is not there, or is there already. */
const refusals: readonly number[] = [1, 2];

/**
 * The packet filter of this machine, or of the network namespace that the words before the program enter. The program
 * is found in the usual directories too, as the runtime finds it for network plugins: a user may have become root
 * without /usr/sbin in the PATH.
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
  readonly say: (text: string) => void;
}

const periodMs = 30_000;

/**
 * Removes firewall rules that sandboxes of earlier runs leave: a network plugin that was cut short by the end of who
 * had asked for it does not find its rules the second time. Sandboxes that were made since are left alone, as the
 * runtime may not tell of one while it is being made.
 */
export class FirewallRuleCleaner {
  readonly #deps: FirewallRuleCleanerDeps;
  /** Sandboxes from before this run that may still leave something. */
  #early: ReadonlySet<string> = new Set();

  constructor(deps: FirewallRuleCleanerDeps) {
    this.#deps = deps;
  }

  /** To be called before the first sandbox of this run is made. */
  async open(signal: AbortSignal): Promise<void> {
    const withRules = await this.#deps.rules.sandboxesWithRules(signal);
    this.#early = new Set([...withRules, ...(await this.#sandboxes(signal))]);
  }

  /** Looks from time to time until all of them are gone. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.#early.size > 0) {
      await this.#sweep(signal).catch((error) => {
        if (!signal.aborted)
          this.#deps.say(`cannot remove firewall rules of earlier pods: ${describeError(error)}`);
      });
      if (this.#early.size > 0) await this.#deps.clock.sleep(periodMs, signal).catch(() => {});
    }
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    const there = new Set(await this.#sandboxes(signal));
    const gone = this.#early.difference(there);
    if (gone.size === 0) return;
    const removed = await this.#deps.rules.removeRulesOf(gone, signal);
    if (removed > 0) this.#deps.say('firewall rules that pods of an earlier run had left are removed');
    this.#early = this.#early.difference(gone);
  }

  async #sandboxes(signal: AbortSignal): Promise<readonly string[]> {
    return (await this.#deps.cri.listPodSandbox({}, signal)).items.map(({ id }) => id);
  }
}
