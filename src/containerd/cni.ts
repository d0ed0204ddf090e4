/** Inputs of the conflist. */
export interface CniNetwork {
  readonly network: string;
  readonly subnet: string;
  readonly ipamDir: string;
  /** Firewall backend the plugins must use; undefined leaves it to them. */
  readonly rules: 'iptables' | 'unspecified';
}

/** Required CNI plugins; containerd adds loopback itself. */
export const cniPlugins = ['bridge', 'host-local', 'loopback', 'portmap'] as const;

export const cniPluginDirs = ['/opt/cni/bin', '/usr/lib/cni', '/usr/libexec/cni'] as const;

/** One masqueraded bridge with host ports for all pods of this data directory. */
export function cniConflist({ network, subnet, ipamDir, rules }: CniNetwork): string {
  const isPinned = rules === 'iptables';
  const bridge = {
    type: 'bridge',
    bridge: network,
    isGateway: true,
    ipMasq: true,
    // Newer plugins may choose nftables; teardown must know the backend.
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
