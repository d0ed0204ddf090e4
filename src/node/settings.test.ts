import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainSettings } from '../../test/fakes/node-world.ts';
import { checkNodeSettings, nodeNameOf } from './settings.ts';

test('a node is called as it is told, else as the machine is, trimmed and in lower case', () => {
  assert.equal(nodeNameOf('', 'Box.Example.COM\n'), 'box.example.com');
  assert.equal(nodeNameOf(' Other ', 'box'), 'other');
});

test('a node without a name, or with one that is none, is refused with the value', () => {
  const settings = { code: 'NODE_SETTINGS' };
  assert.throws(() => nodeNameOf(' ', ' '), settings);
  assert.throws(() => nodeNameOf('a_b', ''), { ...settings, message: /DNS name: current value is "a_b"/ });
  assert.throws(() => nodeNameOf(`${'a'.repeat(254)}`, ''), settings);
});

test('all settings that no node can have are named at once', () => {
  checkNodeSettings(plainSettings);
  const wrong = {
    ...plainSettings,
    leaseDurationSeconds: 0,
    updateFrequencyMs: -1,
    reportFrequencyMs: 0,
    maxImages: -2,
    cloudProvider: 'aws' as 'external',
  };
  assert.throws(() => checkNodeSettings(wrong), {
    code: 'NODE_SETTINGS',
    message:
      /nodeLeaseDurationSeconds must be above 0: current value is 0; nodeStatusUpdateFrequency .* -1; nodeStatusReportFrequency .* 0; nodeStatusMaxImages .* -2; --cloud-provider must be empty or external: current value is "aws"$/,
  });
});
