import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { ClusterNode } from './cluster-node.ts';
import { ControlPlane } from './control-plane.ts';
import { patiently } from './patiently.ts';
import { clusterAssets, noCluster } from './programs.ts';

describe('joining by bootstrap', { skip: noCluster(), timeout: 600_000 }, () => {
  it('a node gets its first certificate for a token, and another before that expires', async () => {
    // The signer dates certificates five minutes back: one that holds for two more is soon due.
    await using plane = await ControlPlane.open(clusterAssets(), { signingDuration: '2m' });
    await using node = await ClusterNode.open(plane, {
      joins: 'by-bootstrap',
      config: { rotateCertificates: true },
    });
    await node.start();
    await node.ready();
    const current = join(node.rootDir, 'pki', 'kubelet-client-current.pem');
    const certificate = new X509Certificate(await readFile(current));
    assert.equal(certificate.subject, `O=system:nodes\nCN=system:node:${node.name}`);
    assert.match(await readFile(node.kubeconfig, 'utf8'), /kubelet-client-current\.pem/);
    const first = await readlink(current);
    await patiently(
      'the certificate to be rotated',
      async () => ((await readlink(current)) === first ? undefined : true),
      () => node.out.slice(-6_000),
    );
    await node.ready();
    assert.deepEqual(await node.leave(), []);
  });
});
