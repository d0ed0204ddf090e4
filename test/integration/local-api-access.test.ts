import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { parseGrant } from '../../src/local-api/index.ts';
import { type Caller, everyWay } from '../fakes/every-way.ts';
import { ServedApi, type Way } from '../fakes/served-api.ts';

const aboutOneself = /\/selfsubject(accessreviews|rulesreviews|reviews)(\/thing)?$/;

describe('API authorization grants no rights to all authenticated users', () => {
  let harness: ServedApi;
  let admin: Caller;
  let ways: readonly Way[];
  before(async () => {
    harness = await ServedApi.open({ grants: [parseGrant('kube-system/viewer=view')] });
    admin = harness.caller(harness.pairOf('admin'));
    ways = await everyWay(admin);
  });
  after(() => harness[Symbol.asyncDispose]());

  async function tokenOf(namespace: string, account: string): Promise<string> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    const metadata = { name: account };
    await admin({ method: 'POST', path, body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata } });
    const wish = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
    const { status, text } = await admin({ method: 'POST', path: `${path}/${account}/token`, body: wish });
    assert.equal(status, 201, text);
    return (JSON.parse(text) as { readonly status: { readonly token: string } }).status.token;
  }

  async function refusedWith(code: number, caller: Caller, tried: readonly Way[]): Promise<void> {
    for (const way of tried) {
      const { status, text } = await caller(way);
      assert.equal(status, code, `${way.method} ${way.path}: ${text.slice(0, 200)}`);
    }
  }

  /** Methods that no user may call may be rejected with 405 instead of 403. */
  async function neverAnswered(caller: Caller, tried: readonly Way[]): Promise<void> {
    for (const way of tried) {
      const { status, text } = await caller(way);
      assert.ok([403, 405].includes(status), `${way.method} ${way.path}: ${status} ${text.slice(0, 200)}`);
    }
  }

  test('covers more than 300 API requests', () => {
    assert.ok(ways.length > 300, String(ways.length));
  });

  test('a service account with a role in one namespace gets 403 for everything else', async () => {
    const caller = harness.caller({ token: await tokenOf('kube-system', 'viewer') });
    await neverAnswered(
      caller,
      ways.filter(({ method, path }) => method !== 'POST' || !aboutOneself.test(path)),
    );
    assert.equal((await caller({ method: 'GET', path: '/api/v1/namespaces/kube-system/pods' })).status, 200);
    await refusedWith(403, caller, [{ method: 'GET', path: '/api/v1/namespaces/kube-system/secrets' }]);
  });

  test('a node certificate cannot read objects of other nodes or objects its pods do not use', async () => {
    const node = harness.caller(harness.pairOf('node'));
    const mayAsk =
      /^(?:GET|POST) .*\/(?:services|runtimeclasses|csidrivers|certificatesigningrequests)(?:\/thing)?(?:\?watch=true)?$|^(?:POST|PATCH|PUT) .*\/events(?:\/thing)?$|^POST .*reviews(?:\/thing)?$|^(?:GET|PUT|PATCH|DELETE) .*\/pods\/thing(?:\/status)?$|^POST .*\/(?:nodes|pods|csinodes)$|^POST .*\/pods\/thing\/eviction$|^(?:POST|GET) .*\/volumeattachments\/thing$/;
    const rest = ways.filter(({ method, path }) => !mayAsk.test(`${method} ${path}`));
    assert.ok(rest.length > 250, String(rest.length));
    await neverAnswered(node, rest);
    const other = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n2' } };
    const created = await node({ method: 'POST', path: '/api/v1/nodes', body: other });
    assert.equal(created.status, 403, created.text);
    assert.match(created.text, /node \\"n1\\" is not allowed to modify node \\"n2\\"/);
  });
});
