import { after, before, describe } from 'node:test';
import { SmallCluster } from './small-cluster.ts';
import { authorizationMatrix } from './suites/authorization.ts';
import { certificatesByRequest } from './suites/certificates.ts';
import { endsOfPods } from './suites/ends.ts';
import { embeddedApi } from './suites/place.ts';
import { usualPods } from './suites/pods.ts';
import { verbsOfKubectl } from './suites/verbs.ts';

/** What is tried on a real cluster, on kubeling's own API: one of it, and one node, for all suites. */
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
          // What goes by the renewal of the lease goes ten times as fast.
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
