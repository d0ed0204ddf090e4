import assert from 'node:assert/strict';
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { mountSyscalls, mountWatch } from './libc.ts';

const calls = mountSyscalls();
const skip =
  process.getuid?.() !== 0
    ? 'needs root'
    : calls === undefined
      ? 'this Node cannot call the C library'
      : false;

it('the mount watch reports a mount and an unmount once each', { skip }, async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'kubeling-watch-'));
  const watch = mountWatch();
  assert.ok(watch && calls);
  const at = folder.path;
  // Other processes of this machine mount too, so the test polls until no change is reported.
  const calm = () => {
    for (let left = 1_000; left > 0; left--) if (watch() === 'same') return 'calm';
    return 'never calm';
  };
  assert.equal(calm(), 'calm');
  assert.equal(calls.mount({ type: 'tmpfs', device: 'none', options: 'size=64k' }, at), 'done');
  assert.equal(watch(), 'changed');
  assert.equal(calm(), 'calm');
  assert.equal(calls.unmount(at), 'done');
  assert.equal(watch(), 'changed');
});
