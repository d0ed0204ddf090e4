import assert from 'node:assert/strict';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { realClock } from '../../src/lib/index.ts';
import type { TokenClaims } from '../../src/local-api/kinds/index.ts';
import { createTokenIssuer, defaultIssuer } from '../../src/local-api/security/index.ts';
import { type Caller, everyStream, everyWay } from '../fakes/every-way.ts';
import { clientPair, FewObjects, someAuthorities } from '../fakes/security-rig.ts';
import { type Credential, ServedApi, type Way } from '../fakes/served-api.ts';

const clock = realClock();
const hourMs = 3_600_000;
const masters = { commonName: 'kubeling-admin', organizations: ['system:masters'] };
/** The content of a secret, which must appear only in responses to authorized callers. */
const innermost = 'the-innermost-secret';
const secretPath = '/api/v1/namespaces/default/secrets';
const publicPaths = ['/healthz', '/livez', '/readyz', '/version'];
const pages = ['/', '/api', '/apis', '/api/v1', '/openapi/v2', '/openapi/v3', '/metrics', '/openid/v1/jwks'];

interface Made {
  readonly metadata: { readonly name: string; readonly uid: string };
}

describe('credentials of the embedded API', { timeout: 240_000 }, () => {
  let api: ServedApi;
  let admin: Caller;
  let ways: readonly Way[];
  const streams = everyStream();
  const tokens = new Map<string, string>();

  before(async () => {
    api = await ServedApi.open();
    admin = api.caller(api.pairOf('admin'));
    await fill();
    ways = [...(await everyWay(admin)), ...pages.map((path) => ({ method: 'GET', path })), ...streams];
  });
  after(() => api[Symbol.asyncDispose]());

  async function make(path: string, body: object): Promise<Made> {
    const { status, text } = await admin({ method: 'POST', path, body });
    assert.equal(status, 201, text);
    return JSON.parse(text) as Made;
  }

  async function fill(): Promise<void> {
    await make('/api/v1/nodes', { metadata: { name: 'n1' } });
    await make(secretPath, { metadata: { name: 'innermost' }, stringData: { word: innermost } });
    for (const name of ['bare', 'gone', 'anew'])
      await make('/api/v1/namespaces/default/serviceaccounts', { metadata: { name } });
    const spec = { nodeName: 'n1', serviceAccountName: 'bare', containers: [{ name: 'main', image: 'i' }] };
    for (const name of ['web', 'gone'])
      await make('/api/v1/namespaces/default/pods', { metadata: { name }, spec });
    for (const account of ['bare', 'gone', 'anew']) tokens.set(account, await tokenOf(account));
    tokens.set('of a pod', await tokenOf('bare', 'web'));
    tokens.set('of a deleted pod', await tokenOf('bare', 'gone'));
    tokens.set('for others', await tokenOf('bare', undefined, ['somebody-else']));
    await admin({ method: 'DELETE', path: '/api/v1/namespaces/default/serviceaccounts/gone' });
    await admin({ method: 'DELETE', path: '/api/v1/namespaces/default/serviceaccounts/anew' });
    await make('/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'anew' } });
    const now = { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0 };
    const deleted = await admin({
      method: 'DELETE',
      path: '/api/v1/namespaces/default/pods/gone',
      body: now,
    });
    assert.equal(deleted.status, 200, deleted.text);
  }

  async function tokenOf(account: string, pod?: string, audiences?: readonly string[]): Promise<string> {
    const bond = pod === undefined ? {} : { boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: pod } };
    const spec = { ...bond, ...(audiences === undefined ? {} : { audiences }) };
    const path = `/api/v1/namespaces/default/serviceaccounts/${account}/token`;
    const { status } = (await make(path, { spec })) as unknown as {
      readonly status: { readonly token: string };
    };
    return status.token;
  }

  /** Signs a token as the server would. */
  async function signed(more: Partial<TokenClaims>, keys = api.authorities.tokenKeys): Promise<string> {
    const path = '/api/v1/namespaces/default/serviceaccounts/bare';
    const { metadata } = JSON.parse((await admin({ method: 'GET', path })).text) as Made;
    const now = Math.floor(clock.now() / 1_000);
    const claims: TokenClaims = {
      iss: defaultIssuer,
      sub: 'system:serviceaccount:default:bare',
      aud: [defaultIssuer],
      exp: now + 3_600,
      iat: now,
      nbf: now,
      jti: '1',
      'kubernetes.io': { namespace: 'default', serviceaccount: { name: 'bare', uid: metadata.uid } },
      ...more,
    };
    return createTokenIssuer({ keys, objects: new FewObjects(), clock }).issue(claims);
  }

  async function withKey(of: 'ours' | 'theirs', more: Partial<TokenClaims> = {}): Promise<Credential> {
    const keys = of === 'ours' ? api.authorities.tokenKeys : (await someAuthorities(clock)).tokenKeys;
    return { token: await signed(more, keys) };
  }

  const nowSeconds = () => Math.floor(clock.now() / 1_000);
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

  /**
   * A sample of all requests and streams: bad credentials are rejected before the resource matters.
   */
  const some = () => [
    ...ways.filter((_, index) => index % 29 === 0),
    ...streams.filter(({ upgrade }, index) => upgrade !== undefined && index % 3 === 0),
  ];

  const worthless: Readonly<Record<string, () => Credential | Promise<Credential>>> = {
    'a certificate of another authority': async () =>
      clientPair(await someAuthorities(clock), masters, clock.now()),
    'a certificate that has expired': () =>
      clientPair(api.authorities, masters, clock.now(), [-2 * hourMs, -hourMs]),
    'a certificate that is not valid yet': () =>
      clientPair(api.authorities, masters, clock.now(), [hourMs, 2 * hourMs]),
    'the certificate of the server': () => api.pairOf('serving'),
    'a wrong token': () => ({ token: 'wrong' }),
    'an empty token of three parts': () => ({ token: '..' }),
    'an unsigned token': async () => {
      const [, claims] = (await signed({})).split('.');
      return { token: `${part({ alg: 'none' })}.${claims}.` };
    },
    'a token that uses the public key as a shared HMAC key': async () => {
      const [id] = api.authorities.tokenKeys.map((key) => key.id);
      const [, claims, signature] = (await signed({})).split('.');
      return { token: `${part({ alg: 'HS256', kid: id })}.${claims}.${signature}` };
    },
    'a token whose claims were changed': async () => {
      const [head, , signature] = (await signed({})).split('.');
      const [, claims] = (await signed({ sub: 'system:serviceaccount:kube-system:default' })).split('.');
      return { token: `${head}.${claims}.${signature}` };
    },
    'a token of another server': () => withKey('theirs'),
    'a token that has expired': () => withKey('ours', { exp: nowSeconds() - 3_600, iat: 0, nbf: 0 }),
    'a token that is not valid yet': () => withKey('ours', { nbf: nowSeconds() + 3_600 }),
    'a token of another issuer': () => withKey('ours', { iss: 'https://elsewhere' }),
    'a token whose subject is not its account': () =>
      withKey('ours', { sub: 'system:serviceaccount:kube-system:default' }),
    'a token for another audience': () => ({ token: tokens.get('for others') ?? '' }),
    'the token of a deleted service account': () => ({ token: tokens.get('gone') ?? '' }),
    'the token of a service account that is another one of its name': () => ({
      token: tokens.get('anew') ?? '',
    }),
    'the token of a recreated service account of the same name': () => ({
      token: tokens.get('of a deleted pod') ?? '',
    }),
    'a wrong token among the protocols of a web socket': () => ({
      headers: { 'sec-websocket-protocol': 'base64url.bearer.authorization.k8s.io.d3Jvbmc' },
    }),
  };
  for (const [what, make] of Object.entries(worthless)) {
    test(`${what} is rejected, even for public paths`, async () => {
      const caller = api.caller(await make());
      const paths = publicPaths.map((path) => ({ method: 'GET', path }));
      await allAnswer([401], caller, [...some(), ...paths]);
    });
  }

  const strangers: Readonly<Record<string, () => Credential>> = {
    'a caller with a password': () => ({ headers: { authorization: 'Basic YWRtaW46YWRtaW4=' } }),
    'a caller with an empty bearer token': () => ({ headers: { authorization: 'Bearer ' } }),
    'a caller with proxy authentication headers': () => ({
      headers: {
        'x-remote-user': 'admin',
        'x-remote-group': 'system:masters',
        'x-forwarded-for': '127.0.0.1',
      },
    }),
    'a caller with a cookie': () => ({ headers: { cookie: `token=${tokens.get('bare')}` } }),
  };
  for (const [who, shown] of Object.entries(strangers)) {
    test(`${who} is anonymous and reads only health and version`, async () => {
      const caller = api.caller(shown());
      await allAnswer([403], caller, some());
      for (const path of publicPaths) assert.equal((await caller({ method: 'GET', path })).status, 200, path);
    });
  }

  test('a caller without credentials is treated as anonymous for every request', async () => {
    await allAnswer([403], api.caller(), ways);
    for (const path of publicPaths)
      assert.equal((await api.caller()({ method: 'GET', path })).status, 200, path);
  });

  test('a token in the query string is not accepted as a credential', async () => {
    for (const name of ['access_token', 'token', 'authorization', 'bearer_token'])
      await allAnswer([403], api.caller(), [
        { method: 'GET', path: `/api?${name}=${tokens.get('bare')}` },
        { method: 'GET', path: `${secretPath}?${name}=${tokens.get('bare')}` },
      ]);
  });

  test('tokens of a pod and of an account without a role allow only self-review requests', async () => {
    const aboutOneself = /\/selfsubject(accessreviews|rulesreviews|reviews)(\/thing)?$/;
    const known = /^GET \/(api|apis|api\/v1|openapi\/v[23]|openid\/v1\/jwks)$/;
    const rest = ways.filter(
      ({ method, path }) =>
        !(method === 'POST' && aboutOneself.test(path)) && !known.test(`${method} ${path}`),
    );
    for (const token of [tokens.get('of a pod'), tokens.get('bare')])
      await allAnswer([403, 405], api.caller({ token: token ?? '' }), rest);
  });

  test('only an administrator may impersonate another user', async () => {
    const masks: Readonly<Record<string, string>>[] = [
      { 'impersonate-user': 'kubeling-admin', 'impersonate-group': 'system:masters' },
      { 'impersonate-user': 'system:node:n1', 'impersonate-group': 'system:nodes' },
      { 'impersonate-user': 'system:serviceaccount:default:bare' },
    ];
    const way = { method: 'GET', path: '/version' };
    for (const headers of masks) {
      const token = { token: tokens.get('bare') ?? '', headers };
      for (const shown of [{ headers }, token, { ...api.pairOf('node'), headers }])
        await allAnswer([403], api.caller(shown), [way]);
    }
    const masked = api.caller({ ...api.pairOf('admin'), headers: masks[2] ?? {} });
    await allAnswer([403], masked, [{ method: 'GET', path: secretPath }, ...streams]);
  });

  test('the administrator may call everything, and the server authenticates to the kubelet with its own client certificate', async () => {
    const before = api.kubelet.visits.length;
    for (const way of streams) {
      const { status, text } = await admin(way);
      assert.ok(![401, 403].includes(status), `${way.method} ${way.path}: ${status} ${text}`);
    }
    const visits = api.kubelet.visits.slice(before);
    assert.ok(visits.length >= 15, String(visits.length));
    for (const { by, headers } of visits) {
      assert.equal(by, 'kubeling-admin');
      assert.equal(headers.authorization, undefined);
    }
  });

  test('unauthorized requests never reach the kubelet', async () => {
    const before = api.kubelet.visits.length;
    await allAnswer([403], api.caller(), streams);
    await allAnswer([403], api.caller({ token: tokens.get('of a pod') ?? '' }), streams);
    await allAnswer([403], api.caller(api.pairOf('node')), streams);
    assert.equal(api.kubelet.visits.length, before);
  });

  test('the server sends nothing to a kubelet that presents no valid certificate', async () => {
    await api.kubelet.listen(await someAuthorities(clock));
    const before = api.kubelet.visits.length;
    try {
      const toKubelets = /web\/(exec|attach|portforward)|nodes/;
      for (const way of streams.filter(({ path }) => toKubelets.test(path))) {
        const { status, text } = await admin(way);
        const isRefused = status === 500 || (status === 400 && /Upgrade request required/.test(text));
        assert.ok(isRefused, `${way.method} ${way.path} ${way.upgrade}: ${status} ${text}`);
      }
      assert.equal(api.kubelet.visits.length, before);
    } finally {
      await api.kubelet.listen(api.authorities);
    }
  });

  test('keys and files with secrets are readable by their owner only', async () => {
    const entries = await readdir(api.directory, { recursive: true, withFileTypes: true });
    const files = entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
    const directories = entries.filter((entry) => entry.isDirectory());
    for (const { parentPath, name } of directories)
      assert.equal((await stat(join(parentPath, name))).mode & 0o077, 0, name);
    let secret = 0;
    for (const file of files) {
      const text = await readFile(file, 'latin1');
      if (!text.includes('PRIVATE KEY') && !text.includes('client-key-data') && !file.includes('objects.db'))
        continue;
      secret++;
      assert.equal((await stat(file)).mode & 0o777, 0o600, file);
    }
    assert.ok(secret >= 6, String(secret));
  });

  test('the log contains no token, key or secret content', async () => {
    const { status, text } = await admin({ method: 'GET', path: `${secretPath}/innermost` });
    assert.equal(status, 200, text);
    const reported = [...api.logs.records].map((record) => JSON.stringify(record)).join('\n');
    assert.match(reported, /Audit: streaming or proxy request/);
    const words = [innermost, Buffer.from(innermost).toString('base64'), 'PRIVATE KEY', ...tokens.values()];
    for (const word of words) assert.ok(!reported.includes(word), word.slice(0, 40));
    for (const token of tokens.values())
      assert.ok(!reported.includes(token.split('.')[2] ?? ''), 'a signature');
    assert.doesNotMatch(reported, /"severity":"error"/);
  });

  async function allAnswer(codes: readonly number[], caller: Caller, tried: readonly Way[]): Promise<void> {
    for (const way of tried) {
      const { status, text } = await caller(way);
      assert.ok(
        codes.includes(status),
        `${way.method} ${way.path} ${way.upgrade ?? ''}: ${status} ${text.slice(0, 300)}`,
      );
      assert.ok(!text.includes(innermost), way.path);
    }
  }
});
