import { type Clock, describeError, KubelingError, type Logger } from '../lib/index.ts';

/** How the rules of the machine's packet filter are read and changed. */
export interface PacketFilter {
  /** Whether it did what it was told, or found what it was asked for. Rejects where the program cannot be run. */
  run(program: 'iptables' | 'ip6tables', args: readonly string[], signal: AbortSignal): Promise<'yes' | 'no'>;
}

export interface HostFirewallDeps {
  readonly filter: PacketFilter;
  readonly clock: Clock;
  readonly logger: Logger;
}

const chain = 'KUBE-FIREWALL';
/** By where it is, others see which of the two kinds of iptables is in use here. */
const hint = ['-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT'];
const lookEveryMs = 60_000;

/**
 * Connections from elsewhere to loopback, which routes to it may let in. Answers to our own, and what was sent there on
 * purpose, as to the port of a service, pass.
 */
const dropStrangers = [
  ...['-m', 'comment', '--comment', 'block incoming localnet connections'],
  ...['-d', '127.0.0.0/8', '!', '-s', '127.0.0.0/8'],
  ...['-m', 'conntrack', '!', '--ctstate', 'RELATED,ESTABLISHED,DNAT', '-j', 'DROP'],
];

/**
 * Keeps what listens on the machine's loopback for the machine itself, whatever others route there, and lets them see
 * which packet filter is in use. The rules outlive the kubelet, and are the same that others of a cluster make.
 */
export class HostFirewall {
  readonly #deps: HostFirewallDeps;

  constructor(deps: HostFirewallDeps) {
    this.#deps = deps;
  }

  /** Until it is aborted. A machine without such a filter is told of once, and left alone. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#deps;
    let told: string | undefined;
    for (;;) {
      try {
        await this.#ensure(signal);
        if (told !== undefined) logger.info('The rules of the packet filter are in place');
        told = undefined;
      } catch (error) {
        signal.throwIfAborted();
        const why = describeError(error);
        if (why !== told) logger.warn('The rules of the packet filter cannot be made', { because: why });
        told = why;
      }
      await clock.sleep(lookEveryMs, signal);
    }
  }

  async #ensure(signal: AbortSignal): Promise<void> {
    const ask = (args: readonly string[]) => this.#deps.filter.run('iptables', ['-w', '5', ...args], signal);
    const add = async (args: readonly string[]) => {
      if ((await ask(args)) === 'yes') return;
      throw new KubelingError(
        'FIREWALL_REFUSED',
        `Cannot make a rule of the packet filter: ${args.join(' ')}`,
      );
    };
    // Whoever empties the filter takes this one too.
    if ((await ask(['-C', 'INPUT', '-j', chain])) === 'yes' && (await ask(isThere())) === 'yes') return;
    await ask(hint);
    await this.#deps.filter.run('ip6tables', ['-w', '5', ...hint], signal).catch(() => {});
    await ask(['-N', chain]);
    for (const from of ['OUTPUT', 'INPUT']) {
      if ((await ask(['-C', from, '-j', chain])) === 'no') await add(['-I', from, '1', '-j', chain]);
    }
    if ((await ask(isThere())) === 'no') await add(['-A', chain, ...dropStrangers]);
  }
}

function isThere(): readonly string[] {
  return ['-C', chain, ...dropStrangers];
}
