import { describeError, KubelingError, type Logger } from '../lib/index.ts';
import { HostFirewall, homeLoopbackRules, removeHomeLoopbackRules } from '../node/index.ts';
import type { CommandContext } from './command.ts';
import type { Home } from './home.ts';
import { homeName } from './home-runtime.ts';
import { hostPacketFilter } from './packet-filter.ts';
import { sayTo } from './say.ts';

/**
 * Keeps pods and the network from services on 127.0.0.0/8, whichever runtime the pods are on: the rule is in place when
 * this returns. Without a packet filter the node runs all the same, and its user is told.
 */
export async function openHomeFirewall(
  home: Home,
  logger: Logger,
  context: CommandContext,
): Promise<HostFirewall> {
  const { clock, signal } = context;
  const rules = homeLoopbackRules(homeName(home));
  const firewall = new HostFirewall({ filter: hostPacketFilter(clock), rules, clock, logger });
  const problem = await firewall.ensure(signal);
  if (problem !== undefined)
    sayTo(context)(
      'network',
      `services on 127.0.0.0/8 of this machine are open to pods once a pod has a hostPort, as the packet filter could not be changed: ${problem}`,
    );
  return firewall;
}

/** Removes the rule of this data directory and no other. Returns why it could not be removed. */
export async function removeHomeFirewall(home: Home, context: CommandContext): Promise<readonly string[]> {
  const { clock, signal, stdout } = context;
  try {
    const removed = await removeHomeLoopbackRules(homeName(home), hostPacketFilter(clock), signal);
    if (removed > 0) stdout.write(`removed    ${removed} loopback firewall rules\n`);
    return [];
  } catch (error) {
    signal.throwIfAborted();
    // Without the program no rule was added either.
    const isMissing = error instanceof KubelingError && error.code === 'COMMAND_NOT_FOUND';
    return isMissing ? [] : [describeError(error)];
  }
}
