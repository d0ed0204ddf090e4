import { isIP } from 'node:net';
import type { ApiClient } from '../../api/index.ts';
import {
  exposeTimeToLive,
  openServingCertificate,
  realCertificateFiles,
  type ServedCertificate,
  serverCertificateMetrics,
  servingSource,
} from '../../certificates/index.ts';
import type { KubeletConfiguration } from '../../config/index.ts';
import type { NodeAddress } from '../../kinds/index.ts';
import type { Clock, Logger, MetricRegistry, Random } from '../../lib/index.ts';

export interface ServingIdentityOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  readonly config: Pick<KubeletConfiguration, 'serverTLSBootstrap' | 'tlsCertFile' | 'tlsPrivateKeyFile'>;
  readonly certDirectory: string;
  readonly nodeName: string;
  /** Names and IP addresses of the node, as they are now. */
  readonly nodeAddresses: () => readonly string[];
  /** How long those must have stayed the same before a certificate is asked for; a while unless given. */
  readonly addressesSettleMs?: number | undefined;
  /** Undefined without an API server. */
  readonly api: ApiClient | undefined;
}

/** The certificate of the server, from where the configuration says, with its time to live among the metrics. */
export async function openServingIdentity(options: ServingIdentityOptions): Promise<ServingIdentity> {
  const { clock, random, logger: log, metrics, config, api, nodeName, certDirectory } = options;
  const { serverTLSBootstrap, tlsCertFile, tlsPrivateKeyFile } = config;
  const source = servingSource({
    serverTLSBootstrap,
    tlsCertFile,
    tlsPrivateKeyFile,
    api,
    hostname: nodeName,
    keyKind: 'rsa-2048',
  });
  const addresses = () => options.nodeAddresses().map(typed);
  const certificate = await openServingCertificate(
    { source, nodeName, certDirectory, addresses, settleMs: options.addressesSettleMs },
    { files: realCertificateFiles(), clock, random, log, observer: serverCertificateMetrics(metrics) },
  );
  log.info('Others know the server by its certificate', { source: source.kind, how: certificate.describe() });
  const told = exposeTimeToLive(metrics, 'server', { clock, held: () => certificate.held() });
  return { certificate, [Symbol.dispose]: () => told[Symbol.dispose]() };
}

export interface ServingIdentity extends Disposable {
  readonly certificate: ServedCertificate;
}

function typed(address: string): NodeAddress {
  return { type: isIP(address) === 0 ? 'Hostname' : 'InternalIP', address };
}
