import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { aPod } from '../../../test/fakes/pods.ts';
import type { PodSpec } from '../../kinds/index.ts';
import { checkResolvConf, type DnsSettings, parseResolvConf, podDns } from './dns.ts';

const settings: DnsSettings = {
  clusterDns: ['10.96.0.10'],
  clusterDomain: 'cluster.local',
  nodeIps: ['192.0.2.1'],
  resolvConf: 'nameserver 8.8.8.8\nsearch corp.example\noptions timeout:2 rotate\n',
};
const made = (spec: Partial<PodSpec>, other: Partial<DnsSettings> = {}) =>
  podDns(aPod({ spec }), { ...settings, ...other });
const host = { servers: ['8.8.8.8'], searches: ['corp.example'], options: ['timeout:2', 'rotate'] };
const cluster = {
  servers: ['10.96.0.10'],
  searches: ['default.svc.cluster.local', 'svc.cluster.local', 'cluster.local', 'corp.example'],
  options: ['ndots:5'],
};
const nothing = { servers: [], searches: [], options: [] };

const policies: readonly [string, Partial<PodSpec>, Partial<DnsSettings>, object][] = [
  ['None', { dnsPolicy: 'None' }, {}, nothing],
  ['Default', { dnsPolicy: 'Default' }, {}, host],
  ['ClusterFirst', { dnsPolicy: 'ClusterFirst' }, {}, cluster],
  ['ClusterFirst on the host network', { dnsPolicy: 'ClusterFirst', hostNetwork: true }, {}, host],
  ['ClusterFirstWithHostNet', { dnsPolicy: 'ClusterFirstWithHostNet', hostNetwork: true }, {}, cluster],
  ['an unknown policy', { dnsPolicy: 'Odd' }, {}, cluster],
  [
    'ClusterFirst without a cluster domain',
    { dnsPolicy: 'ClusterFirst' },
    { clusterDomain: '' },
    { ...cluster, searches: ['corp.example'] },
  ],
  [
    'Default without a resolv.conf',
    { dnsPolicy: 'Default' },
    { resolvConf: undefined },
    { servers: ['127.0.0.1'], searches: ['.'], options: [] },
  ],
  [
    'Default without a resolv.conf on a dual-stack node',
    { dnsPolicy: 'Default' },
    { resolvConf: undefined, nodeIps: ['fd00::1', '192.0.2.1'] },
    { servers: ['::1', '127.0.0.1'], searches: ['.'], options: [] },
  ],
  [
    'ClusterFirst without a resolv.conf',
    { dnsPolicy: 'ClusterFirst' },
    { resolvConf: undefined },
    { ...cluster, searches: cluster.searches.slice(0, 3) },
  ],
];
for (const [what, spec, other, expected] of policies) {
  test(`a pod's resolver configuration follows its DNS policy: ${what}`, () => {
    const { config, events, nodeEvents } = made(spec, other);
    assert.deepEqual(config, expected);
    assert.deepEqual([events, nodeEvents], [[], []]);
  });
}

test("on a standalone node a ClusterFirst pod uses the host's name servers without an event", () => {
  const { config, events, nodeEvents } = made({ dnsPolicy: 'ClusterFirst' }, { clusterDns: 'no-cluster' });
  assert.deepEqual(config, host);
  assert.deepEqual([events, nodeEvents], [[], []]);
});

test("without configured cluster DNS a ClusterFirst pod uses the host's name servers, with events on pod and node", () => {
  const { config, events, nodeEvents } = made({ dnsPolicy: 'ClusterFirst' }, { clusterDns: [] });
  assert.deepEqual(config, host);
  const message =
    'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.';
  assert.deepEqual(nodeEvents, [{ type: 'Warning', reason: 'MissingClusterDNS', message }]);
  assert.deepEqual(events, [
    { type: 'Warning', reason: 'MissingClusterDNS', message: `pod: "web_default(uid-1)". ${message}` },
  ]);
});

test("adds the pod's dnsConfig, whose options override those of the policy", () => {
  const dnsConfig = {
    nameservers: ['1.1.1.1', '10.96.0.10'],
    searches: ['my.example', 'cluster.local'],
    options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }],
  };
  assert.deepEqual(made({ dnsPolicy: 'ClusterFirst', dnsConfig }).config, {
    servers: ['10.96.0.10', '1.1.1.1'],
    searches: [...cluster.searches, 'my.example'],
    options: ['ndots:2', 'edns0'],
  });
});

test('omits and reports name servers beyond the limit', () => {
  const { config, events } = made({ dnsPolicy: 'None', dnsConfig: { nameservers: ['1', '2', '3', '4'] } });
  assert.deepEqual(config.servers, ['1', '2', '3']);
  assert.deepEqual(events, [
    {
      type: 'Warning',
      reason: 'DNSConfigForming',
      message:
        'Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 1 2 3',
    },
  ]);
});

const many = Array.from({ length: 33 }, (_, index) => `d${index}`);
const cuts: readonly [string, string[], number][] = [
  ['more than 32', many, 32],
  ['one longer than 253 characters', ['a', 'b'.repeat(254), 'c'], 2],
  [
    '2049 characters in total',
    [...Array.from({ length: 8 }, (_, index) => `${index}${'x'.repeat(252)}`), 'y'.repeat(18)],
    8,
  ],
];
for (const [what, searches, kept] of cuts) {
  test(`search domains: omits and reports ${what}`, () => {
    const { config, events } = made({ dnsPolicy: 'None', dnsConfig: { searches } });
    assert.equal(config.searches.length, kept);
    assert.equal(
      events[0]?.message,
      `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${config.searches.join(' ')}`,
    );
  });
}

test('search domains: 2048 characters in total are within the limit', () => {
  const searches = [...Array.from({ length: 8 }, (_, index) => `${index}${'x'.repeat(252)}`), 'y'.repeat(16)];
  assert.equal(searches.join(' ').length, 2048);
  assert.deepEqual(made({ dnsPolicy: 'None', dnsConfig: { searches } }).events, []);
});

test('the resolver configuration of a pod with any search domains is within the limits', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ minLength: 1, maxLength: 300 }), { maxLength: 60 }), (searches) => {
      const { config, events } = made({ dnsPolicy: 'None', dnsConfig: { searches } });
      assert.ok(config.searches.length <= 32 && config.searches.join(' ').length <= 2048);
      assert.equal(events.length, config.searches.length === new Set(searches).size ? 0 : 1);
    }),
  );
});

test('resolv.conf: merges servers, uses the last search line, and overrides options by name', () => {
  const text =
    '# a comment\nnameserver 1.1.1.1\n nameserver\t2.2.2.2 \nsearch a b\nsearch c. . d\noptions ndots:1 rotate\noptions ndots:3\nsortlist x\n\n';
  assert.deepEqual(parseResolvConf(text), {
    servers: ['1.1.1.1', '2.2.2.2'],
    searches: ['c', 'd'],
    options: ['ndots:3', 'rotate'],
  });
});

test('resolv.conf: rejects a nameserver line without an address', () => {
  assert.throws(() => parseResolvConf('nameserver\n'), {
    code: 'SANDBOX_CONFIG',
    message: /nameserver list is empty/,
  });
});

test('resolv.conf: checkResolvConf reports exceeded limits', () => {
  const searches = (names: readonly string[]) =>
    checkResolvConf('/r', `search ${names.join(' ')}`, 'cluster.local');
  assert.equal(searches(many.slice(0, 29)), undefined);
  assert.match(searches(many.slice(0, 30)) ?? '', /more than 29 domains/);
  assert.match(searches(['x'.repeat(254)]) ?? '', /253/);
  assert.match(searches(Array.from({ length: 9 }, () => 'x'.repeat(250))) ?? '', /2048/);
});
