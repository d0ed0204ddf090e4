import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { realClock } from '../../src/lib/index.ts';
import { createCertificateRequest, newEcKey } from '../../src/protocols/x509/index.ts';
import type { Caller } from '../fakes/every-way.ts';
import { clientPair } from '../fakes/security-rig.ts';
import { ServedApi, type Way } from '../fakes/served-api.ts';

const shop = '/api/v1/namespaces/shop';
const leases = '/apis/coordination.k8s.io/v1/namespaces';
const csiNodes = '/apis/storage.k8s.io/v1/csinodes';
const signing = '/apis/certificates.k8s.io/v1/certificatesigningrequests';

/**
 * Node `n1` runs pod `web` and node `n2` runs pod `elsewhere`; each pod references the objects with
 * its name, and no pod references `unused`.
 */
async function fill(admin: Caller): Promise<ReadonlyMap<string, string>> {
  const uids = new Map<string, string>();
  const make = async (path: string, body: object) => {
    const { status, text } = await admin({ method: 'POST', path, body });
    assert.equal(status, 201, text);
    const { metadata } = JSON.parse(text) as {
      readonly metadata: { readonly name: string; readonly uid: string };
    };
    uids.set(`${path.split('/').at(-1)} ${metadata.name}`, metadata.uid);
  };
  await make('/api/v1/namespaces', { metadata: { name: 'shop' } });
  for (const name of ['n1', 'n2']) {
    await make('/api/v1/nodes', { metadata: { name } });
    await make(`${leases}/kube-node-lease/leases`, { metadata: { name } });
    await make(csiNodes, { metadata: { name } });
  }
  for (const name of ['web', 'elsewhere', 'unused']) {
    for (const kind of ['secrets', 'configmaps', 'serviceaccounts'])
      await make(`${shop}/${kind}`, { metadata: { name } });
    const resources = { requests: { storage: '1Gi' } };
    const spec = { accessModes: ['ReadWriteOnce'], storageClassName: '', resources };
    await make(`${shop}/persistentvolumeclaims`, { metadata: { name }, spec });
  }
  for (const [name, nodeName] of [
    ['web', 'n1'],
    ['elsewhere', 'n2'],
  ] as const) {
    const token = { serviceAccountToken: { path: 't', audience: 'vault', expirationSeconds: 600 } };
    const volumes = [
      { name: 's', secret: { secretName: name } },
      { name: 'c', configMap: { name } },
      { name: 'p', persistentVolumeClaim: { claimName: name } },
      { name: 't', projected: { sources: [token] } },
    ];
    const containers = [{ name: 'main', image: 'i' }];
    await make(`${shop}/pods`, {
      metadata: { name },
      spec: { nodeName, serviceAccountName: name, volumes, containers },
    });
  }
  return uids;
}

describe('API rights of a node certificate', { timeout: 240_000 }, () => {
  let api: ServedApi;
  let node: Caller;
  let uids: ReadonlyMap<string, string>;
  before(async () => {
    api = await ServedApi.open();
    uids = await fill(api.caller(api.pairOf('admin')));
    node = api.caller(api.pairOf('node'));
  });
  after(() => api[Symbol.asyncDispose]());

  const get = (path: string): Way => ({ method: 'GET', path });
  const patch = (path: string, body: object): Way => ({ method: 'PATCH', path, body });
  const remove = (path: string): Way => ({ method: 'DELETE', path });
  const post = (path: string, body: object): Way => ({ method: 'POST', path, body });
  const list = (path: string, selector: string): Way =>
    get(`${path}?fieldSelector=${encodeURIComponent(selector)}`);
  const watch = (path: string, selector: string): Way =>
    get(`${path}?watch=true&fieldSelector=${encodeURIComponent(selector)}`);

  async function answers(code: number, ways: readonly Way[]): Promise<void> {
    for (const way of ways) {
      const { status, text } = await node(way);
      const reported = `${way.method} ${way.path} ${JSON.stringify(way.body)}: ${status} ${text}`;
      assert.equal(status, code, reported);
    }
  }

  test('a node may write its own Node, Lease and CSINode and no others', async () => {
    const labelled = { metadata: { labels: { a: 'b' } } };
    await answers(200, [
      get('/api/v1/nodes/n1'),
      list('/api/v1/nodes', 'metadata.name=n1'),
      patch('/api/v1/nodes/n1', labelled),
      patch('/api/v1/nodes/n1/status', { status: { phase: 'Running' } }),
      get(`${leases}/kube-node-lease/leases/n1`),
      get(`${csiNodes}/n1`),
    ]);
    await answers(403, [
      get('/api/v1/nodes/n2'),
      get('/api/v1/nodes'),
      get('/api/v1/nodes?watch=true'),
      list('/api/v1/nodes', 'metadata.name=n2'),
      list('/api/v1/nodes', 'metadata.name!=n2'),
      patch('/api/v1/nodes/n2', labelled),
      patch('/api/v1/nodes/n2/status', { status: { phase: 'Running' } }),
      { method: 'PUT', path: '/api/v1/nodes/n2', body: { metadata: { name: 'n2' } } },
      remove('/api/v1/nodes/n2'),
      remove('/api/v1/nodes/n1'),
      remove('/api/v1/nodes'),
      post('/api/v1/nodes', { metadata: { name: 'n3' } }),
      get(`${leases}/kube-node-lease/leases/n2`),
      patch(`${leases}/kube-node-lease/leases/n2`, labelled),
      remove(`${leases}/kube-node-lease/leases/n2`),
      post(`${leases}/kube-node-lease/leases`, { metadata: { name: 'n3' } }),
      get(`${leases}/kube-system/leases/n1`),
      get(`${csiNodes}/n2`),
      patch(`${csiNodes}/n2`, labelled),
      remove(`${csiNodes}/n2`),
      post(csiNodes, { metadata: { name: 'n3' } }),
    ]);
  });

  test('a node may not change protected labels and taints of its own Node', async () => {
    await answers(403, [
      patch('/api/v1/nodes/n1', { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } }),
      patch('/api/v1/nodes/n1', { metadata: { labels: { 'node-restriction.kubernetes.io/a': 'b' } } }),
      patch('/api/v1/nodes/n1', { metadata: { labels: { 'node-role.kubernetes.io/a': 'b' } } }),
      patch('/api/v1/nodes/n1', {
        metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n2', uid: 'u' }] },
      }),
    ]);
  });

  test('a node may change its own pods and no others', async () => {
    await answers(200, [
      get(`${shop}/pods/web`),
      list('/api/v1/pods', 'spec.nodeName=n1'),
      watch('/api/v1/pods', 'spec.nodeName=n1'),
      patch(`${shop}/pods/web/status`, { status: { message: 'm' } }),
    ]);
    const eviction = { metadata: { name: 'elsewhere', namespace: 'shop' } };
    const labelled = { metadata: { labels: { a: 'b' } } };
    await answers(403, [
      get(`${shop}/pods/elsewhere`),
      get('/api/v1/pods'),
      get(`${shop}/pods?watch=true`),
      list('/api/v1/pods', 'spec.nodeName=n2'),
      list('/api/v1/pods', 'spec.nodeName!=n1'),
      list('/api/v1/pods', 'spec.nodeName='),
      list('/api/v1/pods', 'metadata.name=elsewhere'),
      list(`${shop}/pods`, 'status.phase=Pending'),
      get('/api/v1/pods?fieldSelector=&fieldSelector=spec.nodeName%3Dn1'),
      watch('/api/v1/pods', 'spec.nodeName=n2'),
      patch(`${shop}/pods/elsewhere/status`, { status: { message: 'm' } }),
      patch(`${shop}/pods/web/status`, labelled),
      patch(`${shop}/pods/web`, labelled),
      remove(`${shop}/pods/elsewhere`),
      remove(`${shop}/pods`),
      post(`${shop}/pods/elsewhere/eviction`, eviction),
      post(`${shop}/pods/web/binding`, { target: { name: 'n1' } }),
      patch(`${shop}/pods/web/ephemeralcontainers`, {}),
      patch(`${shop}/pods/web/resize`, {}),
      get(`${shop}/pods/web/log`),
      post(`${shop}/pods/web/exec?command=id`, {}),
      get(`${shop}/pods/web/proxy/`),
      get('/api/v1/nodes/n1/proxy/pods'),
      post(`${shop}/pods`, {
        metadata: { name: 'p' },
        spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
      }),
    ]);
  });

  /** A static pod of the node's manifest directory, as the kubelet reports it to the API server. */
  function mirror(spec: object, owner: object = {}): Way {
    const reference = {
      apiVersion: 'v1',
      kind: 'Node',
      name: 'n1',
      uid: uids.get('nodes n1'),
      controller: true,
    };
    const annotations = { 'kubernetes.io/config.mirror': 'x', 'kubernetes.io/config.source': 'file' };
    const metadata = { name: 'static-n1', annotations, ownerReferences: [{ ...reference, ...owner }] };
    return post(`${shop}/pods`, {
      metadata,
      spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }], ...spec },
    });
  }

  test('a node may create mirror pods for itself that reference no API objects', async () => {
    await answers(403, [
      mirror({ nodeName: 'n2' }),
      mirror({}, { name: 'n2', uid: uids.get('nodes n2') }),
      mirror({}, { uid: 'another' }),
      mirror({ serviceAccountName: 'unused' }),
      mirror({ volumes: [{ name: 's', secret: { secretName: 'unused' } }] }),
      mirror({ volumes: [{ name: 's', configMap: { name: 'unused' } }] }),
      mirror({ volumes: [{ name: 's', persistentVolumeClaim: { claimName: 'unused' } }] }),
      mirror({ volumes: [{ name: 't', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }] }),
    ]);
    await answers(201, [mirror({})]);
  });

  test('a node may read only the objects its pods reference', async () => {
    for (const kind of ['secrets', 'configmaps']) {
      await answers(200, [
        get(`${shop}/${kind}/web`),
        list(`${shop}/${kind}`, 'metadata.name=web'),
        watch(`${shop}/${kind}`, 'metadata.name=web'),
      ]);
      await answers(403, [
        get(`${shop}/${kind}/elsewhere`),
        get(`${shop}/${kind}/unused`),
        get(`${shop}/${kind}`),
        get(`/api/v1/${kind}`),
        get(`${shop}/${kind}?watch=true`),
        list(`${shop}/${kind}`, 'metadata.name=unused'),
        list(`${shop}/${kind}`, 'metadata.name!=web'),
        list(`/api/v1/${kind}`, 'metadata.name=web'),
        list(`/api/v1/namespaces/default/${kind}`, 'metadata.name=web'),
        get(`${shop}/${kind}?fieldSelector=metadata.name%3Dunused&fieldSelector=metadata.name%3Dweb`),
        patch(`${shop}/${kind}/web`, { data: {} }),
        remove(`${shop}/${kind}/web`),
        post(`${shop}/${kind}`, { metadata: { name: 'new' } }),
      ]);
    }
    await answers(200, [get(`${shop}/persistentvolumeclaims/web`), get(`${shop}/serviceaccounts/web`)]);
    await answers(403, [
      get(`${shop}/persistentvolumeclaims/elsewhere`),
      get(`${shop}/persistentvolumeclaims`),
      get(`${shop}/serviceaccounts/elsewhere`),
      patch(`${shop}/persistentvolumeclaims/elsewhere/status`, { status: {} }),
    ]);
  });

  test('a node may request tokens only for its pods, with their service accounts and declared audiences', async () => {
    const ask = (
      account: string,
      pod: string | undefined,
      more: object = {},
      uid = uids.get(`pods ${pod}`),
    ) => {
      const reference = { apiVersion: 'v1', kind: 'Pod', name: pod, ...(uid === undefined ? {} : { uid }) };
      const bond = pod === undefined ? {} : { boundObjectRef: reference };
      return post(`${shop}/serviceaccounts/${account}/token`, { spec: { ...bond, ...more } });
    };
    await answers(201, [ask('web', 'web', { audiences: ['vault'] }), ask('web', 'web')]);
    await answers(403, [
      ask('elsewhere', 'elsewhere'),
      ask('web', 'elsewhere'),
      ask('web', undefined),
      ask('unused', undefined),
      ask('web', 'web', { audiences: ['somebody-else'] }),
      ask('web', 'web', { audiences: ['vault', 'somebody-else'] }),
      post(`${shop}/serviceaccounts/web/token`, {
        spec: { boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'web' } },
      }),
      post(`${shop}/serviceaccounts/web/token`, {
        spec: { boundObjectRef: { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: uids.get('nodes n1') } },
      }),
    ]);
    await answers(409, [ask('web', 'web', {}, 'another')]);
  });

  test('a node may request certificates only for itself', async () => {
    const wish = (commonName: string, name: string): Way => {
      const identity = { commonName, organizations: ['system:nodes'], dnsNames: [], ips: [] };
      const request = Buffer.from(createCertificateRequest(identity, newEcKey())).toString('base64');
      const signerName = 'kubernetes.io/kube-apiserver-client-kubelet';
      const usages = ['digital signature', 'client auth'];
      return post(signing, { metadata: { name }, spec: { request, signerName, usages } });
    };
    await answers(201, [wish('system:node:n1', 'own')]);
    await answers(403, [
      wish('system:node:n2', 'other'),
      wish('kubeling-admin', 'admin'),
      { method: 'PUT', path: `${signing}/own/approval`, body: {} },
      patch(`${signing}/own/status`, { status: {} }),
      remove(`${signing}/own`),
    ]);
  });

  test('a certificate of the group system:nodes whose common name is not system:node:<node name> has no rights', async () => {
    const organizations = ['system:nodes'];
    for (const commonName of ['system:node:', 'n1', 'system:serviceaccount:shop:web']) {
      const stranger = api.caller(
        clientPair(api.authorities, { commonName, organizations }, realClock().now()),
      );
      for (const way of [
        list('/api/v1/pods', 'spec.nodeName='),
        list('/api/v1/pods', 'spec.nodeName=n1'),
        get('/api/v1/nodes/n1'),
        get(`${shop}/secrets/web`),
        get('/api/v1/services'),
      ])
        assert.equal((await stranger(way)).status, 403, `${commonName} ${way.path}`);
    }
  });

  test('a node loses the right to read objects that its pods no longer reference', async () => {
    const admin = api.caller(api.pairOf('admin'));
    const { status } = await admin({
      method: 'DELETE',
      path: `${shop}/pods/web`,
      body: { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0 },
    });
    assert.equal(status, 200);
    await answers(403, [get(`${shop}/secrets/web`), get(`${shop}/configmaps/web`)]);
  });
});
