import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { nodeUser } from '../../../test/fakes/api-users.ts';
import { FewObjects } from '../../../test/fakes/security-rig.ts';
import { type ApiResource, apiResources } from '../../api/index.ts';
import { createCertificateRequest, newEcKey } from '../../protocols/x509/index.ts';
import type { ApiVerb } from '../api/api-types.ts';
import type { StoredObject } from '../api/stored-object.ts';
import { enforceNodeRestriction } from './node-restriction.ts';

const { nodes, pods, certificateSigningRequests } = apiResources;

function write(
  what: { readonly resource: ApiResource; readonly verb: ApiVerb; readonly subresource?: string },
  before: StoredObject | undefined,
  after: StoredObject | undefined,
): () => void {
  const request = { ...what, user: nodeUser('n1'), name: after?.metadata.name };
  return () => enforceNodeRestriction(request, before, after, new FewObjects());
}

function object(resource: ApiResource, name: string, more: object = {}): StoredObject {
  return new FewObjects().put(resource, undefined, name, more);
}

describe('NodeRestriction', () => {
  test('a node may not change taints, owner references or restricted labels of its Node', () => {
    const before = object(nodes, 'n1', { spec: { taints: [] } });
    const update = (more: object) =>
      write({ resource: nodes, verb: 'update' }, before, object(nodes, 'n1', more));
    assert.doesNotThrow(
      update({ spec: { taints: [] }, metadata: { labels: { 'kubernetes.io/os': 'linux' } } }),
    );
    assert.throws(update({ spec: { taints: [{ key: 'a' }] } }), /modify taints/);
    assert.throws(update({ spec: { taints: [] }, metadata: { ownerReferences: [{}] } }), /ownerReferences/);
    assert.throws(
      update({ spec: { taints: [] }, metadata: { labels: { 'kubernetes.io/role': 'x' } } }),
      /labels/,
    );
    const other = object(nodes, 'n2', { spec: { taints: [] } });
    assert.throws(
      write({ resource: nodes, verb: 'update' }, other, other),
      /not allowed to modify node "n2"/,
    );
  });

  test('a node may evict only its own pods', () => {
    const evict = (nodeName: string) =>
      write(
        { resource: pods, verb: 'create', subresource: 'eviction' },
        object(pods, 'a', { spec: { nodeName } }),
        undefined,
      );
    assert.doesNotThrow(evict('n1'));
    assert.throws(evict('n2'), /spec.nodeName set to itself/);
  });

  test('a node may request node certificates only for its own name', () => {
    const ask = (commonName: string, signerName: string) => {
      const identity = { commonName, organizations: ['system:nodes'], dnsNames: [], ips: [] };
      const request = Buffer.from(createCertificateRequest(identity, newEcKey())).toString('base64');
      const csr = object(certificateSigningRequests, 'c', { spec: { request, signerName } });
      return write({ resource: certificateSigningRequests, verb: 'create' }, undefined, csr);
    };
    for (const signer of ['kubernetes.io/kube-apiserver-client-kubelet', 'kubernetes.io/kubelet-serving']) {
      assert.doesNotThrow(ask('system:node:n1', signer));
      assert.throws(ask('system:node:n2', signer), /CN=system:node:n1/);
    }
    assert.doesNotThrow(ask('joe', 'example.com/signer'));
    const spec = { request: 'bm9uZQ==', signerName: 'kubernetes.io/kubelet-serving' };
    const broken = object(certificateSigningRequests, 'c', { spec });
    const asking = write({ resource: certificateSigningRequests, verb: 'create' }, undefined, broken);
    assert.throws(asking, /unable to parse csr/);
  });
});
