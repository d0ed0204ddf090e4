import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { container, pod, podSpec, removePods } from '../cluster-pods.ts';
import { FollowedLog } from '../followed-log.ts';
import { patiently } from '../patiently.ts';
import type { SmallCluster } from '../small-cluster.ts';
import type { Place } from './place.ts';

const speaks =
  'trap "exit 0" TERM; i=0; while true; do echo "line $i"; i=$((i+1)); sleep 0.5 & wait $!; done';

/** Tests a node that joined with bootstrap credentials and requests its certificates itself. */
export function certificatesByRequest(place: Place): void {
  describe(`certificates of a node of ${place.name}`, { skip: place.skip, timeout: 600_000 }, () => {
    let cluster: SmallCluster;

    before(async () => {
      // The signer sets notBefore to five minutes ago, so a certificate that expires in one minute
      // is already near the end of its validity and is rotated soon.
      cluster = await place.open({
        flags: { signingDuration: '1m' },
        node: { joins: 'by-bootstrap', config: { rotateCertificates: true } },
      });
    });

    after(async () => {
      await place.close(cluster);
    });

    it('requests certificates and rotates them before they expire, while a log is followed', async () => {
      const { node, plane } = cluster;
      await plane.make(pod('speaker', podSpec([container('main', { command: ['sh', '-c', speaks] })])));
      await cluster.ready('speaker');
      await node.reachable();
      await using log = new FollowedLog(plane, 'speaker');
      const current = join(node.rootDir, 'pki', 'kubelet-client-current.pem');
      const certificate = new X509Certificate(await readFile(current));
      assert.equal(certificate.subject, `O=system:nodes\nCN=system:node:${node.name}`);
      assert.match(await readFile(node.kubeconfig, 'utf8'), /kubelet-client-current\.pem/);
      const first = await readlink(current);
      await patiently(
        'the certificate to be replaced',
        async () => ((await readlink(current)) === first ? undefined : true),
        cluster.told,
      );
      const reported = log.lines.length;
      await node.ready();
      await node.reachable();
      await patiently('the log to go on', async () => {
        assert.equal(log.ended, undefined, `the followed log broke off: ${log.ended}`);
        return log.lines.length > reported ? true : undefined;
      });
      log.lines.forEach((line, index) => void assert.equal(line, `line ${index}`));
      await removePods(plane, 'speaker');
    });
  });
}
