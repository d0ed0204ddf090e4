/**
 * The embedded API as a process of its own, so that it can be ended and started again under a node that joined it:
 * `embedded-api.ts FACTS`, the facts in JSON. It goes on until SIGTERM.
 */
import { hostname } from 'node:os';
import { kubernetesVersion, ownVersion } from '../../src/cli/version.ts';
import {
  descriptorOutput,
  MetricRegistry,
  openLog,
  realClock,
  systemRandom,
  Verbosity,
} from '../../src/lib/index.ts';
import { openLocalApi } from '../../src/local-api/index.ts';
import { machineAddresses } from './cluster-certificates.ts';
import { recordCalls } from './embedded-audit.ts';

export interface EmbeddedApiFacts {
  readonly directory: string;
  readonly adminKubeconfig: string;
  readonly port: number;
  readonly nodeName: string;
  /** How long certificates hold that it signs. */
  readonly maxCertificateLifetimeMs?: number | undefined;
  /** Where calls of nodes are noted down, if anywhere. */
  readonly auditFile?: string | undefined;
}

const facts: EmbeddedApiFacts = JSON.parse(process.argv[2] ?? '{}');
const root = new AbortController();
process.once('SIGTERM', () => root.abort());
const clock = realClock();
const random = systemRandom();
const { logger } = openLog({
  clock,
  format: 'text',
  output: descriptorOutput(process.stderr.fd, clock),
  verbosity: new Verbosity(3),
});
const metrics = new MetricRegistry({ onError: (error) => logger.error('Cannot count', error) });
if (facts.auditFile !== undefined) recordCalls(facts.auditFile);

{
  await using api = await openLocalApi(
    {
      ...facts,
      listen: { host: '127.0.0.1', port: facts.port },
      hostnames: () => [hostname()],
      addresses: machineAddresses,
      // Nodes say themselves where they are.
      kubeletAt: () => undefined,
      version: { kubernetes: kubernetesVersion, own: await ownVersion() },
      exposeMetrics: () => metrics.expose(root.signal),
      clock,
      random,
      logger,
    },
    root.signal,
  );
  await api.run(root.signal).catch((error) => {
    if (!root.signal.aborted) throw error;
  });
}
process.exit(0);
