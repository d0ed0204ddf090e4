/** The inputs of the CNI configuration. */
export interface CniNetwork {
  readonly network: string;
  readonly subnet: string;
  readonly ipamDir: string;
  /** The firewall backend that CNI plugins must use; `unspecified` lets each plugin choose. */
  readonly rules: 'iptables' | 'unspecified';
}

/** The required CNI plugins; loopback is required by containerd itself. */
export const cniPlugins = ['bridge', 'host-local', 'loopback', 'portmap'] as const;

export const cniPluginDirs = ['/opt/cni/bin', '/usr/lib/cni', '/usr/libexec/cni'] as const;

/**
 * Returns the CNI configuration: a masqueraded bridge with host ports for all pods of this data
 * directory.
 */
export function cniConflist({ network, subnet, ipamDir, rules }: CniNetwork): string {
  const isPinned = rules === 'iptables';
  const bridge = {
    type: 'bridge',
    bridge: network,
    isGateway: true,
    ipMasq: true,
    // Newer plugins could choose nftables, but teardown removes iptables rules only.
    ...(isPinned ? { ipMasqBackend: 'iptables' } : {}),
    hairpinMode: true,
    ipam: {
      type: 'host-local',
      dataDir: ipamDir,
      ranges: [[{ subnet }]],
      routes: [{ dst: '0.0.0.0/0' }],
    },
  };
  const portmap = {
    type: 'portmap',
    capabilities: { portMappings: true },
    ...(isPinned ? { backend: 'iptables' } : {}),
  };
  return `${JSON.stringify({ cniVersion: '0.4.0', name: network, plugins: [bridge, portmap] }, null, 2)}\n`;
}
