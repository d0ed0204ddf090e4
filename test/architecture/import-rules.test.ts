import assert from 'node:assert/strict';
import { test } from 'node:test';
import { breaches } from './import-rules.ts';

const check = (files: Readonly<Record<string, string>>) => breaches(new Map(Object.entries(files)));

test('allows imports of a lower-ranked package through its entry point', () => {
  const files = {
    'src/main.ts': `import { main } from './cli/index.ts';`,
    'src/cli/index.ts': `import { start } from '../kubelet/index.ts';`,
    'src/kubelet/index.ts': `import { pleg } from '../pleg/index.ts';`,
    'src/pleg/index.ts': `export { relist } from './relist.ts';`,
    'src/pleg/relist.ts': `import type { Cri } from '../cri/index.ts'; import { clock } from '../lib/index.ts'; import 'node:fs';`,
    'src/cri/index.ts': `import { call } from '../protocols/grpc/index.ts';`,
    'src/lib/index.ts': `export const now = () => Date.now();`,
    'src/protocols/grpc/index.ts': '',
  };
  assert.deepEqual(check(files), []);
});

test('rejects an import of a higher-ranked package, even if only of a type', () => {
  assert.match(
    check({ 'src/pleg/a.ts': `import { x } from '../kubelet/index.ts';` })[0] ?? '',
    /pleg is below kubelet/,
  );
  assert.match(
    check({ 'src/lib/a.ts': `import type { X } from '../pods/index.ts';` })[0] ?? '',
    /lib is below pods/,
  );
  assert.match(
    check({ 'src/cri/a.ts': `export { x } from '../runtime/index.ts';` })[0] ?? '',
    /cri is below runtime/,
  );
  assert.match(check({ 'src/cli/a.ts': `import '../main.ts';` })[0] ?? '', /cli is below main/);
});

test('allows packages of the same rank to import only types of each other', () => {
  const runtime = check({ 'src/pleg/a.ts': `import { x } from '../status/index.ts';` });
  assert.match(runtime[0] ?? '', /pleg and status are of one rank/);
  assert.equal(check({ 'src/pods/a.ts': `import { x } from '../api/index.ts';` }).length, 1);
  assert.deepEqual(check({ 'src/pleg/a.ts': `import type { X } from '../status/index.ts';` }), []);
});

test('counts `import { type X }` as an import that loads the file', () => {
  assert.equal(check({ 'src/pleg/a.ts': `import { type X } from '../status/index.ts';` }).length, 1);
});

test('rejects imports that bypass the index of a package, also of types and of lib', () => {
  assert.match(
    check({ 'src/pleg/a.ts': `import type { X } from '../cri/client.ts';` })[0] ?? '',
    /through its index/,
  );
  assert.equal(check({ 'src/pleg/a.ts': `import { Ring } from '../lib/ring.ts';` }).length, 1);
  assert.equal(check({ 'src/pleg/a.ts': `import { c } from '../protocols/grpc/channel.ts';` }).length, 1);
  assert.equal(check({ 'src/pleg/deep/a.ts': `await import('../../cri/client.ts');` }).length, 1);
});

test('rejects an import cycle, unless a type-only import closes it', () => {
  const circle = {
    'src/pleg/a.ts': `import { b } from './b.ts';`,
    'src/pleg/b.ts': `import { c } from './c.ts';`,
    'src/pleg/c.ts': `import { a } from './a.ts';`,
  };
  assert.deepEqual(check(circle), [
    'src/pleg/a.ts -> src/pleg/b.ts -> src/pleg/c.ts -> src/pleg/a.ts is a circle',
  ]);
  assert.deepEqual(check({ ...circle, 'src/pleg/c.ts': `import type { A } from './a.ts';` }), []);
  assert.match(check({ 'src/pleg/a.ts': `import './a.ts';` })[0] ?? '', /a\.ts -> .*a\.ts is a circle/);
});

test('rejects imports of node:http outside lib, which provides nodeHttp', () => {
  assert.match(
    check({ 'src/server/a.ts': `import { request } from 'node:http';` })[0] ?? '',
    /nodeHttp of lib/,
  );
  assert.deepEqual(check({ 'src/server/a.ts': `import type { Server } from 'node:http';` }), []);
});

test('rejects each use of the clock, of timers and of randomness outside lib', () => {
  const uses = [
    'Date.now()',
    'new Date()',
    'new Date;',
    'Math.random()',
    'setTimeout(f, 1)',
    'globalThis.setTimeout(f)',
    'setInterval(f)',
    'performance.now()',
    'process.hrtime.bigint()',
    'AbortSignal.timeout(5)',
    `import { setTimeout as sleep } from 'node:timers/promises';`,
  ];
  for (const use of uses) assert.match(check({ 'src/pleg/a.ts': use })[0] ?? '', /belongs in lib only/, use);
});

test('the rule against time and randomness outside lib accepts dates built from a value, methods of sockets, names in comments and strings, tests, and generated code', () => {
  const fine = [
    'new Date(ms).toISOString()',
    'socket.setTimeout(0)',
    '// Date.now() is forbidden',
    `const text = 'setTimeout';`,
    'function f(options: { setTimeout: number }) {}',
  ];
  for (const source of fine) assert.deepEqual(check({ 'src/pleg/a.ts': source }), [], source);
  assert.deepEqual(check({ 'src/pleg/a.test.ts': 'Date.now()', 'src/cri/gen/a.ts': 'new Date()' }), []);
});

test('rejects a package without a rank, and an import of the tests by the program', () => {
  assert.match(check({ 'src/utils/a.ts': '' })[0] ?? '', /has no rank/);
  assert.match(
    check({ 'src/pleg/a.ts': `import '../../test/fakes/x.ts';` })[0] ?? '',
    /not part of the program/,
  );
});
