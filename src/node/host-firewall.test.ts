import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { cancelledError, collectLogs } from '../lib/index.ts';
import {
  clusterLoopbackRules,
  HostFirewall,
  homeLoopbackRules,
  type PacketFilter,
  removeHomeLoopbackRules,
} from './host-firewall.ts';

/** A fake iptables that stores chains and rules as text. */
class TestFilter implements PacketFilter {
  readonly rules: string[] = [];
  readonly chains = new Set<string>();
  isThere = true;
  calls = 0;

  async run(program: string, args: readonly string[]): Promise<'yes' | 'no'> {
    this.calls++;
    if (!this.isThere) throw new Error(`no ${program}`);
    const [verb = '', chain = '', ...rule] = args.slice(args.indexOf('-t') < 0 ? 2 : 4);
    const position = verb === '-I' ? rule.slice(1) : rule;
    const text = `${chain} ${position.join(' ')}`;
    if (verb === '-C') return this.rules.includes(text) ? 'yes' : 'no';
    if (verb === '-D') {
      const at = this.rules.indexOf(text);
      if (at >= 0) this.rules.splice(at, 1);
      return at >= 0 ? 'yes' : 'no';
    }
    if (verb === '-N' && this.chains.has(`${program} ${chain}`)) return 'no';
    if (verb === '-N') this.chains.add(`${program} ${chain}`);
    else this.rules.push(text);
    return 'yes';
  }
}

function createHarness(rules = clusterLoopbackRules) {
  const clock = new VirtualClock();
  const filter = new TestFilter();
  const { logger, records } = collectLogs(clock);
  const stop = new AbortController();
  const running = new HostFirewall({ filter, rules, clock, logger }).run(stop.signal).catch(() => {});
  const end = async () => {
    stop.abort(cancelledError('the test is over'));
    await running;
  };
  return { clock, filter, records, end };
}

const drop =
  'KUBE-FIREWALL -m comment --comment block incoming localnet connections -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP';
const all = ['OUTPUT -j KUBE-FIREWALL', 'INPUT -j KUBE-FIREWALL', drop];

test('drops packets to loopback from other machines, and adds each firewall rule once', async () => {
  const { clock, filter, end } = createHarness();
  await clock.advance(1_000);
  assert.deepEqual(filter.rules, all);
  assert.deepEqual(
    [...filter.chains],
    ['iptables KUBE-IPTABLES-HINT', 'ip6tables KUBE-IPTABLES-HINT', 'iptables KUBE-FIREWALL'],
  );
  const before = filter.calls;
  await clock.advance(60_000);
  assert.deepEqual(filter.rules, all);
  assert.equal(filter.calls - before, 2);
  await end();
});

test('restores removed firewall rules within a minute', async () => {
  const { clock, filter, end } = createHarness();
  await clock.advance(1_000);
  filter.rules.length = 0;
  filter.chains.clear();
  await clock.advance(60_000);
  assert.deepEqual(filter.rules, all);
  await end();
});

test('logs once that the machine has no packet filter', async () => {
  const { clock, filter, records, end } = createHarness();
  filter.isThere = false;
  await clock.advance(180_000);
  assert.equal([...records].length, 1);
  await end();
});

const homeRule = (name: string) =>
  `INPUT -m comment --comment kubeling ${name}: block packets to loopback ${drop.slice(drop.indexOf('-d '))}`;

test('adds the rule of a data directory once, and again after the packet filter was flushed', async () => {
  const { clock, filter, records, end } = createHarness(homeLoopbackRules('klga'));
  await clock.advance(1_000);
  assert.deepEqual(filter.rules, [homeRule('klga')]);
  await clock.advance(60_000);
  assert.deepEqual(filter.rules, [homeRule('klga')]);
  filter.rules.length = 0;
  await clock.advance(60_000);
  assert.deepEqual(filter.rules, [homeRule('klga')]);
  assert.deepEqual([...filter.chains], []);
  assert.deepEqual([...records], []);
  await end();
});

test('ensure returns the reason why a firewall rule could not be installed', async () => {
  const clock = new VirtualClock();
  const filter = new TestFilter();
  filter.isThere = false;
  const { logger, records } = collectLogs(clock);
  const firewall = new HostFirewall({ filter, rules: homeLoopbackRules('klga'), clock, logger });
  const signal = new AbortController().signal;
  assert.match((await firewall.ensure(signal)) ?? '', /no iptables/);
  await firewall.ensure(signal);
  assert.equal([...records].length, 1);
  filter.isThere = true;
  assert.equal(await firewall.ensure(signal), undefined);
  assert.deepEqual(filter.rules, [homeRule('klga')]);
});

test('removes the firewall rule of one data directory, and keeps the rules of other data directories and the rule in the chain of the Go kubelet', async () => {
  const filter = new TestFilter();
  const signal = new AbortController().signal;
  for (const each of [clusterLoopbackRules, homeLoopbackRules('klga'), homeLoopbackRules('klgb')])
    await each.install(filter, signal);
  // The rule is added a second time, as an administrator might do.
  await homeLoopbackRules('klgb').install(filter, signal);
  assert.equal(await removeHomeLoopbackRules('klgb', filter, signal), 2);
  assert.deepEqual(filter.rules, [...all, homeRule('klga')]);
});

test('fails when the packet filter reports the deletion of a rule as successful but keeps the rule', async () => {
  const filter: PacketFilter = { run: async () => 'yes' };
  const removing = removeHomeLoopbackRules('klga', filter, new AbortController().signal);
  await assert.rejects(removing, { code: 'FIREWALL_REFUSED' });
});
