import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { KubelingError, seededRandom } from '../../lib/index.ts';
import { AccessWebhook } from './authorize.ts';
import type { Authentication, RequestCaller } from './identity.ts';
import type { AccessReviewResult, TokenReviewResult } from './reviews.ts';
import { TokenWebhook } from './token-webhook.ts';

const { signal } = new AbortController();
const minute = 60_000;

function callerWith(token: string): RequestCaller {
  const headers = { authorization: `Bearer ${token}` };
  return { method: 'GET', path: '/pods', headers, certificate: undefined };
}

/**
 * A fake API server that returns the given responses in order and repeats the last one; errors are
 * thrown.
 */
class Script<T> {
  asked = 0;
  readonly #answers: readonly (T | Error)[];

  constructor(...responses: readonly (T | Error)[]) {
    this.#answers = responses;
  }

  async next(): Promise<T> {
    const response = this.#answers[Math.min(this.asked, this.#answers.length - 1)];
    this.asked += 1;
    if (response === undefined || response instanceof Error) throw response;
    return response;
  }
}

const yes: TokenReviewResult = { authenticated: true, user: { name: 'alice', groups: [] } };
const no: TokenReviewResult = { authenticated: false };

function tokens(script: Script<TokenReviewResult>, cacheMs = 2 * minute) {
  const clock = new VirtualClock();
  const reviewer = { tokenReview: () => script.next() };
  const webhook = new TokenWebhook({ clock, random: seededRandom(1), reviewer, cacheMs });
  const ask = async (token: string): Promise<Authentication> => {
    let outcome: Authentication | undefined;
    const requested = Promise.resolve(webhook.byHeader.authenticate(callerWith(token), signal)).then(
      (value) => {
        outcome = value;
      },
    );
    for (let step = 0; step < 400 && outcome === undefined; step++) await clock.advance(100);
    await requested;
    assert(outcome !== undefined);
    return outcome;
  };
  return { clock, ask, webhook };
}

const away = new KubelingError('API_UNAVAILABLE', 'Cannot reach the API server');

test('caches allowed and denied token reviews for the configured time', async () => {
  const script = new Script(yes);
  const { clock, ask } = tokens(script);
  assert.equal((await ask('a')).kind, 'user');
  assert.equal((await ask('a')).kind, 'user');
  assert.equal(script.asked, 1);
  await ask('b');
  assert.equal(script.asked, 2);
  await clock.advance(2 * minute + 1_000);
  await ask('a');
  assert.equal(script.asked, 3);
  const denied = new Script(no);
  const other = tokens(denied);
  assert.equal((await other.ask('a')).kind, 'failed');
  assert.equal((await other.ask('a')).kind, 'failed');
  assert.equal(denied.asked, 1);
});

test('does not cache a token review that failed', async () => {
  const script = new Script<TokenReviewResult>({ authenticated: false, error: 'broken' }, yes);
  const { ask } = tokens(script);
  assert.equal((await ask('a')).kind, 'failed');
  assert.equal((await ask('a')).kind, 'user');
});

test('does not cache token reviews when the cache time is zero', async () => {
  const script = new Script(yes);
  const { ask } = tokens(script, 0);
  await ask('a');
  await ask('a');
  assert.equal(script.asked, 2);
});

test('concurrent requests with the same token share one review', async () => {
  const script = new Script(yes);
  const { webhook } = tokens(script);
  const all = Array.from({ length: 10 }, () => webhook.byHeader.authenticate(callerWith('a'), signal));
  for (const outcome of await Promise.all(all)) assert.equal(outcome.kind, 'user');
  assert.equal(script.asked, 1);
});

test('sends a review up to five times while the API server is unavailable, slow, busy or broken', async () => {
  const failures = [
    away,
    new KubelingError('API_DEADLINE', 'x'),
    new KubelingError('API_TOO_MANY', 'x'),
    new KubelingError('API_FAILED', 'x', { details: { status: 500 } }),
    new KubelingError('API_FAILED', 'x', { details: { status: 503, retryAfterMs: 1_000 } }),
  ];
  for (const failure of failures) {
    const script = new Script<TokenReviewResult>(failure, yes);
    assert.equal((await tokens(script).ask('a')).kind, 'user', failure.code);
  }
  const never = new Script<TokenReviewResult>(away);
  assert.equal((await tokens(never).ask('a')).kind, 'failed');
  assert.equal(never.asked, 5);
});

test('does not retry a review that the API server rejected', async () => {
  for (const failure of [
    new KubelingError('API_FORBIDDEN', 'x', { details: { status: 403 } }),
    new KubelingError('API_FAILED', 'x', { details: { status: 503 } }),
    new Error('x'),
  ]) {
    const script = new Script<TokenReviewResult>(failure, yes);
    assert.equal((await tokens(script).ask('a')).kind, 'failed');
    assert.equal(script.asked, 1);
  }
});

test('aborts a review request to the API server after half a minute', async () => {
  const clock = new VirtualClock();
  const reviewer = { tokenReview: () => new Promise<never>(() => {}) };
  const webhook = new TokenWebhook({ clock, random: seededRandom(1), reviewer, cacheMs: 0 });
  const requested = Promise.resolve(webhook.byHeader.authenticate(callerWith('a'), signal));
  await clock.advance(30_000);
  const outcome = await requested;
  assert(outcome.kind === 'failed' && outcome.error instanceof KubelingError);
  assert.equal(outcome.error.code, 'DEADLINE_EXCEEDED');
});

test('rejects token reviews above the concurrency limit, and accepts new ones when running ones have ended', async () => {
  const clock = new VirtualClock();
  let requestCount = 0;
  let answer = () => {};
  const responded = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const reviewer = {
    tokenReview: async () => {
      requestCount += 1;
      await responded;
      return yes;
    },
  };
  const webhook = new TokenWebhook({ clock, random: seededRandom(1), reviewer, cacheMs: 0 });
  const ask = (token: string) => Promise.resolve(webhook.byHeader.authenticate(callerWith(token), signal));
  const crowd = Array.from({ length: 1_000 }, (_, index) => ask(`guess-${index}`));
  await clock.advance(0);
  assert.equal(requestCount, 256);
  answer();
  const outcomes = await Promise.all(crowd);
  assert.equal(outcomes.filter(({ kind }) => kind === 'failed').length, 744);
  assert.equal((await ask('a')).kind, 'user');
});

test('rejects a token whose review contains no user', async () => {
  const nobody = new Script<TokenReviewResult>({ authenticated: true, user: { name: '', groups: [] } });
  assert.equal((await tokens(nobody).ask('a')).kind, 'failed');
  assert.equal(
    (await tokens(new Script<TokenReviewResult>({ authenticated: true })).ask('a')).kind,
    'failed',
  );
});

function access(script: Script<AccessReviewResult>) {
  const clock = new VirtualClock();
  const reviewer = { subjectAccessReview: () => script.next() };
  const times = { allowedMs: 5 * minute, deniedMs: 30_000 };
  const webhook = new AccessWebhook({ clock, random: seededRandom(1), reviewer, ...times });
  const spec = { user: { name: 'alice', groups: ['g'] }, verb: 'get', subresource: 'pods', name: 'n1' };
  return { clock, webhook, spec };
}

test('caches an allowed access review for five minutes and a denied one for half a minute', async () => {
  const allowed = new Script({ allowed: true });
  const { clock, webhook, spec } = access(allowed);
  const ask = () => webhook.authorize(spec, { path: '/pods' }, signal);
  assert.equal(await ask(), 'allowed');
  await clock.advance(5 * minute - 1);
  await ask();
  assert.equal(allowed.asked, 1);
  await clock.advance(1);
  await ask();
  assert.equal(allowed.asked, 2);
  const denied = new Script({ allowed: false });
  const other = access(denied);
  for (const [waitMs, count] of [
    [0, 1],
    [29_999, 1],
    [1, 2],
  ] as const) {
    await other.clock.advance(waitMs);
    assert.equal(await other.webhook.authorize(other.spec, { path: '/pods' }, signal), 'not-allowed');
    assert.equal(denied.asked, count);
  }
});

test('sends a separate access review for another verb, subresource, user or group', async () => {
  const script = new Script({ allowed: true });
  const { webhook, spec } = access(script);
  const { user } = spec;
  const questions = [
    spec,
    { ...spec, verb: 'create' },
    { ...spec, subresource: 'proxy' },
    { ...spec, user: { ...user, name: 'bob' } },
    { ...spec, user: { ...user, groups: ['g', 'h'] } },
    { ...spec, user: { ...user, extra: { k: ['v'] } } },
  ];
  for (const question of [...questions, ...questions])
    await webhook.authorize(question, { path: '/' }, signal);
  assert.equal(script.asked, questions.length);
});

test('does not cache access reviews with very long attributes', async () => {
  const script = new Script({ allowed: true });
  const { webhook, spec } = access(script);
  for (const length of [10_001, 10_001]) await webhook.authorize(spec, { path: '/'.repeat(length) }, signal);
  assert.equal(script.asked, 2);
});

test('denies access when a review is both allowed and denied', async () => {
  const { webhook, spec } = access(new Script<AccessReviewResult>({ allowed: true, denied: true }));
  assert.equal(await webhook.authorize(spec, { path: '/' }, signal), 'not-allowed');
});

test('fails the request and caches nothing when the access review fails', async () => {
  const script = new Script<AccessReviewResult>(new KubelingError('API_FORBIDDEN', 'x'), { allowed: true });
  const { webhook, spec } = access(script);
  await assert.rejects(webhook.authorize(spec, { path: '/' }, signal), { code: 'API_FORBIDDEN' });
  assert.equal(await webhook.authorize(spec, { path: '/' }, signal), 'allowed');
});
