import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { createPacketFilter } from '../../src/cli/data-directory/firewall.ts';
import { cancelledError, collectLogs, realClock } from '../../src/lib/index.ts';
import {
  HostFirewall,
  homeLoopbackRules,
  removeHomeLoopbackRules,
  clusterLoopbackRules as rules,
} from '../../src/node/index.ts';
import { until } from '../fakes/until.ts';

/** A separate network namespace, so that the machine's network stays unchanged. */
const network = `kubeling-firewall-${process.pid}`;
const inside = ['ip', 'netns', 'exec', network];

function said(...[file = '', ...args]: readonly string[]): string {
  return execFileSync(file, args, { encoding: 'utf8' });
}

before(() => said('ip', 'netns', 'add', network));
after(() => said('ip', 'netns', 'del', network));

test('blocks access to loopback addresses from other hosts in the real packet filter with one rule, also after repeated syncs', async () => {
  const clock = realClock();
  const { logger, records } = collectLogs(clock);
  const listed = () => said(...inside, 'iptables', '-w', '5', '-S');
  const round = async () => {
    const stop = new AbortController();
    const filter = createPacketFilter(clock, inside);
    const running = new HostFirewall({ filter, rules, clock, logger }).run(stop.signal).catch(() => {});
    await until('the rule is there', () => /-A KUBE-FIREWALL .* -j DROP/.test(listed()));
    stop.abort(cancelledError('the sync is finished'));
    await running;
  };
  await round();
  const first = listed();
  assert.match(first, /^-A INPUT -j KUBE-FIREWALL$/m);
  assert.match(first, /^-A OUTPUT -j KUBE-FIREWALL$/m);
  assert.match(
    first,
    /^-A KUBE-FIREWALL (?=.*! -s 127\.0\.0\.0\/8)(?=.*-d 127\.0\.0\.0\/8)(?=.*! --ctstate RELATED,ESTABLISHED,DNAT).* -j DROP$/m,
  );
  await round();
  assert.equal(listed(), first);
  assert.match(said(...inside, 'iptables', '-w', '5', '-t', 'mangle', '-S'), /^-N KUBE-IPTABLES-HINT$/m);
  assert.deepEqual([...records], []);
});

test('keeps the firewall rules of other data directories and of a cluster when it removes its own', async () => {
  const clock = realClock();
  const { logger } = collectLogs(clock);
  const filter = createPacketFilter(clock, inside);
  const signal = new AbortController().signal;
  const listed = () =>
    said(...inside, 'iptables', '-w', '5', '-S')
      .split('\n')
      .toSorted();
  const [a, b] = ['klgaaaaaaaa', 'klgbbbbbbbb'].map((name) => homeLoopbackRules(name));
  const ensure = async (each = rules) =>
    assert.equal(await new HostFirewall({ filter, rules: each, clock, logger }).ensure(signal), undefined);
  await ensure(rules);
  const before = listed();
  await ensure(a);
  const withA = listed();
  assert.equal(withA.filter((line) => line.includes('kubeling klgaaaaaaaa:')).length, 1);
  await ensure(b);
  await ensure(rules);
  await ensure(a);
  assert.equal(await removeHomeLoopbackRules('klgbbbbbbbb', filter, signal), 1);
  assert.equal(await removeHomeLoopbackRules('klgbbbbbbbb', filter, signal), 0);
  const left = listed();
  assert.ok(left.some((line) => /^-A KUBE-FIREWALL .*-j DROP$/.test(line)));
  assert.ok(left.some((line) => /^-A INPUT .*"kubeling klgaaaaaaaa:.*-j DROP$/.test(line)));
  assert.equal(await removeHomeLoopbackRules('klgaaaaaaaa', filter, signal), 1);
  assert.deepEqual(listed(), before);
});
