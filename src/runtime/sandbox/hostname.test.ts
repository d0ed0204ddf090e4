import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import type { PodSpec } from '../../kinds/index.ts';
import { hostsFile, kernelHostname, podHostname } from './hostname.ts';

const made = (spec: Partial<PodSpec>, name = 'web') =>
  podHostname(aPod({ metadata: { name }, spec }), 'cluster.local');

const names: readonly [string, Partial<PodSpec>, string, { host: string; domain: string }][] = [
  ["the pod's name", {}, 'web', { host: 'web', domain: '' }],
  ['the hostname of the spec', { hostname: 'busy' }, 'web', { host: 'busy', domain: '' }],
  ['a subdomain', { subdomain: 'db' }, 'web', { host: 'web', domain: 'db.default.svc.cluster.local' }],
  [
    'hostnameOverride, without a domain',
    { hostnameOverride: 'a.b', subdomain: 'db' },
    'web',
    { host: 'a.b', domain: '' },
  ],
  ['a name that is truncated', {}, 'x'.repeat(70), { host: 'x'.repeat(63), domain: '' }],
  [
    'a truncation ending in dashes and dots',
    {},
    `${'x'.repeat(60)}.-.more`,
    { host: 'x'.repeat(60), domain: '' },
  ],
];
for (const [what, spec, name, expected] of names) {
  test(`a pod's hostname and domain: ${what}`, () => assert.deepEqual(made(spec, name), expected));
}

const refusals: readonly [Partial<PodSpec>, RegExp][] = [
  [{ hostname: 'Not_ok' }, /^pod Hostname "Not_ok" is not a valid DNS label: /],
  [{ hostname: 'a'.repeat(64) }, /^pod Hostname "a+" is not a valid DNS label: /],
  [{ subdomain: 'a.b' }, /^pod Subdomain "a.b" is not a valid DNS label: /],
  [{ hostnameOverride: 'a..b' }, /^pod HostnameOverride "a..b" is not a valid DNS subdomain: /],
  [{ hostnameOverride: '' }, /^pod HostnameOverride "" is not a valid DNS subdomain: /],
];
for (const [spec, message] of refusals) {
  test(`rejects the invalid hostname ${JSON.stringify(spec)}`, () => {
    assert.throws(() => made(spec), { code: 'SANDBOX_CONFIG', message });
  });
}

test('the kernel hostname is the short name unless setHostnameAsFQDN is set', () => {
  const spec = { subdomain: 'db' };
  assert.equal(kernelHostname(aPod({ spec }), made(spec)), 'web');
  const full = { ...spec, setHostnameAsFQDN: true };
  assert.equal(kernelHostname(aPod({ spec: full }), made(full)), 'web.db.default.svc.cluster.local');
  assert.equal(kernelHostname(aPod({ spec: { setHostnameAsFQDN: true } }), made({})), 'web');
});

test('rejects an FQDN longer than the kernel limit', () => {
  const spec = { subdomain: 'd'.repeat(50), setHostnameAsFQDN: true };
  const fqdn = `web.${'d'.repeat(50)}.default.svc.cluster.local`;
  assert.throws(() => kernelHostname(aPod({ spec }), made(spec)), {
    code: 'SANDBOX_CONFIG',
    message: `failed to construct FQDN from pod hostname and cluster domain, FQDN ${fqdn} is too long (64 characters is the max, ${fqdn.length} characters requested)`,
  });
});

const host = { host: 'web', domain: '' };
const head = `# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
`;

test("the hosts file lists a pod's own address with its hostname", () => {
  const text = hostsFile(aPod(), { hostname: host, podIps: ['10.0.0.7', 'fd00::7'], nodeHosts: '' });
  assert.equal(text, `${head}10.0.0.7\tweb\nfd00::7\tweb\n`);
});

test('the hosts file lists the FQDN of a pod with a domain first', () => {
  const hostname = { host: 'web', domain: 'db.default.svc.cluster.local' };
  const text = hostsFile(aPod(), { hostname, podIps: ['10.0.0.7'], nodeHosts: '' });
  assert.equal(text, `${head}10.0.0.7\tweb.db.default.svc.cluster.local\tweb\n`);
});

test('the hosts file lists host aliases after a blank line', () => {
  const spec = {
    hostAliases: [
      { ip: '1.2.3.4', hostnames: ['a', 'b.example'] },
      { ip: '5.6.7.8', hostnames: ['c'] },
    ],
  };
  const text = hostsFile(aPod({ spec }), { hostname: host, podIps: ['10.0.0.7'], nodeHosts: '' });
  assert.equal(
    text,
    `${head}10.0.0.7\tweb\n\n# Entries added by HostAliases.\n1.2.3.4\ta\tb.example\n5.6.7.8\tc\n`,
  );
});

test("a pod on the host network gets the node's hosts file with the pod's host aliases", () => {
  const spec = { hostNetwork: true, hostAliases: [{ ip: '1.2.3.4', hostnames: ['a'] }] };
  const text = hostsFile(aPod({ spec }), { hostname: host, podIps: [], nodeHosts: '127.0.0.1 localhost\n' });
  assert.equal(
    text,
    '# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n\n# Entries added by HostAliases.\n1.2.3.4\ta\n',
  );
});
