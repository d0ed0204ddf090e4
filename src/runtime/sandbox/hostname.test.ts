import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import type { PodSpec } from '../../kinds/index.ts';
import { kernelHostname, podHostname } from './hostname.ts';

const made = (spec: Partial<PodSpec>, name = 'web') =>
  podHostname(aPod({ metadata: { name }, spec }), 'cluster.local');

const names: readonly [string, Partial<PodSpec>, string, { host: string; domain: string }][] = [
  ['the pod’s name', {}, 'web', { host: 'web', domain: '' }],
  ['the hostname of the spec', { hostname: 'busy' }, 'web', { host: 'busy', domain: '' }],
  ['a subdomain', { subdomain: 'db' }, 'web', { host: 'web', domain: 'db.default.svc.cluster.local' }],
  [
    'an override, which has no domain',
    { hostnameOverride: 'a.b', subdomain: 'db' },
    'web',
    { host: 'a.b', domain: '' },
  ],
  ['a name that is cut', {}, 'x'.repeat(70), { host: 'x'.repeat(63), domain: '' }],
  [
    'a cut that ends in dashes and dots',
    {},
    `${'x'.repeat(60)}.-.more`,
    { host: 'x'.repeat(60), domain: '' },
  ],
];
for (const [what, spec, name, expected] of names) {
  test(`hostname: ${what}`, () => assert.deepEqual(made(spec, name), expected));
}

const refusals: readonly [Partial<PodSpec>, RegExp][] = [
  [{ hostname: 'Not_ok' }, /^pod Hostname "Not_ok" is not a valid DNS label: /],
  [{ hostname: 'a'.repeat(64) }, /^pod Hostname "a+" is not a valid DNS label: /],
  [{ subdomain: 'a.b' }, /^pod Subdomain "a.b" is not a valid DNS label: /],
  [{ hostnameOverride: 'a..b' }, /^pod HostnameOverride "a..b" is not a valid DNS subdomain: /],
  [{ hostnameOverride: '' }, /^pod HostnameOverride "" is not a valid DNS subdomain: /],
];
for (const [spec, message] of refusals) {
  test(`hostname: ${JSON.stringify(spec)} is refused`, () => {
    assert.throws(() => made(spec), { code: 'SANDBOX_CONFIG', message });
  });
}

test('the kernel’s name is the short one unless the pod wants the full one', () => {
  const spec = { subdomain: 'db' };
  assert.equal(kernelHostname(aPod({ spec }), made(spec)), 'web');
  const full = { ...spec, setHostnameAsFQDN: true };
  assert.equal(kernelHostname(aPod({ spec: full }), made(full)), 'web.db.default.svc.cluster.local');
  assert.equal(kernelHostname(aPod({ spec: { setHostnameAsFQDN: true } }), made({})), 'web');
});

test('a full name the kernel cannot hold is refused with both lengths', () => {
  const spec = { subdomain: 'd'.repeat(50), setHostnameAsFQDN: true };
  const fqdn = `web.${'d'.repeat(50)}.default.svc.cluster.local`;
  assert.throws(() => kernelHostname(aPod({ spec }), made(spec)), {
    code: 'SANDBOX_CONFIG',
    message: `failed to construct FQDN from pod hostname and cluster domain, FQDN ${fqdn} is too long (64 characters is the max, ${fqdn.length} characters requested)`,
  });
});
