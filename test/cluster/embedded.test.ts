import { after, before, describe } from 'node:test';
import { SmallCluster } from './small-cluster.ts';
import { authorizationMatrix } from './suites/authorization.ts';
import { certificatesByRequest } from './suites/certificates.ts';
import { endsOfPods } from './suites/ends.ts';
import { embeddedApi } from './suites/place.ts';
import { usualPods } from './suites/pods.ts';
import { verbsOfKubectl } from './suites/verbs.ts';

/**
 * Runs the suites of a real cluster with kubeling's own API. All suites share one API and one node.
 */
describe('a node that joined the embedded API', { timeout: 900_000 }, () => {
  let shared: SmallCluster;

  before(async () => {
    shared = await SmallCluster.openEmbedded(
      {},
      {
        joins: 'by-bootstrap',
        config: {
          rotateCertificates: true,
          enableSystemLogQuery: true,
          // Lease renewals, and everything that depends on them, are ten times as frequent.
          nodeLeaseDurationSeconds: 4,
        },
      },
    );
  });

  after(async () => {
    await shared?.[Symbol.asyncDispose]();
  });

  const place = embeddedApi(() => shared);
  for (const suite of [endsOfPods, usualPods, verbsOfKubectl, authorizationMatrix, certificatesByRequest])
    suite(place);
});
