import assert from 'node:assert/strict';
import { test } from 'node:test';
import { standaloneObjects, standaloneTokens } from '../../test/fakes/standalone-objects.ts';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { type ApiClient, type ApiObject, apiError, type ObjectRef } from '../api/index.ts';
import { collectLogs, MetricRegistry, type Random } from '../lib/index.ts';
import { type PodUid, podUid } from '../pods/index.ts';
import { refreshAtMs, type TokenRequest, type TokenSpec } from './token-request.ts';
import { Tokens, tokenMetrics } from './tokens.ts';

const { signal } = new AbortController();
const one = podUid('pod-1');
const hour = 3_600;
const ask = (more: Partial<TokenSpec> = {}): TokenSpec => ({
  namespace: 'ns',
  serviceAccount: 'sa',
  expirationSeconds: hour,
  pod: { name: 'web', uid: one },
  ...more,
});

/** An API server that issues tokens for the current service account. */
class TokenServer implements Pick<ApiClient, 'get' | 'post'> {
  readonly posts: { readonly ref: ObjectRef; readonly request: TokenRequest }[] = [];
  readonly gets: string[] = [];
  accountUid = 'account-1';
  failure: Error | undefined;
  getFailure: Error | undefined;
  readonly #clock: VirtualClock;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  async post<T extends ApiObject>(ref: ObjectRef, object: ApiObject): Promise<T> {
    const request = object as TokenRequest;
    this.posts.push({ ref, request });
    if (this.failure !== undefined) throw this.failure;
    const expirationSeconds = request.spec.expirationSeconds ?? hour;
    const claims = { 'kubernetes.io': { serviceaccount: { name: ref.name, uid: this.accountUid } } };
    const body = Buffer.from(JSON.stringify(claims)).toString('base64url');
    const expirationTimestamp = new Date(this.#clock.now() + expirationSeconds * 1_000).toISOString();
    const response: TokenRequest = {
      ...request,
      spec: { ...request.spec, expirationSeconds },
      status: { token: `head.${body}.${this.posts.length}`, expirationTimestamp },
    };
    return response as unknown as T;
  }

  async get<T extends ApiObject>({ namespace, name }: ObjectRef): Promise<T> {
    this.gets.push(`${namespace}/${name}`);
    if (this.getFailure !== undefined) throw this.getFailure;
    return { metadata: { namespace, name, uid: this.accountUid } } as unknown as T;
  }
}

function createHarness({ chance = 0 } = {}) {
  const clock = new VirtualClock();
  const server = new TokenServer(clock);
  const registry = new MetricRegistry({
    onError: (error) => {
      throw error;
    },
  });
  const random: Random = { next: () => chance };
  const { logger } = collectLogs(clock);
  const tokens = new Tokens({ api: server, clock, random, logger, observer: tokenMetrics(registry) });
  const renewed: PodUid[] = [];
  tokens.events.on('renew-pod', ({ uid }) => renewed.push(uid));
  const get = async (more: Partial<TokenSpec> = {}) =>
    (await tokens.get(ask(more), signal)).token.split('.')[2];
  const end = new AbortController();
  const ended = tokens.run(end.signal).catch(() => 'ended');
  const stop = () => {
    end.abort(new Error('over'));
    return ended;
  };
  const metric = async (name: string) =>
    (await registry.expose(signal))
      .split('\n')
      .filter((line) => line.startsWith(name))
      .join(' ');
  return { clock, server, tokens, renewed, get, stop, metric };
}

const refusal = (status: number, message: string) =>
  apiError({ what: 'post serviceaccounts/sa/token', status, apiStatus: { message } });

test('requests a token by service account, for one audience and one pod', async () => {
  const { server, get } = createHarness();
  await get({ audience: 'vault', serviceAccountUid: 'account-1' });
  await get({ expirationSeconds: undefined });
  const [first, second] = server.posts;
  assert.deepEqual(
    [first?.ref.resource.plural, first?.ref.namespace, first?.ref.name, first?.ref.subresource],
    ['serviceaccounts', 'ns', 'sa', 'token'],
  );
  assert.deepEqual(first?.request, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { uid: 'account-1' },
    spec: {
      audiences: ['vault'],
      expirationSeconds: hour,
      boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'web', uid: 'pod-1' },
    },
  });
  assert.deepEqual(second?.request.spec.audiences, []);
  assert.equal('expirationSeconds' in (second?.request.spec ?? {}), false);
});

test('equal token requests share a token; requests that differ in any field do not', async () => {
  const { server, get } = createHarness();
  const asks: readonly Partial<TokenSpec>[] = [
    {},
    { serviceAccount: 'other' },
    { namespace: 'other' },
    { audience: 'a' },
    { expirationSeconds: 2 * hour },
    { pod: { name: 'web', uid: podUid('pod-2') } },
    { serviceAccountUid: 'account-1' },
  ];
  const first = [];
  for (const more of asks) first.push(await get(more));
  assert.equal(new Set(first).size, asks.length);
  for (const [index, more] of asks.entries()) assert.equal(await get(more), first[index]);
  assert.equal(server.posts.length, asks.length);
});

test('shares one token request between concurrent callers', async () => {
  const { server, get } = createHarness();
  assert.deepEqual(await Promise.all([get(), get()]), ['1', '1']);
  assert.equal(server.posts.length, 1);
});

test('renews a token at 80% of its lifetime', async () => {
  const { clock, get } = createHarness();
  await get();
  await clock.advance(0.8 * hour * 1_000);
  assert.equal(await get(), '1');
  await clock.advance(1);
  assert.equal(await get(), '2');
});

test('renews a token after a day, however long it is valid', async () => {
  const { clock, get } = createHarness();
  const long = { expirationSeconds: 30 * 24 * hour };
  await get(long);
  await clock.advance(24 * hour * 1_000);
  assert.equal(await get(long), '1');
  await clock.advance(1);
  assert.equal(await get(long), '2');
});

test('adds jitter of up to ten seconds to the renewal', () => {
  const issued = {
    token: 't',
    expiresMs: hour * 1_000,
    expirationSeconds: hour,
    serviceAccountUid: undefined,
  };
  assert.deepEqual([refreshAtMs(issued, 0), refreshAtMs(issued, 0.5)], [2_880_000, 2_875_000]);
  assert.equal(refreshAtMs({ ...issued, expirationSeconds: undefined }, 0), hour * 1_000);
});

test("throws the API server's error when there is no token", async () => {
  const { server, get } = createHarness();
  server.failure = refusal(404, 'serviceaccounts "sa" not found');
  await assert.rejects(get(), {
    code: 'TOKEN_REQUEST',
    message: 'failed to fetch token: Cannot post serviceaccounts/sa/token: serviceaccounts "sa" not found',
  });
});

test('throws an error for a response without a token', async () => {
  const { clock, tokens } = createHarness();
  const api = { get: () => Promise.reject(new Error('no')), post: async () => ({ spec: {} }) as never };
  const { logger } = collectLogs(clock);
  const observer = { answered() {}, waiting() {} };
  const other = new Tokens({ api, clock, random: { next: () => 0 }, logger, observer });
  await assert.rejects(other.get(ask(), signal), /it has no token/);
  tokens.forgetPod(one);
});

test('serves the previous token while it is valid when renewal fails, and throws afterwards', async () => {
  const { clock, server, get } = createHarness();
  await get();
  server.failure = refusal(500, 'busy');
  await clock.advance(hour * 1_000);
  assert.equal(await get(), '1');
  await clock.advance(1);
  await assert.rejects(get(), {
    code: 'TOKEN_REQUEST',
    message: 'token of ns/sa for web expired and refresh failed: Cannot post serviceaccounts/sa/token: busy',
  });
});

test('retries a failed token request even if no caller requests the token again, after 5 s and then at intervals of up to a minute', async () => {
  const { clock, server, renewed, get, stop, metric } = createHarness();
  server.failure = refusal(403, 'no relationship found');
  await assert.rejects(get());
  const at: number[] = [];
  for (let second = 1; second <= 160; second++) {
    const before = server.posts.length;
    await clock.advance(1_000);
    if (server.posts.length > before) at.push(second);
  }
  assert.deepEqual(at, [5, 15, 35, 75, 135]);
  assert.match(await metric('kubeling_token_requests_total'), /result="failed"} 6/);
  assert.equal(await metric('kubeling_tokens_overdue'), 'kubeling_tokens_overdue 1');
  assert.deepEqual(renewed, []);
  server.failure = undefined;
  await clock.advance(60_000);
  assert.deepEqual(renewed, [one]);
  const count = server.posts.length;
  assert.equal(await get(), `${count}`);
  assert.equal(await metric('kubeling_tokens_overdue'), 'kubeling_tokens_overdue 0');
  await clock.advance(600_000);
  assert.equal(server.posts.length, count);
  assert.equal(await stop(), 'ended');
  assert.equal(clock.pendingTimers, 0);
});

test('does not extend the back-off when callers repeat the token request', async () => {
  const { clock, server, get, renewed } = createHarness();
  server.failure = refusal(500, 'busy');
  for (let tries = 0; tries < 10; tries++) await assert.rejects(get());
  await clock.advance(5_000);
  assert.equal(server.posts.length, 11);
  server.failure = undefined;
  await clock.advance(10_000);
  assert.deepEqual(renewed, [one]);
});

test('stops the retries when a token request succeeds', async () => {
  const { clock, server, get, renewed } = createHarness();
  server.failure = refusal(500, 'busy');
  await assert.rejects(get());
  server.failure = undefined;
  await get();
  await clock.advance(60_000);
  assert.deepEqual([server.posts.length, renewed], [2, []]);
});

test('drops a failed token request that had no caller for ten minutes', async () => {
  const { clock, server, get, metric } = createHarness();
  server.failure = refusal(500, 'busy');
  await assert.rejects(get());
  await clock.advance(11 * 60_000);
  const count = server.posts.length;
  await clock.advance(60 * 60_000);
  assert.equal(server.posts.length, count);
  assert.equal(await metric('kubeling_tokens_overdue'), 'kubeling_tokens_overdue 0');
});

test('does not renew a valid token that no caller requests', async () => {
  const { clock, server, get } = createHarness();
  const long = { expirationSeconds: 10 * hour };
  await get(long);
  await clock.advance(8 * hour * 1_000 + 1);
  server.failure = refusal(500, 'busy');
  assert.equal(await get(long), '1');
  await clock.advance(11 * 60_000);
  const count = server.posts.length;
  await clock.advance(30 * 60_000);
  assert.equal(server.posts.length, count);
});

test('drops the tokens of a removed pod', async () => {
  const { clock, server, tokens, get } = createHarness();
  await get();
  await get({ pod: { name: 'other', uid: podUid('pod-2') } });
  server.failure = refusal(500, 'busy');
  await assert.rejects(get({ audience: 'a' }));
  server.failure = undefined;
  tokens.forgetPod(one);
  await clock.advance(60_000);
  assert.equal(server.posts.length, 3);
  assert.equal(await get({ pod: { name: 'other', uid: podUid('pod-2') } }), '2');
  assert.equal(await get(), '4');
});

test('does not cache a token that arrives after its pod was removed', async () => {
  const { server, tokens, get } = createHarness();
  const pending = get();
  tokens.forgetPod(one);
  await pending;
  await get();
  assert.equal(server.posts.length, 2);
});

test('does not count a cancelled call as a failed request', async () => {
  const { clock, server, tokens } = createHarness();
  const own = new AbortController();
  server.post = (_ref: ObjectRef, _object: ApiObject, inner?: AbortSignal) =>
    new Promise((_resolve, reject) => inner?.addEventListener('abort', () => reject(inner.reason)));
  const requested = assert.rejects(tokens.get(ask(), own.signal), /enough/);
  await settle();
  own.abort(new Error('enough'));
  await requested;
  await clock.advance(120_000);
  assert.equal(server.posts.length, 0);
});

test('drops the tokens of a recreated service account as soon as another token shows its new UID', async () => {
  const { server, renewed, get } = createHarness();
  await get();
  server.accountUid = 'account-2';
  await get({ audience: 'a' });
  assert.deepEqual(renewed, [one]);
  assert.equal(await get(), '3');
});

test('checks service accounts every five minutes while their tokens are cached', async () => {
  const { clock, server, renewed, get, tokens } = createHarness();
  await get();
  await get({ audience: 'a' });
  await clock.advance(7 * 60_000);
  assert.deepEqual([server.gets, renewed], [['ns/sa'], []]);
  server.accountUid = 'account-2';
  await clock.advance(5 * 60_000);
  assert.deepEqual(renewed, [one]);
  assert.equal(await get(), '3');
  tokens.forgetPod(one);
  const count = server.gets.length;
  await clock.advance(60 * 60_000);
  assert.equal(server.gets.length, count);
});

test('treats a service account that was missing as a new one when it exists again', async () => {
  const { clock, server, get, tokens } = createHarness();
  await get();
  await clock.advance(2 * 60_000);
  tokens.forgetPod(one);
  await clock.advance(60 * 60_000);
  await get();
  await clock.advance(2 * 60_000);
  assert.deepEqual(server.gets, []);
});

test('retries a forbidden read of a service account only hourly', async () => {
  const { clock, server, get } = createHarness();
  server.getFailure = refusal(403, 'forbidden');
  const long = { expirationSeconds: 10 * hour };
  await get(long);
  await clock.advance(60 * 60_000);
  assert.equal(server.gets.length, 1);
  await clock.advance(10 * 60_000);
  assert.equal(server.gets.length, 2);
});

test('drops expired tokens that no caller requests', async () => {
  const { clock, server, get } = createHarness();
  await get();
  await clock.advance(hour * 1_000 + 60_000);
  server.failure = refusal(500, 'busy');
  await assert.rejects(get(), /^Error \[?KubelingError\]?|failed to fetch token/);
});

test('throws for tokens and objects on a node without an API server', async () => {
  const refused = {
    code: 'OBJECTS_STANDALONE',
    message: 'not supported due to running kubelet in standalone mode',
  };
  await assert.rejects(standaloneTokens.get(ask(), signal), refused);
  await assert.rejects(standaloneObjects.secret('ns', 'n', signal), refused);
  await assert.rejects(standaloneObjects.configMap('ns', 'n', signal), refused);
});
