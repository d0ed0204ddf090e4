import { apiTrouble } from '../chaos/api-trouble.ts';
import { FaultyCluster, insightful } from '../chaos/faulty-cluster.ts';
import { noCluster } from './programs.ts';
import { SmallCluster } from './small-cluster.ts';

/**
 * The fault rounds on a real cluster: five minutes without an API server, among others, and up to
 * fifty pods.
 */
apiTrouble(
  { name: 'a real cluster', skip: noCluster(), open: (tell) => FaultyCluster.open(tell) },
  {
    outage: { awayMs: 300_000, calm: 10 },
    flaps: { times: 10, everyMs: 3_000, pods: 10 },
    slowness: { delayMs: 2_000, pods: 10, slowMs: 90_000 },
    silence: { frozenMs: 60_000 },
    restarts: { pods: 50 },
  },
);

apiTrouble(
  {
    name: 'the embedded API',
    skip: false,
    open: (tell) =>
      FaultyCluster.open(tell, () => SmallCluster.openEmbedded({}, { environment: insightful })),
  },
  {
    outage: { awayMs: 25_000, calm: 2 },
    flaps: { times: 3, everyMs: 1_000, pods: 2 },
    slowness: { delayMs: 2_000, pods: 2, slowMs: 0 },
    silence: { frozenMs: 5_000 },
    restarts: { pods: 10 },
  },
);
