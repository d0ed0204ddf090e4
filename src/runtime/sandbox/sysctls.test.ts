import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import type { PodSpec } from '../../kinds/index.ts';
import { dottedSysctl, type SysctlRules, sysctlProblem } from './sysctls.ts';

for (const [written, expected] of [
  ['kernel.shm_rmid_forced', 'kernel.shm_rmid_forced'],
  ['kernel/shm_rmid_forced', 'kernel.shm_rmid_forced'],
  ['net/ipv4/conf/eth0.100/forwarding', 'net.ipv4.conf.eth0/100.forwarding'],
  ['net.ipv4.conf.eth0/100.forwarding', 'net.ipv4.conf.eth0/100.forwarding'],
] as const) {
  test(`the sysctl ${written} is normalized to ${expected}`, () =>
    assert.equal(dottedSysctl(written), expected));
}

const problem = (name: string, rules: Partial<SysctlRules> = {}, spec: Partial<PodSpec> = {}) =>
  sysctlProblem(aPod({ spec: { ...spec, securityContext: { sysctls: [{ name, value: '1' }] } } }), {
    kernelRelease: '6.1.0-18-amd64',
    allowedUnsafe: [],
    ...rules,
  });

const cases: readonly [what: string, found: string | undefined, expected: string | undefined][] = [
  ['a safe one', problem('net.ipv4.tcp_syncookies'), undefined],
  ['a safe one with slashes', problem('net/ipv4/tcp_syncookies'), undefined],
  ['a namespaced one', problem('net.ipv4.tcp_rmem', { kernelRelease: '4.15.0' }), undefined],
  [
    'one that this kernel does not namespace',
    problem('net.ipv4.tcp_rmem', { kernelRelease: '4.9.3' }),
    'forbidden sysctl: "net.ipv4.tcp_rmem" not allowlisted',
  ],
  [
    'one with an unknown kernel version',
    problem('net.ipv4.tcp_fin_timeout', { kernelRelease: '' }),
    'forbidden sysctl: "net.ipv4.tcp_fin_timeout" not allowlisted',
  ],
  ['an unsafe one', problem('kernel.msgmax'), 'forbidden sysctl: "kernel.msgmax" not allowlisted'],
  ['an allowed unsafe one', problem('kernel.msgmax', { allowedUnsafe: ['kernel.msg*'] }), undefined],
  [
    'an unsafe one that is not allowed',
    problem('kernel.sem', { allowedUnsafe: ['kernel.msg*', 'kernel.shmmax'] }),
    'forbidden sysctl: "kernel.sem" not allowlisted',
  ],
  [
    'a network one with the host network',
    problem('net.ipv4.tcp_syncookies', {}, { hostNetwork: true }),
    'forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host Net enabled',
  ],
  [
    'an IPC one with the host IPC namespace',
    problem('kernel.shm_rmid_forced', {}, { hostIPC: true, hostNetwork: true }),
    'forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host IPC enabled',
  ],
  [
    'an IPC one with the host network',
    problem('kernel.shm_rmid_forced', {}, { hostNetwork: true }),
    undefined,
  ],
];
for (const [what, found, expected] of cases) {
  test(`a pod with sysctls is checked: ${what} is ${expected === undefined ? 'allowed' : 'rejected'}`, () =>
    assert.equal(found, expected));
}

test('a pod without sysctls is allowed', () => {
  assert.equal(sysctlProblem(aPod(), { kernelRelease: '', allowedUnsafe: [] }), undefined);
});

test('rejects a sysctl value with a plus sign, because the runtime could read a second sysctl from it', () => {
  const sysctls = [{ name: 'kernel.shm_rmid_forced', value: '1+kernel.core_pattern=|/evil' }];
  assert.equal(
    sysctlProblem(aPod({ spec: { securityContext: { sysctls } } }), {
      kernelRelease: '6.1',
      allowedUnsafe: [],
    }),
    'forbidden sysctl: "kernel.shm_rmid_forced" must not have a + in its value',
  );
});
