import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  clientPair,
  SecurityRig,
  shownPair,
  shownToken,
  someAuthorities,
} from '../../../test/fakes/security-rig.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { apiResources } from '../../api/index.ts';
import type { ApiUser } from '../api/index.ts';
import type { ClientInfo } from '../http/server-deps.ts';
import { parseGrant } from './roles.ts';

const admin = { commonName: 'kubeling-admin', organizations: ['system:masters'] };
const node = { commonName: 'system:node:n1', organizations: ['system:nodes'] };
const hourMs = 3_600_000;

type Maker = (
  harness: SecurityRig,
  clock: VirtualClock,
) => Partial<ClientInfo> | Promise<Partial<ClientInfo>>;

/** Credentials that must be rejected. */
const refusedCallers: Readonly<Record<string, Maker>> = {
  'a certificate of another authority': async (_, clock) =>
    shownPair(clientPair(await someAuthorities(clock), admin, clock.now())),
  'a certificate that has expired': (harness, clock) =>
    shownPair(clientPair(harness.authorities, admin, clock.now(), [-2 * hourMs, -hourMs])),
  'a certificate that is not valid yet': (harness, clock) =>
    shownPair(clientPair(harness.authorities, admin, clock.now(), [hourMs, 2 * hourMs])),
  'a certificate TLS did not trust': (harness, clock) => {
    const { certificate } = shownPair(clientPair(harness.authorities, admin, clock.now()));
    return { certificate: certificate && { ...certificate, untrusted: 'CERT_HAS_EXPIRED' } };
  },
  'the certificate of the server': (harness) =>
    shownPair({ cert: harness.authorities.pairOf('serving').certificatePem }),
  'a certificate without a name': (harness, clock) =>
    shownPair(
      clientPair(harness.authorities, { commonName: '', organizations: ['system:masters'] }, clock.now()),
    ),
  'a token without any part of a JSON Web Token': () => shownToken('abc'),
  'a token without a signature': (harness) => {
    const [head, body] = harness.tokens.issue(harness.claims()).split('.');
    return shownToken(`${head}.${body}.`);
  },
  'a token with the signature algorithm none': (harness) => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const kid = harness.authorities.tokenKeys[0].id;
    return shownToken(`${part({ alg: 'none', kid })}.${part(harness.claims())}.`);
  },
  'a token with a changed payload': (harness) => {
    const [head, , signature] = harness.tokens.issue(harness.claims()).split('.');
    const body = Buffer.from(JSON.stringify(harness.claims())).toString('base64url');
    return shownToken(`${head}.${body}.${signature}`);
  },
  'a token of another server': async (harness, clock) => {
    const other = await SecurityRig.open(clock);
    return shownToken(other.tokens.issue(harness.claims()));
  },
  'a token of another issuer': (harness) =>
    shownToken(harness.tokens.issue(harness.claims({ iss: 'https://else.where' }))),
  'a token for another audience': (harness) =>
    shownToken(harness.tokens.issue(harness.claims({ aud: ['vault'] }))),
  'a token that has expired': async (harness, clock) => {
    const token = harness.tokens.issue(harness.claims());
    await clock.advance(3_607_000 + 61_000);
    return shownToken(token);
  },
  'a token that is not valid yet': (harness, clock) =>
    shownToken(harness.tokens.issue(harness.claims({ nbf: Math.floor(clock.now() / 1_000) + 120 }))),
  'a token of an account that is gone': (harness) => {
    harness.objects.remove(apiResources.serviceAccounts, 'shop', 'builder');
    return shownToken(harness.tokens.issue(harness.claims()));
  },
  'a token of an account that was made anew': (harness) => {
    harness.objects.put(apiResources.serviceAccounts, 'shop', 'builder', { metadata: { uid: 'new' } });
    return shownToken(harness.tokens.issue(harness.claims()));
  },
  'a token of a pod that is gone': (harness) => {
    harness.objects.remove(apiResources.pods, 'shop', 'web');
    return shownToken(harness.tokens.issue(harness.claims()));
  },
  'a token of a pod that should be gone for long': (harness) => {
    const metadata = { deletionTimestamp: '2025-12-31T23:58:00Z' };
    harness.objects.put(apiResources.pods, 'shop', 'web', { metadata });
    return shownToken(harness.tokens.issue(harness.claims()));
  },
  'a token of a secret that is gone': (harness) => {
    const { namespace, serviceaccount } = harness.claims()['kubernetes.io'];
    const bound = { namespace, serviceaccount, secret: { name: 'gone', uid: 'x' } };
    return shownToken(harness.tokens.issue(harness.claims({ 'kubernetes.io': bound })));
  },
  'a token of a node that is another': (harness) => {
    const { namespace, serviceaccount } = harness.claims()['kubernetes.io'];
    const bound = { namespace, serviceaccount, node: { name: 'n1', uid: 'old' } };
    return shownToken(harness.tokens.issue(harness.claims({ 'kubernetes.io': bound })));
  },
  'a token with the name of another account': (harness) =>
    shownToken(harness.tokens.issue(harness.claims({ sub: 'system:serviceaccount:kube-system:root' }))),
};

describe('invalid credentials', () => {
  for (const [what, make] of Object.entries(refusedCallers)) {
    test(`rejects invalid credentials: ${what}`, async () => {
      const clock = new VirtualClock();
      const harness = await SecurityRig.open(clock);
      assert.equal(await harness.who(await make(harness, clock)), 401);
      assert.equal(harness.logs.records.toArray().length, 1, 'the reason is logged');
    });
  }

  test('ignores invalid credentials beside a valid token, and an invalid token beside a valid certificate', async () => {
    const clock = new VirtualClock();
    const harness = await SecurityRig.open(clock);
    const bad = shownPair(clientPair(await someAuthorities(clock), admin, clock.now()));
    const good = shownPair(clientPair(harness.authorities, admin, clock.now()));
    const user = (await harness.who({
      ...bad,
      ...shownToken(harness.tokens.issue(harness.claims())),
    })) as ApiUser;
    assert.equal(user.name, 'system:serviceaccount:shop:builder');
    assert.equal(((await harness.who({ ...good, ...shownToken('x') })) as ApiUser).name, 'kubeling-admin');
  });

  test('rejects certificates that have expired or whose CA was replaced', async () => {
    const clock = new VirtualClock();
    const harness = await SecurityRig.open(clock);
    const shown = shownPair(clientPair(harness.authorities, admin, clock.now()));
    assert.equal(typeof (await harness.who(shown)), 'object');
    await clock.advance(hourMs + 1_000);
    assert.equal(await harness.who(shown), 401);
  });
});

describe('valid credentials', () => {
  test('accepts requests without credentials as the anonymous user', async () => {
    const harness = await SecurityRig.open();
    const anonymous = { name: 'system:anonymous', groups: ['system:unauthenticated'] };
    assert.deepEqual(await harness.who({}), anonymous);
    assert.deepEqual(await harness.who({ headers: { authorization: 'Basic eDp5' } }), anonymous);
  });

  test('accepts a client certificate and takes the groups from its organizations', async () => {
    const clock = new VirtualClock();
    const harness = await SecurityRig.open(clock);
    const user = (await harness.who(
      shownPair(clientPair(harness.authorities, node, clock.now())),
    )) as ApiUser;
    assert.deepEqual([user.name, user.groups], ['system:node:n1', ['system:nodes', 'system:authenticated']]);
    assert.match(
      String(user.extra?.['authentication.kubernetes.io/credential-id']),
      /^X509SHA256=[0-9a-f]{64}$/,
    );
  });

  test('accepts a token in a header or as a WebSocket protocol', async () => {
    const harness = await SecurityRig.open();
    const token = harness.tokens.issue(harness.claims());
    const coded = `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`;
    for (const headers of [
      { authorization: `bearer  ${token}` },
      { 'sec-websocket-protocol': `v5.channel.k8s.io, ${coded}` },
    ]) {
      const user = (await harness.who({ headers })) as ApiUser;
      assert.equal(user.name, 'system:serviceaccount:shop:builder');
      assert.equal(user.uid, 'uid-of-builder');
      assert.deepEqual(user.groups, [
        'system:serviceaccounts',
        'system:serviceaccounts:shop',
        'system:authenticated',
      ]);
      assert.deepEqual(user.extra?.['authentication.kubernetes.io/pod-name'], ['web']);
      assert.deepEqual(user.extra?.['authentication.kubernetes.io/node-uid'], ['uid-of-n1']);
    }
  });

  test('accepts the token of a terminating pod until a minute after its deletion timestamp', async () => {
    const clock = new VirtualClock();
    const harness = await SecurityRig.open(clock);
    const token = harness.tokens.issue(harness.claims());
    harness.objects.put(apiResources.pods, 'shop', 'web', {
      metadata: { deletionTimestamp: '2026-01-01T00:00:30Z' },
    });
    await clock.advance(80_000);
    assert.equal(typeof (await harness.who(shownToken(token))), 'object');
    await clock.advance(20_000);
    assert.equal(await harness.who(shownToken(token)), 401);
  });
});

/** A request as `verb group/resource/sub namespace/name selector`. */
function wishOf(line: string) {
  const [verb = '', what = '', where = '/', fieldSelector] = line.split(' ');
  const [group = '', resource = '', subresource] = what.includes('/') ? what.split('/') : ['', what];
  const [namespace, name] = where.split('/');
  return {
    verb,
    group,
    resource,
    subresource,
    namespace: namespace || undefined,
    name: name || undefined,
    fieldSelector,
  };
}

const everyone = ['admin', 'node', 'account', 'nobody'] as const;
type Everyone = (typeof everyone)[number];

async function users(
  harness: SecurityRig,
  clock: VirtualClock,
): Promise<Readonly<Record<Everyone, ApiUser>>> {
  const certified = (subject: typeof admin) =>
    harness.who(shownPair(clientPair(harness.authorities, subject, clock.now())));
  return {
    admin: (await certified(admin)) as ApiUser,
    node: (await certified(node)) as ApiUser,
    account: (await harness.who(shownToken(harness.tokens.issue(harness.claims())))) as ApiUser,
    nobody: (await harness.who({})) as ApiUser,
  };
}

/** The requests that users other than the administrator may send. */
const wishes: readonly (readonly [wish: string, ...who: Everyone[]])[] = [
  ['create authorization.k8s.io/selfsubjectaccessreviews', 'node', 'account'],
  ['create authorization.k8s.io/selfsubjectrulesreviews', 'node', 'account'],
  ['create authentication.k8s.io/selfsubjectreviews', 'node', 'account'],
  ['create authorization.k8s.io/subjectaccessreviews', 'node'],
  ['create authentication.k8s.io/tokenreviews', 'node'],
  ['get nodes /n1', 'node'],
  ['list nodes / metadata.name=n1', 'node'],
  ['patch /nodes/status /n1', 'node'],
  ['patch nodes /n1', 'node'],
  ['create nodes', 'node'],
  ['get nodes /n2'],
  ['list nodes'],
  ['delete nodes /n1'],
  ['patch /nodes/status /n2'],
  ['patch nodes /n2'],
  ['create /nodes/proxy /n1'],
  ['get metrics.k8s.io/nodes /n1'],
  ['list pods / spec.nodeName=n1', 'node'],
  ['watch pods / spec.nodeName=n1', 'node'],
  ['list pods / spec.nodeName=n2'],
  ['list pods shop/'],
  ['get pods shop/web', 'node'],
  ['get pods shop/elsewhere'],
  ['patch /pods/status shop/web', 'node'],
  ['patch /pods/status shop/elsewhere'],
  ['create /pods/eviction shop/web', 'node'],
  ['create /pods/eviction shop/elsewhere'],
  ['update pods shop/web'],
  ['patch pods shop/web'],
  ['deletecollection pods shop/'],
  ['create /pods/binding shop/web'],
  ['create /pods/exec shop/web'],
  ['create /pods/attach shop/web'],
  ['create /pods/portforward shop/web'],
  ['create /pods/proxy shop/web'],
  ['get /pods/log shop/web'],
  ['get metrics.k8s.io/pods shop/web'],
  ['get secrets shop/used', 'node'],
  ['watch secrets shop/used metadata.name=used', 'node'],
  ['list secrets shop/ metadata.name=used', 'node'],
  ['get secrets shop/other'],
  ['get secrets kube-system/used'],
  ['list secrets shop/'],
  ['list secrets'],
  ['update secrets shop/used'],
  ['get configmaps shop/other'],
  ['get serviceaccounts shop/builder', 'node'],
  ['create /serviceaccounts/token shop/builder', 'node'],
  ['create /serviceaccounts/token shop/default'],
  ['create serviceaccounts shop/'],
  ['get persistentvolumeclaims shop/data', 'node'],
  ['patch /persistentvolumeclaims/status shop/data', 'node'],
  ['get persistentvolumes /pv1', 'node'],
  ['get persistentvolumes /pv2'],
  ['update coordination.k8s.io/leases kube-node-lease/n1', 'node'],
  ['update coordination.k8s.io/leases kube-node-lease/n2'],
  ['update coordination.k8s.io/leases default/n1'],
  ['list services', 'node'],
  ['create services shop/'],
  ['watch node.k8s.io/runtimeclasses', 'node'],
  ['list storage.k8s.io/csidrivers', 'node'],
  ['update storage.k8s.io/csinodes /n1', 'node'],
  ['update storage.k8s.io/csinodes /n2'],
  ['create certificates.k8s.io/certificatesigningrequests', 'node'],
  ['update certificates.k8s.io/certificatesigningrequests/approval /x'],
  ['create events shop/', 'node'],
  ['list events shop/'],
  ['create namespaces'],
  ['delete namespaces /shop'],
  ['impersonate users /somebody'],
];

const paths: readonly (readonly [path: string, ...who: Everyone[]])[] = [
  ['/healthz', 'node', 'account', 'nobody'],
  ['/livez', 'node', 'account', 'nobody'],
  ['/readyz', 'node', 'account', 'nobody'],
  ['/version', 'node', 'account', 'nobody'],
  ['/api', 'node', 'account'],
  ['/api/v1', 'node', 'account'],
  ['/apis', 'node', 'account'],
  ['/apis/storage.k8s.io/v1', 'node', 'account'],
  ['/openapi/v2', 'node', 'account'],
  ['/openapi/v3/api/v1', 'node', 'account'],
  ['/openid/v1/jwks', 'node', 'account'],
  ['/.well-known/openid-configuration', 'node', 'account'],
  ['/metrics'],
  ['/apiary'],
  ['/'],
];

describe('authorization', () => {
  test('allows or denies each request of each user as expected', async () => {
    const clock = new VirtualClock();
    const harness = await SecurityRig.open(clock);
    const known = await users(harness, clock);
    for (const [line, ...who] of wishes) {
      const may = await Promise.all(everyone.map((each) => harness.may(known[each], wishOf(line))));
      const allowed = everyone.filter((_, index) => may[index]);
      assert.deepEqual(allowed, ['admin', ...who], line);
    }
  });

  test('allows or denies requests for non-resource paths as expected', async () => {
    const clock = new VirtualClock();
    const harness = await SecurityRig.open(clock);
    const known = await users(harness, clock);
    const { signal } = new AbortController();
    for (const [path, ...who] of paths) {
      const requested = everyone.map((each) =>
        harness.security.authorize(known[each], { to: 'path', verb: 'get', path }, signal),
      );
      const allowed = everyone.filter(
        (_, index) => (requested[index] as { readonly allowed: boolean }).allowed,
      );
      assert.deepEqual(allowed, ['admin', ...who], path);
      const write = await harness.security.authorize(
        known.account,
        { to: 'path', verb: 'post', path },
        signal,
      );
      assert.equal(write.allowed, false, `post ${path}`);
    }
  });

  test('returns the reason for which a request is denied', async () => {
    const clock = new VirtualClock();
    const harness = await SecurityRig.open(clock);
    const wish = { verb: 'get', group: '', version: 'v1', resource: 'secrets', subresource: '' };
    const requested = { to: 'resource', ...wish, namespace: 'shop', name: 'other' } as const;
    assert.deepEqual(harness.judge.authorize((await users(harness, clock)).node, requested), {
      allowed: false,
      reason: "no relationship found between node 'n1' and this object",
    });
  });

  test('returns the rules of the user in a SelfSubjectRulesReview', async () => {
    const clock = new VirtualClock();
    const harness = await SecurityRig.open(clock);
    const known = await users(harness, clock);
    assert.deepEqual(harness.judge.rulesFor(known.admin, 'shop').resourceRules[0]?.verbs, ['*']);
    const account = harness.judge.rulesFor(known.account, 'shop');
    assert.deepEqual(
      account.resourceRules.flatMap(({ resources }) => resources),
      ['selfsubjectaccessreviews', 'selfsubjectrulesreviews', 'selfsubjectreviews'],
    );
    assert.equal(account.incomplete, false);
    assert.equal(harness.judge.rulesFor(known.node, 'shop').incomplete, true);
    assert.deepEqual(harness.judge.rulesFor(known.nobody, 'shop').resourceRules, []);
  });
});

describe('a granted role', () => {
  const granted = async (grant: string) => {
    const clock = new VirtualClock();
    const harness = await SecurityRig.open(clock, [parseGrant(grant)]);
    const { account } = await users(harness, clock);
    return (line: string) => harness.may(account, wishOf(line));
  };

  test('role view allows reading in its namespace, except secrets', async () => {
    const may = await granted('shop/builder=view');
    for (const line of [
      'get pods shop/web',
      'watch configmaps shop/',
      'get /pods/log shop/web',
      'list events shop/',
    ])
      assert.equal(await may(line), true, line);
    for (const line of [
      'list pods',
      'get pods other/x',
      'get secrets shop/used',
      'create pods shop/',
      'create /pods/exec shop/web',
      'get nodes /n1',
      'create /serviceaccounts/token shop/builder',
    ])
      assert.equal(await may(line), false, line);
  });

  test('role edit allows writing and exec, but not issuing tokens', async () => {
    const may = await granted('shop/*=edit');
    for (const line of [
      'create pods shop/',
      'get secrets shop/used',
      'create /pods/exec shop/web',
      'delete pods shop/x',
    ])
      assert.equal(await may(line), true, line);
    for (const line of [
      'create /serviceaccounts/token shop/builder',
      'create pods other/',
      'patch /pods/status shop/web',
      'create /pods/binding shop/web',
      'create /nodes/proxy /n1',
    ])
      assert.equal(await may(line), false, line);
  });

  test('a role in all namespaces includes reading cluster-scoped resources', async () => {
    const may = await granted('shop/builder=admin@*');
    for (const line of [
      'list pods',
      'delete pods other/x',
      'create /serviceaccounts/token other/x',
      'list nodes',
    ])
      assert.equal(await may(line), true, line);
    for (const line of ['patch nodes /n1', 'create namespaces', 'impersonate users /x'])
      assert.equal(await may(line), false, line);
  });

  test('rejects a malformed --grant setting', () => {
    assert.deepEqual(parseGrant('a/b=view@c'), {
      to: 'system:serviceaccount:a:b',
      role: 'view',
      namespace: 'c',
    });
    for (const text of ['', 'a=view', 'a/b=root', 'a/b', 'a/b=view@', 'A/b=view', 'a/b=view@c d'])
      assert.throws(() => parseGrant(text), /--grant must be/, text);
  });
});

describe('impersonation', () => {
  const as = (headers: Record<string, string>) => ({ headers });

  test('an impersonating administrator has the permissions of the impersonated user', async () => {
    const clock = new VirtualClock();
    const harness = await SecurityRig.open(clock);
    const shown = shownPair(clientPair(harness.authorities, admin, clock.now()));
    const user = (await harness.who({
      ...shown,
      ...as({ 'impersonate-user': 'system:serviceaccount:a:b' }),
    })) as ApiUser;
    assert.deepEqual(user.groups, [
      'system:serviceaccounts',
      'system:serviceaccounts:a',
      'system:authenticated',
    ]);
    assert.equal(await harness.may(user, wishOf('get pods shop/web')), false);
    const other = (await harness.who({
      ...shown,
      ...as({ 'impersonate-user': 'joe', 'impersonate-group': 'x, y', 'impersonate-extra-a%2fb': 'c' }),
    })) as ApiUser;
    assert.deepEqual(other, {
      name: 'joe',
      groups: ['x', 'y', 'system:authenticated'],
      extra: { 'a/b': ['c'] },
    });
  });

  test('rejects impersonation by other users and without a user name', async () => {
    const clock = new VirtualClock();
    const harness = await SecurityRig.open(clock);
    const token = shownToken(harness.tokens.issue(harness.claims())).headers;
    assert.equal(await harness.who({ headers: { ...token, 'impersonate-user': 'kubeling-admin' } }), 403);
    assert.equal(await harness.who({ headers: { 'impersonate-user': 'kubeling-admin' } }), 403);
    const shown = shownPair(clientPair(harness.authorities, admin, clock.now()));
    assert.equal(await harness.who({ ...shown, ...as({ 'impersonate-group': 'system:masters' }) }), 500);
  });
});
