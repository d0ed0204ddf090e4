/**
 * Runs the embedded API in a separate process, so that it can be stopped and started again under a
 * node that joined it: `embedded-api.ts FACTS`, with the facts as JSON. Runs until SIGTERM.
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
  /** The maximum validity of certificates that the API signs. */
  readonly maxCertificateLifetimeMs?: number | undefined;
  /** The audit log of requests by nodes; not written if undefined. */
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
const metrics = new MetricRegistry({ onError: (error) => logger.error('Failed to update metrics', error) });
if (facts.auditFile !== undefined) recordCalls(facts.auditFile);

{
  await using api = await openLocalApi(
    {
      ...facts,
      listen: { host: '127.0.0.1', port: facts.port },
      hostnames: () => [hostname()],
      addresses: machineAddresses,
      // No fixed kubelet address is configured, so the API reads the addresses of kubelets from
      // their Node objects.
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
