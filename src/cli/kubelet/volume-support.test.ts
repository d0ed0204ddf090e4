import assert from 'node:assert/strict';
import { test } from 'node:test';
import { realClock } from '../../lib/index.ts';
import { hostSwapProbe, readSelinuxFacts, type SwapProbe, swapWarnings } from './volume-support.ts';

const { signal } = new AbortController();
const first = '         0          0 4294967295\n';

function machine(kernel: string, uidMap: string, noswap: 'mounts' | 'fails') {
  const tried: string[] = [];
  const created: SwapProbe = {
    kernel,
    uidMap: async () => uidMap,
    tryNoswap: async () => {
      tried.push(kernel);
      if (noswap === 'fails') throw new Error('bad option');
    },
  };
  return { tried, made: created };
}

test('uses noswap on a new kernel without a probe, and probes an old kernel', async () => {
  const cases: readonly (readonly [string, 'mounts' | 'fails', number, RegExp | undefined])[] = [
    ['6.4.0', 'fails', 0, undefined],
    ['6.18.44-x', 'fails', 0, undefined],
    ['7.0', 'fails', 0, undefined],
    ['6.3.9', 'mounts', 1, undefined],
    ['5.14.0-427.el9', 'mounts', 1, undefined],
    ['6.3.9', 'fails', 1, /: the kernel 6\.3\.9 does not mount tmpfs with the option noswap: bad option$/],
  ];
  for (const [kernel, noswap, tries, expected] of cases) {
    const { tried, made } = machine(kernel, first, noswap);
    const events = await swapWarnings(made, signal);
    assert.equal(tried.length, tries, kernel);
    assert.equal(events.length, expected === undefined ? 0 : 1, kernel);
    if (expected !== undefined) assert.match(events[0]?.message ?? '', expected);
    for (const { reason } of events) assert.equal(reason, 'PossibleMemoryBackedVolumesOnDisk');
  }
});

test('probes nothing in a user namespace, and reports that tmpfs may be swapped', async () => {
  const { tried, made } = machine('6.18.0', '0 100000 65536\n', 'mounts');
  const [event] = await swapWarnings(made, signal);
  assert.match(event?.message ?? '', /: in a user namespace tmpfs cannot be excluded from swap$/);
  assert.deepEqual(tried, []);
});

test('probes noswap on this machine without leaving a mount', async () => {
  const real = hostSwapProbe(realClock());
  assert.match(await real.uidMap(), /^\s*\d+\s+\d+\s+\d+/);
  const older = { kernel: '4.0', uidMap: async () => first };
  const events = await swapWarnings({ ...older, tryNoswap: (inner) => real.tryNoswap(inner) }, signal);
  const isRoot = process.getuid?.() === 0;
  const [major = 0, minor = 0] = real.kernel.split('.').map(Number);
  if (isRoot && (major > 6 || (major === 6 && minor >= 4))) assert.deepEqual(events, []);
  if (!isRoot) assert.match(events[0]?.message ?? '', /Cannot run unshare/);
});

const files = (texts: Readonly<Record<string, string>>) => async (path: string) => texts[path];
const on = { '/sys/fs/selinux/enforce': '0' };

test('returns undefined on a machine without SELinux', async () => {
  assert.equal(await readSelinuxFacts(files({ '/etc/selinux/config': 'SELINUXTYPE=targeted' })), undefined);
});

test('uses the container file context of the SELinux policy', async () => {
  const config = { '/etc/selinux/config': '# SELINUXTYPE= can be\n#SELINUXTYPE=no\nSELINUXTYPE=mls \n' };
  const contexts =
    'process = "system_u:system_r:container_t:s0"\nfile = "system_u:object_r:svirt_file_t:s0"\n';
  const facts = await readSelinuxFacts(
    files({ ...on, ...config, '/etc/selinux/mls/contexts/lxc_contexts': contexts }),
  );
  assert.deepEqual(facts, { fileContext: 'system_u:object_r:svirt_file_t:s0' });
});

test('uses the default context when the SELinux policy has none', async () => {
  const usual = { fileContext: 'system_u:object_r:container_file_t:s0' };
  assert.deepEqual(await readSelinuxFacts(files(on)), usual);
  const odd = { '/etc/selinux/config': 'SELINUXTYPE=../../etc\n' };
  assert.deepEqual(await readSelinuxFacts(files({ ...on, ...odd })), usual);
});
