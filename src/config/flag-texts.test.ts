import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCommandLine } from './command-line.ts';
import { flagTexts } from './flag-texts.ts';
import { nodeFlags, oldFlags, runFlags } from './kubelet-flags.ts';

test('flags are told by their names, as they could be written', () => {
  const args = [
    '--cert-dir=/pki',
    '--node-ip=10.0.0.1,fd00::1',
    '--node-labels=a=b,c=d',
    '--hook-timeout=9s',
  ];
  const texts = flagTexts(parseCommandLine(args, '/').flags);
  assert.equal(texts['cert-dir'], '/pki');
  assert.equal(texts['node-ip'], '10.0.0.1,fd00::1');
  assert.equal(texts['node-labels'], 'a=b,c=d');
  assert.equal(texts['exit-on-lock-contention'], 'false');
  const known = new Set(Object.keys({ ...runFlags, ...nodeFlags, ...oldFlags }));
  const unknown = Object.keys(texts).filter((name) => !known.has(name));
  assert.deepEqual(unknown, []);
});
