import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ContainerFiles } from './container-files.ts';
import { memoryFiles } from './files.ts';
import { ContainerLog } from './logs.ts';
import { AddressPool } from './network.ts';

test('an open in-memory file stays the same file when it is renamed or removed', () => {
  const files = memoryFiles();
  const open = files.open('/a');
  open.append('one ');
  files.rename('/a', '/b');
  open.append('two');
  assert.deepEqual([files.read('/a'), files.read('/b'), files.paths()], [undefined, 'one two', ['/b']]);
  files.remove('/b');
  open.append('nobody reads this');
  assert.deepEqual([files.read('/b'), files.paths()], [undefined, []]);
  files.write('/c', 'x');
  files.append('/c', 'y');
  assert.equal(files.read('/c'), 'xy');
});

test('files in memory stay within their size limit', () => {
  const files = memoryFiles({ maxBytes: 1_000 });
  const logs = ['/a', '/b', '/c'].map((path) => files.open(path));
  for (let i = 0; i < 5_000; i++) logs[i % 3]?.append(`line ${i}\n`);
  const all = files.paths().map((path) => files.read(path) ?? '');
  assert.ok(all.join('').length <= 1_000);
  assert.ok(
    all.some((text) => text.endsWith('line 4999\n')),
    'the newest is kept',
  );
});

test('a container sees its own files, and those of the machine through its mounts', () => {
  const machine = memoryFiles();
  machine.write('/host/volume/file', 'shared');
  const mount = { containerPath: '/data', hostPath: '/host/volume', readonly: false };
  const inner = { containerPath: '/data/inner/', hostPath: '/host/inner', readonly: true };
  const rest = {
    selinuxRelabel: false,
    propagation: 'PROPAGATION_PRIVATE',
    uidMappings: [],
    gidMappings: [],
    recursiveReadOnly: false,
    image: undefined,
    imageSubPath: '',
  } as const;
  const files = new ContainerFiles(
    [
      { ...mount, ...rest },
      { ...inner, ...rest },
    ],
    machine,
  );
  assert.deepEqual(files.read('/data/file'), { ok: true, text: 'shared' });
  files.write('/data/new', 'x', 'replace');
  files.write('/data/new', 'y', 'append');
  assert.equal(machine.read('/host/volume/new'), 'xy');
  assert.deepEqual(files.write('/data/inner/x', '', 'replace'), { ok: false, why: 'Read-only file system' });
  files.write('/tmp/own', '12345', 'replace');
  assert.equal(machine.paths().includes('/tmp/own'), false);
  assert.deepEqual([files.ownBytes, files.ownFiles], [5, 1]);
  files.remove('/tmp/own');
  assert.deepEqual(files.read('/tmp/own'), { ok: false, why: 'No such file or directory' });
  assert.equal(files.ownBytes, 0);
  assert.deepEqual(files.write('/big', 'x'.repeat(2 << 20), 'replace'), {
    ok: false,
    why: 'No space left on device',
  });
  assert.deepEqual(files.write('/dev/null', 'x', 'replace'), { ok: true, text: '' });
});

test('long log lines are split into parts', () => {
  const files = memoryFiles();
  const log = new ContainerLog({ path: '/log', files, now: () => 0n });
  log.write('stdout', `${'a'.repeat(20_000)}\n`);
  log.write('stdout', 'b'.repeat(20_000));
  log.close();
  const lines = (files.read('/log') ?? '').split('\n').map((line) => line.split(' '));
  assert.deepEqual(
    lines.map(([, , tag, text]) => [tag, text?.length]),
    [
      ['P', 16_384],
      ['F', 3_616],
      ['P', 16_384],
      ['P', 3_616],
      [undefined, undefined],
    ],
  );
});

test('pod addresses are assigned in order, and not reused immediately', () => {
  const pool = new AddressPool('10.0.0.77/28');
  const first = pool.take();
  assert.equal(first, '10.0.0.66');
  pool.giveBack(first);
  assert.equal(pool.take(), '10.0.0.67');
  assert.equal(pool.taken, 1);
  assert.throws(() => new AddressPool('10.0.0.0/31'), /no IPv4 range/);
  assert.throws(() => new AddressPool('::/64'), /no IPv4 range/);
});
