import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainSettings } from '../../test/fakes/node-world.ts';
import { checkNodeSettings, nodeNameOf } from './settings.ts';

test('uses the configured node name, else the host name, trimmed and in lower case', () => {
  assert.equal(nodeNameOf('', 'Box.Example.COM\n'), 'box.example.com');
  assert.equal(nodeNameOf(' Other ', 'box'), 'other');
});

test('rejects a missing or invalid node name and quotes it', () => {
  const settings = { code: 'NODE_SETTINGS' };
  assert.throws(() => nodeNameOf(' ', ' '), settings);
  assert.throws(() => nodeNameOf('a_b', ''), { ...settings, message: /DNS name: current value is "a_b"/ });
  assert.throws(() => nodeNameOf(`${'a'.repeat(254)}`, ''), settings);
});

test('lists all invalid settings in one error', () => {
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
