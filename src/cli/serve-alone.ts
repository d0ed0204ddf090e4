import type { KubeletConfiguration, LoadedConfig } from '../config/index.ts';
import type { Kubelet, KubeletSettings } from '../kubelet/index.ts';
import type { ClusterServers, ClusterServersOptions } from './cluster-servers.ts';

/**
 * Whether a node without an API server can be served to others: somebody is known by what the node itself knows, and
 * nobody else has to be asked what he may. What is left to the API server serves loopback alone.
 */
export function canServeAlone({
  authentication,
  authorization,
  enableServer,
}: KubeletConfiguration): boolean {
  const { anonymous, webhook, x509 } = authentication;
  const isSomebodyKnown = anonymous.enabled || x509.clientCAFile !== '';
  return enableServer && isSomebodyKnown && !webhook.enabled && authorization.mode === 'AlwaysAllow';
}

type ServeAloneOptions = Omit<
  ClusterServersOptions,
  'rootDir' | 'certDirectory' | 'nodeName' | 'nodeAddresses' | 'api' | 'kubelet' | 'loaded' | 'stats'
> & { readonly loaded: LoadedConfig; readonly kubelet: Kubelet; readonly settings: KubeletSettings };

/**
 * Opens the servers others reach a node by that belongs to no cluster, or what they may read where there can be no more;
 * what they need is loaded only then.
 */
export async function serveAlone(options: ServeAloneOptions): Promise<ClusterServers> {
  const { loaded, settings, kubelet } = options;
  const { rootDir, certDir: certDirectory } = loaded.flags;
  const { openClusterServers, openReadOnly } = await import('./cluster-servers.ts');
  const { nodeName } = settings;
  const open = canServeAlone(loaded.config) ? openClusterServers : openReadOnly;
  return await open({
    ...options,
    rootDir,
    certDirectory,
    nodeName,
    nodeAddresses: () => [nodeName, ...kubelet.nodeIps()],
    api: undefined,
    stats: await kubelet.statistics.pages(),
  });
}
