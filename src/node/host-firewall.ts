import { type Clock, describeError, KubelingError, type Logger } from '../lib/index.ts';

/** Reads and changes the rules of the machine's packet filter. */
export interface PacketFilter {
  /**
   * Runs a command of the packet filter: resolves with whether it succeeded, or whether the checked
   * rule exists. Rejects when the program cannot be run.
   */
  run(program: 'iptables' | 'ip6tables', args: readonly string[], signal: AbortSignal): Promise<'yes' | 'no'>;
}

/**
 * Rules of the packet filter that block packets of pods and of other machines to services on
 * 127.0.0.0/8.
 */
export interface LoopbackRules {
  /** Whether the rules are installed; false again after the packet filter was flushed. */
  isInPlace(filter: PacketFilter, signal: AbortSignal): Promise<boolean>;
  /** Adds missing rules; idempotent. */
  install(filter: PacketFilter, signal: AbortSignal): Promise<void>;
}

export interface HostFirewallDeps {
  readonly filter: PacketFilter;
  readonly rules: LoopbackRules;
  readonly clock: Clock;
  readonly logger: Logger;
}

const checkEveryMs = 60_000;

/**
 * Drops packets that come from an address outside of 127.0.0.0/8 and are sent to a loopback
 * address. A network plugin sets `route_localnet` on a bridge for host ports, and the kernel then
 * routes such packets in (CVE-2020-8558). Replies to local connections, and packets that a rule for
 * a host port or a service redirected, are accepted.
 */
const loopbackPackets = [
  ...['-d', '127.0.0.0/8', '!', '-s', '127.0.0.0/8'],
  ...['-m', 'conntrack', '!', '--ctstate', 'RELATED,ESTABLISHED,DNAT', '-j', 'DROP'],
];

/** Keeps the loopback rules in the packet filter while the kubelet runs. */
export class HostFirewall {
  readonly #deps: HostFirewallDeps;
  #problem: string | undefined;

  constructor(deps: HostFirewallDeps) {
    this.#deps = deps;
  }

  /**
   * Installs missing rules once. Returns the reason when it could not; the same reason is logged
   * once. Rejects only when aborted.
   */
  async ensure(signal: AbortSignal): Promise<string | undefined> {
    const { filter, rules, logger } = this.#deps;
    const problem = await ensureRules(rules, filter, signal).then(() => undefined, describeError);
    signal.throwIfAborted();
    if (problem !== undefined && problem !== this.#problem)
      logger.warn('Failed to install loopback firewall rules', { err: problem });
    if (problem === undefined && this.#problem !== undefined)
      logger.info('Installed loopback firewall rules');
    this.#problem = problem;
    return problem;
  }

  /** Checks the rules every minute until aborted, then rejects with the reason. */
  async run(signal: AbortSignal): Promise<never> {
    for (;;) {
      await this.ensure(signal);
      await this.#deps.clock.sleep(checkEveryMs, signal);
    }
  }
}

async function ensureRules(rules: LoopbackRules, filter: PacketFilter, signal: AbortSignal): Promise<void> {
  if (!(await rules.isInPlace(filter, signal))) await rules.install(filter, signal);
}

function iptables(filter: PacketFilter, args: readonly string[], signal: AbortSignal): Promise<'yes' | 'no'> {
  return filter.run('iptables', ['-w', '5', ...args], signal);
}

async function add(filter: PacketFilter, args: readonly string[], signal: AbortSignal): Promise<void> {
  if ((await iptables(filter, args, signal)) === 'yes') return;
  throw new KubelingError('FIREWALL_REFUSED', `Cannot add a rule to the packet filter: ${args.join(' ')}`);
}

const chain = 'KUBE-FIREWALL';
/**
 * iptables-legacy and iptables-nft have separate tables; other programs detect by this chain which
 * of the two is in use.
 */
const hint = ['-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT'];
const clusterRule = [
  chain,
  ...['-m', 'comment', '--comment', 'block incoming localnet connections'],
  ...loopbackPackets,
];

/**
 * The chain of the Go kubelet. kube-proxy and network plugins use it too, so it is never removed.
 */
export const clusterLoopbackRules: LoopbackRules = {
  async isInPlace(filter, signal) {
    const jumps = await iptables(filter, ['-C', 'INPUT', '-j', chain], signal);
    return jumps === 'yes' && (await iptables(filter, ['-C', ...clusterRule], signal)) === 'yes';
  },
  async install(filter, signal) {
    await iptables(filter, hint, signal);
    await filter.run('ip6tables', ['-w', '5', ...hint], signal).catch(() => {});
    await iptables(filter, ['-N', chain], signal);
    for (const from of ['OUTPUT', 'INPUT']) {
      if ((await iptables(filter, ['-C', from, '-j', chain], signal)) === 'no')
        await add(filter, ['-I', from, '1', '-j', chain], signal);
    }
    if ((await iptables(filter, ['-C', ...clusterRule], signal)) === 'no')
      await add(filter, ['-A', ...clusterRule], signal);
  },
};

/**
 * When more copies of a rule than this were deleted, the packet filter does not really delete the
 * rule: a node adds its rule only once.
 */
const maxCopies = 16;

function homeRule(name: string): readonly string[] {
  return ['-m', 'comment', '--comment', `kubeling ${name}: block packets to loopback`, ...loopbackPackets];
}

/**
 * The firewall rule of one data directory, named in its comment. Several nodes on one machine each
 * have their own rule, so that removing one keeps the others and the chain of the Go kubelet.
 */
export function homeLoopbackRules(name: string): LoopbackRules {
  const rule = homeRule(name);
  return {
    isInPlace: async (filter, signal) => (await iptables(filter, ['-C', 'INPUT', ...rule], signal)) === 'yes',
    // The rule is inserted before rules of the machine that accept packets by their interface.
    install: (filter, signal) => add(filter, ['-I', 'INPUT', '1', ...rule], signal),
  };
}

/** Removes the rule of one data directory and returns how many copies there were. */
export async function removeHomeLoopbackRules(
  name: string,
  filter: PacketFilter,
  signal: AbortSignal,
): Promise<number> {
  const rule = homeRule(name);
  for (let removed = 0; removed < maxCopies; removed++) {
    if ((await iptables(filter, ['-D', 'INPUT', ...rule], signal)) === 'no') return removed;
  }
  throw new KubelingError('FIREWALL_REFUSED', `Cannot remove all rules of ${name} from the packet filter`);
}
