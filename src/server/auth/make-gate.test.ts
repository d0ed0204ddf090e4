import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs, seededRandom } from '../../lib/index.ts';
import type { Caller } from './identity.ts';
import { type GateDeps, type GateSettings, makeGate } from './make-gate.ts';

const clock = new VirtualClock();
const deps: GateDeps = {
  clock,
  random: seededRandom(1),
  logger: collectLogs(clock).logger,
  clientCa: undefined,
  reviews: undefined,
};
const open: GateSettings = {
  anonymous: 'allowed',
  tokenWebhook: { kind: 'off' },
  authorization: { mode: 'AlwaysAllow' },
  nodeName: 'n1',
};

test('settings under which nobody could be known or judged are refused', () => {
  const wrong = (change: Partial<GateSettings>, message: RegExp) =>
    assert.throws(() => makeGate({ ...open, ...change }, deps), { code: 'AUTH_CONFIG', message });
  wrong({ anonymous: 'refused' }, /no authentication method configured/);
  wrong({ tokenWebhook: { kind: 'on', cacheMs: 0 } }, /webhook authentication needs an API server/);
  wrong(
    { authorization: { mode: 'Webhook', allowedMs: 0, deniedMs: 0 } },
    /webhook authorization needs an API server/,
  );
});

test('a gate that asks nobody lets everybody pass', async () => {
  const caller: Caller = { method: 'GET', path: '/pods', headers: {}, certificate: undefined };
  assert.equal(await makeGate(open, deps).admit(caller, new AbortController().signal), undefined);
});
