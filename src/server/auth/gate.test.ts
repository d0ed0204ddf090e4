import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs, seededRandom } from '../../lib/index.ts';
import { authenticate, createGate, type GateDeps, type GateSettings } from './gate.ts';
import type { RequestCaller } from './identity.ts';
import { type Authentication, withAuthenticatedGroup } from './identity.ts';

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

test('rejects settings under which no client could be authenticated or authorized', () => {
  const wrong = (change: Partial<GateSettings>, message: RegExp) =>
    assert.throws(() => createGate({ ...open, ...change }, deps), { code: 'AUTH_CONFIG', message });
  wrong({ anonymous: 'refused' }, /no authentication method configured/);
  wrong({ tokenWebhook: { kind: 'on', cacheMs: 0 } }, /webhook authentication needs an API server/);
  wrong(
    { authorization: { mode: 'Webhook', allowedMs: 0, deniedMs: 0 } },
    /webhook authorization needs an API server/,
  );
});

test('admits every client when authentication and authorization are disabled', async () => {
  const caller: RequestCaller = { method: 'GET', path: '/pods', headers: {}, certificate: undefined };
  const { rejection } = await createGate(open, deps).admit(caller, new AbortController().signal);
  assert.equal(rejection, undefined);
});

const caller: RequestCaller = { method: 'GET', path: '/pods', headers: {}, certificate: undefined };
const { logger } = collectLogs(new VirtualClock());

async function who(anonymous: 'allowed' | 'refused', ...outcomes: readonly Authentication[]) {
  const methods = outcomes.map((outcome) => ({ authenticate: () => outcome }));
  const user = await authenticate({ methods, anonymous, logger }, caller, new AbortController().signal);
  return user?.name;
}

const none: Authentication = { kind: 'none' };
const failed: Authentication = { kind: 'failed', error: new Error('bad') };
const user = (name: string): Authentication => ({ kind: 'user', user: { name, groups: [] } });

test('uses the result of the first authentication method that recognizes the client', async () => {
  assert.equal(await who('refused', user('a'), user('b')), 'a');
  assert.equal(await who('refused', none, user('b')), 'b');
  assert.equal(await who('refused', failed, user('b')), 'b');
});

test('treats a client without credentials as anonymous where allowed, and rejects bad credentials', async () => {
  assert.equal(await who('allowed', none, none), 'system:anonymous');
  assert.equal(await who('allowed'), 'system:anonymous');
  assert.equal(await who('refused', none), undefined);
  assert.equal(await who('allowed', none, failed), undefined);
  assert.equal(await who('allowed', failed, none), undefined);
});

test('adds the group system:authenticated once to authenticated users', () => {
  const groups = (name: string, ...before: string[]) =>
    withAuthenticatedGroup({ name, groups: before }).groups;
  assert.deepEqual(groups('a', 'g'), ['g', 'system:authenticated']);
  assert.deepEqual(groups('a', 'system:authenticated'), ['system:authenticated']);
  assert.deepEqual(groups('system:anonymous', 'system:unauthenticated'), ['system:unauthenticated']);
});

test('limits how often bad credentials are logged', async () => {
  const logs = collectLogs(clock);
  const reviews = {
    tokenReview: async () => ({ authenticated: false, error: 'unknown token' }),
    subjectAccessReview: async () => ({ allowed: false }),
  };
  const settings: GateSettings = { ...open, tokenWebhook: { kind: 'on', cacheMs: 0 } };
  const gate = createGate(settings, { ...deps, logger: logs.logger, reviews });
  for (let count = 0; count < 100; count++) {
    const headers = { authorization: `Bearer guess-${count}` };
    const { rejection } = await gate.admit({ ...caller, headers }, new AbortController().signal);
    assert.equal(rejection?.status, 401);
  }
  assert.equal([...logs.records].filter(({ severity }) => severity === 'error').length, 20);
});
