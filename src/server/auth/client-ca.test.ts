import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rootCertificates } from 'node:tls';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../../lib/index.ts';
import { type CaFile, ClientCaFile } from './client-ca.ts';

/** Two certificates from the root certificates that Node.js contains. */
const [one = '', two = ''] = rootCertificates;

function createHarness(content: string | Error) {
  const clock = new VirtualClock();
  const { logger, records } = collectLogs(clock);
  const state = { content, hint: () => {} };
  const file: CaFile = {
    path: '/ca.pem',
    read: async () => {
      if (state.content instanceof Error) throw state.content;
      return state.content;
    },
    watch: (hint) => {
      state.hint = hint;
      return { [Symbol.dispose]: () => {} };
    },
  };
  return { clock, state, records, open: () => ClientCaFile.open({ file, clock, logger }) };
}

test('fails at start when the client CA file is missing or contains no certificate', async () => {
  await assert.rejects(createHarness(new Error('ENOENT')).open(), { code: 'CLIENT_CA' });
  await assert.rejects(createHarness('').open(), { code: 'CLIENT_CA' });
  const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----';
  await assert.rejects(createHarness(broken).open(), { code: 'CLIENT_CA' });
});

test('reloads the client CA file immediately after a change notification, and within a minute without one', async () => {
  const { clock, state, open } = createHarness(one);
  using ca = await open();
  let changes = 0;
  ca.onChange(() => {
    changes += 1;
  });
  state.content = `${one}\n${two}`;
  state.hint();
  state.hint();
  await clock.advance(100);
  assert.deepEqual([ca.current().certificates.length, changes], [2, 1]);
  state.content = two;
  await clock.advance(60_000);
  assert.deepEqual([ca.current().pem, changes], [two, 2]);
  await clock.advance(60_000);
  assert.equal(changes, 2, 'an unchanged file is no change');
});

test('keeps the last good bundle when the client CA file is invalid, and logs that once', async () => {
  const { clock, state, records, open } = createHarness(one);
  using ca = await open();
  for (const bad of [new Error('EIO'), 'nonsense'] as const) {
    const before = [...records].length;
    state.content = bad;
    await clock.advance(180_000);
    assert.equal(ca.current().pem, one);
    assert.equal([...records].length, before + 1);
  }
});

test('stops polling the client CA file after it is closed', async () => {
  const { clock, state, open } = createHarness(one);
  const ca = await open();
  ca[Symbol.dispose]();
  state.content = two;
  state.hint();
  await clock.advance(120_000);
  assert.equal(ca.current().pem, one);
});
