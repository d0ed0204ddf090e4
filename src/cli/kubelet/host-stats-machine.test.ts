import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { RuntimeProcess } from './host-stats-machine.ts';

const stat = (name: string) =>
  `7 (${name}) S 1 7 7 0 -1 4194560 5000 0 30 0 120 80 0 0 20 0 12 0 500 1000 256 18446744073709551615 1 1\n`;

function machine() {
  const procDir = mkdtempSync(join(tmpdir(), 'klg-proc-'));
  mkdirSync(join(procDir, 'net'));
  writeFileSync(
    join(procDir, 'net/unix'),
    'Num RefCount Protocol Flags Type St Inode Path\nff: 2 0 10000 1 01 111 /run/other.sock\nfe: 2 0 10000 1 01 222 /run/our own.sock\n',
  );
  const add = (pid: number, name: string, inode: number, cgroup: string) => {
    mkdirSync(join(procDir, String(pid), 'fd'), { recursive: true });
    writeFileSync(join(procDir, String(pid), 'comm'), `${name}\n`);
    writeFileSync(join(procDir, String(pid), 'stat'), stat(`a ) ${name}`));
    writeFileSync(join(procDir, String(pid), 'cgroup'), cgroup);
    symlinkSync('/dev/null', join(procDir, String(pid), 'fd/0'));
    symlinkSync(`socket:[${inode}]`, join(procDir, String(pid), 'fd/3'));
  };
  let nowMs = 0;
  const runtime = new RuntimeProcess({
    socket: '/run/our own.sock',
    monotonicMs: () => nowMs,
    bootMs: 1_000_000,
    layout: async () => ({ version: 2, root: '/c' }),
    procDir,
  });
  const later = (ms: number) => {
    nowMs += ms;
  };
  return { procDir, add, runtime, later, [Symbol.dispose]: () => rmSync(procDir, { recursive: true }) };
}

test('finds among several runtime processes the one that serves the socket, and its cgroup', async () => {
  using created = machine();
  created.add(5, 'containerd', 111, '0::/system.slice/other.service\n');
  created.add(7, 'containerd', 222, '0::/system.slice/containerd.service\n');
  assert.deepEqual(await created.runtime.part(), { cgroup: '/system.slice/containerd.service' });
});

test('reports a runtime in the root cgroup as a single process', async () => {
  using created = machine();
  created.add(7, 'crio', 222, '0::/\n');
  assert.deepEqual(await created.runtime.part(), {
    process: {
      cpuNanos: 2e9,
      rssBytes: 256 * 4_096,
      startMs: 1_000_000 + 5_000,
      pageFaults: 5_030,
      majorPageFaults: 30,
    },
  });
});

test('searches again for a runtime process that has exited, at a limited rate', async () => {
  using created = machine();
  assert.equal(await created.runtime.part(), undefined);
  created.add(7, 'containerd', 222, '0::/a\n');
  assert.equal(await created.runtime.part(), undefined);
  created.later(300_000);
  assert.deepEqual(await created.runtime.part(), { cgroup: '/a' });
  rmSync(join(created.procDir, '7'), { recursive: true });
  created.add(9, 'containerd', 222, '0::/b\n');
  created.later(300_000);
  assert.deepEqual(await created.runtime.part(), { cgroup: '/b' });
});
